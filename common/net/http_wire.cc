#include "common/net/http_wire.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "common/base/format.h"

namespace rekindle {
namespace {

constexpr std::size_t kChunkLineBytesMax = 1024;
constexpr std::size_t kTrailerBytesMax = 16u << 10;

std::unexpected<Error> no_http(std::string what) {
  return fail(ErrorCode::corrupt, "the other side does not speak HTTP/1.1 properly: " + std::move(what));
}

// token of RFC 9110
bool is_token(std::string_view text) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::ranges::all_of(text, [&](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9') ||
           kMarks.contains(letter);
  });
}

bool is_field_value(std::string_view text) {
  return std::ranges::all_of(text, [](char letter) {
    const auto byte = static_cast<unsigned char>(letter);
    return byte == '\t' || (byte >= 0x20 && byte != 0x7f);
  });
}

bool is_target(std::string_view text) {
  return text.starts_with('/') &&
         std::ranges::all_of(text, [](char letter) { return letter > 0x20 && letter < 0x7f && letter != '#'; });
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// The next line without its CRLF. None when a line feed stands alone or no line is left.
std::optional<std::string_view> take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos || end == 0 || text[end - 1] != '\r') return std::nullopt;
  const std::string_view line = text.substr(0, end - 1);
  text.remove_prefix(end + 1);
  return line;
}

Result<HttpHeaders> parse_headers(std::string_view text) {
  HttpHeaders headers;
  while (true) {
    const std::optional<std::string_view> line = take_line(text);
    if (!line) return no_http("a header line is not ended properly");
    if (line->empty()) return headers;
    const std::size_t colon = line->find(':');
    const std::string_view name = line->substr(0, colon);
    if (colon == std::string_view::npos || !is_token(name)) return no_http("a header has no proper name");
    const std::string_view value = trimmed(line->substr(colon + 1));
    if (!is_field_value(value)) return no_http("a header holds a control byte");
    headers.add(std::string(name), std::string(value));
  }
}

template <typename Number>
std::optional<Number> parse_whole(std::string_view digits, int base) {
  Number number{};
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number, base);
  if (digits.empty() || error != std::errc{} || end != digits.data() + digits.size() || digits.front() == '-') {
    return std::nullopt;
  }
  return number;
}

bool lists(std::string_view value, std::string_view wanted) {
  while (!value.empty()) {
    const std::string_view one = value.substr(0, value.find(','));
    if (equal_ignoring_case(trimmed(one), wanted)) return true;
    value.remove_prefix(std::min(value.size(), one.size() + 1));
  }
  return false;
}

struct Announced {
  bool chunked = false;
  std::optional<std::uint64_t> length;
};

Result<Announced> announced_by(const HttpHeaders& headers) {
  Announced announced;
  if (headers.has("Transfer-Encoding")) {
    const std::string_view coding = headers.value_of("Transfer-Encoding");
    if (headers.count("Transfer-Encoding") > 1 || !equal_ignoring_case(coding, "chunked")) {
      return fail(ErrorCode::invalid_input, "the only transfer coding that we take is chunked");
    }
    if (headers.has("Content-Length")) return no_http("a message announces its length in two ways");
    announced.chunked = true;
  }
  if (headers.has("Content-Length")) {
    const std::string_view first = headers.value_of("Content-Length");
    for (const HttpHeader& header : headers) {
      if (equal_ignoring_case(header.name, "Content-Length") && header.value != first) {
        return no_http("a message announces two lengths");
      }
    }
    announced.length = parse_whole<std::uint64_t>(first, 10);
    if (!announced.length) return no_http("the announced length is no number");
  }
  return announced;
}

void append_headers(std::string& head, const HttpHeaders& headers) {
  for (const HttpHeader& header : headers) {
    head += header.name;
    head += ": ";
    head += header.value;
    head += "\r\n";
  }
}

bool is_ours(std::string_view name) {
  return equal_ignoring_case(name, "Host") || equal_ignoring_case(name, "Content-Length") ||
         equal_ignoring_case(name, "Transfer-Encoding") || equal_ignoring_case(name, "Connection");
}

