#include "operator/kube/line_splitter.h"

#include "common/base/format.h"

namespace rekindle::op {

Status LineSplitter::feed(std::string_view bytes) {
  // A failed splitter takes nothing more: its stream is to be closed, and the memory stays bounded
  // until it is.
  if (!failed_) {
    // What was given out is dropped here and not in next(), so that many lines in one chunk are not
    // moved once each.
    buffer_.erase(0, taken_);
    line_begin_ -= taken_;
    taken_ = 0;

    std::size_t search = buffer_.size();
    buffer_.append(bytes);
    while (!failed_ && line_begin_ < buffer_.size()) {
      const std::size_t line_end = buffer_.find('\n', search);
      const std::size_t known_end = line_end == std::string::npos ? buffer_.size() : line_end;
      failed_ = known_end - line_begin_ > line_bytes_max_;
      if (failed_) buffer_.resize(line_begin_);
      if (failed_ || line_end == std::string::npos) break;
      line_begin_ = line_end + 1;
      search = line_begin_;
    }
  }
  if (failed_) {
    return fail(ErrorCode::exhausted,
                format("a line of the stream is longer than {} bytes; the stream is given up", line_bytes_max_));
  }
  return {};
}

std::optional<std::string> LineSplitter::next() {
  while (taken_ < line_begin_) {
    const std::size_t end = buffer_.find('\n', taken_);
    std::string line = buffer_.substr(taken_, end - taken_);
    taken_ = end + 1;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (!line.empty()) return line;
  }
  return std::nullopt;
}

}  // namespace rekindle::op
