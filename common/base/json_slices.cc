#include "common/base/json_slices.h"

#include <algorithm>

namespace rekindle {
namespace {

// Goes through one text; every step that does not find what it looks for fails for good.
class Slicer {
 public:
  explicit Slicer(std::string_view text) : text_(text) {}

  bool take(char wanted) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  // A whole value with what is inside, as its text; empty when none begins here or it has no end.
  std::string_view value() {
    skip_space();
    const std::size_t begin = at_;
    int depth = 0;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"') {
        if (!skip_string()) return {};
      } else if (c == '[' || c == '{') {
        ++depth;
        ++at_;
        continue;
      } else if (c == ']' || c == '}') {
        if (depth == 0) return slice(begin);
        --depth;
        ++at_;
      } else if (depth > 0) {
        ++at_;
        continue;
      } else {
        while (at_ < text_.size() && !is_end(text_[at_])) ++at_;
        return slice(begin);
      }
      if (depth == 0) return slice(begin);
    }
    return {};
  }

  bool at_end() {
    skip_space();
    return at_ == text_.size();
  }

 private:
  static bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
  static bool is_end(char c) { return is_space(c) || c == ',' || c == ']' || c == '}' || c == ':'; }
  void skip_space() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }
  bool skip_string() {
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\\') {
        ++at_;
      } else if (text_[at_] == '"') {
        ++at_;
        return true;
      }
    }
    return false;
  }
  std::string_view slice(std::size_t begin) const { return text_.substr(begin, at_ - begin); }

  const std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

JsonExtent extent_of(std::string_view text) {
  JsonExtent extent;
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      // each bracket that opens, and each comma, has one more value behind it
      ++extent.values;
      extent.depth = std::max(extent.depth, ++depth);
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',') {
      ++extent.values;
    }
  }
  return extent;
}

std::optional<std::string_view> json_field(std::string_view object, std::string_view name) {
  Slicer in(object);
  if (!in.take('{')) return std::nullopt;
  std::optional<std::string_view> found;
  bool more = !in.take('}');
  while (more) {
    const std::string_view key = in.value();
    if (key.size() < 2 || key.front() != '"' || !in.take(':')) return std::nullopt;
    const std::string_view value = in.value();
    if (value.empty()) return std::nullopt;
    if (key.substr(1, key.size() - 2) == name) found = value;
    more = in.take(',');
    if (!more && !in.take('}')) return std::nullopt;
  }
  return in.at_end() ? found : std::nullopt;
}

std::optional<std::vector<std::string_view>> json_elements(std::string_view list) {
  Slicer in(list);
  if (!in.take('[')) return std::nullopt;
  std::vector<std::string_view> elements;
  bool more = !in.take(']');
  while (more) {
    elements.push_back(in.value());
    if (elements.back().empty()) return std::nullopt;
    more = in.take(',');
    if (!more && !in.take(']')) return std::nullopt;
  }
  if (!in.at_end()) return std::nullopt;
  return elements;
}

}  // namespace rekindle