std::string_view reason_of(int status) {
  switch (status) {
    case 100: return "Continue";
    case 200: return "OK";
    case 201: return "Created";
    case 204: return "No Content";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 410: return "Gone";
    case 413: return "Content Too Large";
    case 415: return "Unsupported Media Type";
    case 417: return "Expectation Failed";
    case 422: return "Unprocessable Content";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 503: return "Service Unavailable";
    case 505: return "HTTP Version Not Supported";
    default: return "Status";
  }
}

}  // namespace

Result<std::string> encode_request_head(const HttpRequest& request, std::string_view host) {
  const std::string target = request_target(request);
  if (!is_token(request.method)) return fail(ErrorCode::invalid_input, "a request has no proper method");
  if (!is_target(target)) {
    return fail(ErrorCode::invalid_input, "a request has no proper path: " + percent_encode(target));
  }
  for (const HttpHeader& header : request.headers) {
    if (!is_token(header.name) || !is_field_value(header.value) || is_ours(header.name)) {
      return fail(ErrorCode::invalid_input, "a request cannot carry the header " + percent_encode(header.name));
    }
  }
  std::string head = format("{} {} HTTP/1.1\r\nHost: {}\r\n", request.method, target, host);
  append_headers(head, request.headers);
  const bool may_have_body = request.method == "POST" || request.method == "PUT" || request.method == "PATCH";
  if (may_have_body || !request.body.empty()) head += format("Content-Length: {}\r\n", request.body.size());
  head += "\r\n";
  return head;
}

std::string encode_response_head(const HttpResponse& response, bool keep_open) {
  const std::string reason(reason_of(response.status));
  std::string head = format("HTTP/1.1 {} {}\r\n", response.status, reason);
  for (const HttpHeader& header : response.headers) {
    // A handler that put a line end into a value would let its caller write headers of his own.
    if (is_token(header.name) && is_field_value(header.value) && !is_ours(header.name)) {
      append_headers(head, HttpHeaders{header});
    }
  }
  if (response.status >= 200 && response.status != 204) {
    head += format("Content-Length: {}\r\n", response.body.size());
  }
  if (!keep_open) head += "Connection: close\r\n";
  head += "\r\n";
  return head;
}

Result<HttpRequest> parse_request_head(std::string_view head) {
  const std::optional<std::string_view> line = take_line(head);
  if (!line) return no_http("the first line is not ended properly");
  const std::size_t first_space = line->find(' ');
  const std::size_t last_space = line->rfind(' ');
  if (first_space == std::string_view::npos || first_space == last_space) {
    return no_http("the first line is no request");
  }
  const std::string_view version = line->substr(last_space + 1);
  if (version != "HTTP/1.1") {
    return version.starts_with("HTTP/") ? fail(ErrorCode::refused, "only HTTP/1.1 is spoken here")
                                        : no_http("the first line is no request");
  }
  HttpRequest request;
  request.method = line->substr(0, first_space);
  const std::string_view target = line->substr(first_space + 1, last_space - first_space - 1);
  if (!is_token(request.method) || !is_target(target)) return no_http("the first line is no request");
  const std::size_t question = target.find('?');
  request.path = target.substr(0, question);
  if (question != std::string_view::npos) {
    Result<HttpQuery> query = parse_query(target.substr(question + 1));
    if (!query) return std::unexpected(query.error());
    request.query = std::move(*query);
  }
  Result<HttpHeaders> headers = parse_headers(head);
  if (!headers) return std::unexpected(headers.error());
  request.headers = std::move(*headers);
  if (request.headers.count("Host") != 1) return no_http("a request must carry exactly one Host header");
  return request;
}

