#include "common/base/http_message.h"

#include <algorithm>

namespace rekindle {
namespace {

constexpr char to_lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + 32) : letter;
}

constexpr bool is_unreserved(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9') ||
         letter == '-' || letter == '.' || letter == '_' || letter == '~';
}

constexpr int hex_value(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

}  // namespace

bool equal_ignoring_case(std::string_view left, std::string_view right) {
  return std::ranges::equal(left, right, [](char a, char b) { return to_lower(a) == to_lower(b); });
}

void HttpHeaders::add(std::string name, std::string value) { headers_.push_back({std::move(name), std::move(value)}); }

void HttpHeaders::set(std::string name, std::string value) {
  std::erase_if(headers_, [&](const HttpHeader& header) { return equal_ignoring_case(header.name, name); });
  add(std::move(name), std::move(value));
}

std::string_view HttpHeaders::value_of(std::string_view name) const {
  for (const HttpHeader& header : headers_) {
    if (equal_ignoring_case(header.name, name)) return header.value;
  }
  return {};
}

bool HttpHeaders::has(std::string_view name) const { return count(name) > 0; }

std::size_t HttpHeaders::count(std::string_view name) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      headers_, [&](const HttpHeader& header) { return equal_ignoring_case(header.name, name); }));
}

std::string percent_encode(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  encoded.reserve(text.size());
  for (const char letter : text) {
    if (is_unreserved(letter)) {
      encoded += letter;
    } else {
      const auto byte = static_cast<unsigned char>(letter);
      encoded += '%';
      encoded += kDigits[byte >> 4];
      encoded += kDigits[byte & 15];
    }
  }
  return encoded;
}

Result<std::string> percent_decode(std::string_view text, bool plus_is_space) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '+' && plus_is_space) {
      decoded += ' ';
    } else if (text[at] != '%') {
      decoded += text[at];
    } else {
      const int high = text.size() - at > 2 ? hex_value(text[at + 1]) : -1;
      const int low = text.size() - at > 2 ? hex_value(text[at + 2]) : -1;
      if (high < 0 || low < 0) {
        return fail(ErrorCode::invalid_input, "a '%' in the address is not followed by two hexadecimal digits");
      }
      decoded += static_cast<char>(high * 16 + low);
      at += 2;
    }
  }
  return decoded;
}

std::string request_target(const HttpRequest& request) {
  std::string target = request.path;
  char separator = '?';
  for (const auto& [name, value] : request.query) {
    target += separator;
    target += percent_encode(name);
    target += '=';
    target += percent_encode(value);
    separator = '&';
  }
  return target;
}

Result<HttpQuery> parse_query(std::string_view text) {
  HttpQuery query;
  while (!text.empty()) {
    const std::string_view pair = text.substr(0, text.find('&'));
    text.remove_prefix(std::min(text.size(), pair.size() + 1));
    if (pair.empty()) continue;
    const std::size_t equals = pair.find('=');
    Result<std::string> name = percent_decode(pair.substr(0, equals), true);
    if (!name) return std::unexpected(name.error());
    Result<std::string> value =
        percent_decode(equals == std::string_view::npos ? std::string_view{} : pair.substr(equals + 1), true);
    if (!value) return std::unexpected(value.error());
    query.emplace_back(std::move(*name), std::move(*value));
  }
  return query;
}

}  // namespace rekindle