Result<HttpResponse> parse_response_head(std::string_view head) {
  const std::optional<std::string_view> line = take_line(head);
  if (!line) return no_http("the first line is not ended properly");
  // HTTP/1.1 200 OK; the reason may be absent
  const bool has_version = line->starts_with("HTTP/1.1 ") || line->starts_with("HTTP/1.0 ");
  if (!has_version || line->size() < 12 || (line->size() > 12 && (*line)[12] != ' ')) {
    return no_http("the first line is no answer");
  }
  const std::optional<int> status = parse_whole<int>(line->substr(9, 3), 10);
  if (!status || *status < 100) return no_http("the first line is no answer");
  Result<HttpHeaders> headers = parse_headers(head);
  if (!headers) return std::unexpected(headers.error());
  HttpResponse response{.status = *status, .headers = std::move(*headers)};
  // Before 1.1 a connection ends with its answer unless both sides say otherwise; saying it here
  // keeps the rest simple.
  if (line->starts_with("HTTP/1.0")) response.headers.set("Connection", "close");
  return response;
}

bool keeps_open(const HttpHeaders& headers) {
  for (const HttpHeader& header : headers) {
    if (equal_ignoring_case(header.name, "Connection") && lists(header.value, "close")) return false;
  }
  return true;
}

Result<BodyFraming> framing_of_request(const HttpRequest& head) {
  const Result<Announced> announced = announced_by(head.headers);
  if (!announced) return std::unexpected(announced.error());
  if (announced->chunked) return BodyFraming{BodyFraming::Kind::chunked, 0};
  if (announced->length.value_or(0) > 0) return BodyFraming{BodyFraming::Kind::length, *announced->length};
  return BodyFraming{};
}

Result<BodyFraming> framing_of_response(std::string_view request_method, const HttpResponse& head) {
  const bool has_none = request_method == "HEAD" || head.status < 200 || head.status == 204 || head.status == 304;
  if (has_none) return BodyFraming{};
  const Result<Announced> announced = announced_by(head.headers);
  if (!announced) return std::unexpected(announced.error());
  if (announced->chunked) return BodyFraming{BodyFraming::Kind::chunked, 0};
  if (!announced->length) return BodyFraming{BodyFraming::Kind::until_close, 0};
  return *announced->length == 0 ? BodyFraming{} : BodyFraming{BodyFraming::Kind::length, *announced->length};
}

Status ChunkedDecoder::end_size_line() {
  const std::string_view digits = trimmed(std::string_view(line_).substr(0, line_.find(';')));
  const std::optional<std::uint64_t> size = digits.size() > 8 ? std::nullopt : parse_whole<std::uint64_t>(digits, 16);
  if (!size) return no_http("a chunk has no proper size");
  left_ = *size;
  stage_ = *size == 0 ? Stage::trailer_line : Stage::data;
  line_.clear();
  return {};
}

Result<std::size_t> ChunkedDecoder::feed(std::string_view bytes, std::string& payload) {
  std::size_t used = 0;
  while (used < bytes.size() && stage_ != Stage::done) {
    if (stage_ == Stage::data) {
      const std::size_t count = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size() - used));
      payload.append(bytes.substr(used, count));
      used += count;
      left_ -= count;
      if (left_ == 0) {
        stage_ = Stage::data_end;
        left_ = 2;
      }
      continue;
    }
    const char letter = bytes[used++];
    if (stage_ == Stage::data_end) {
      if (letter != (left_ == 2 ? '\r' : '\n')) return no_http("a chunk is longer than it says");
      if (--left_ == 0) stage_ = Stage::size_line;
      continue;
    }
    // The end of a size line or of a trailer line.
    if (letter != '\n') {
      line_ += letter;
      if (line_.size() > kChunkLineBytesMax) return no_http("a chunk begins with too long a line");
      continue;
    }
    if (line_.empty() || line_.back() != '\r') return no_http("a chunk line is not ended properly");
    line_.pop_back();
    if (stage_ == Stage::size_line) {
      if (Status status = end_size_line(); !status) return std::unexpected(status.error());
      continue;
    }
    trailer_bytes_ += line_.size() + 2;
    if (trailer_bytes_ > kTrailerBytesMax) return no_http("a message ends with too many lines");
    if (line_.empty()) stage_ = Stage::done;
    line_.clear();
  }
  return used;
}

}  // namespace rekindle
