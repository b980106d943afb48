// HTTP/1.1 on the wire, as pure functions over bytes: heads, framing, chunks. Strict, because both
// sides of a lenient parser can be made to disagree: no obsolete line folding, no bare line feeds,
// lengths are digits only, a message has one framing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/http_message.h"

namespace rekindle {

// A request with its body replaced by what announces it. invalid_input when a part would break the
// framing (a line end in a header, a space in the path) or when the caller set a header that is
// ours (Host, Content-Length, Transfer-Encoding, Connection).
Result<std::string> encode_request_head(const HttpRequest& request, std::string_view host);
std::string encode_response_head(const HttpResponse& response, bool keep_open);

// `head` ends with the empty line.
Result<HttpRequest> parse_request_head(std::string_view head);
Result<HttpResponse> parse_response_head(std::string_view head);

// Whether the sender of this head keeps the connection open afterwards.
bool keeps_open(const HttpHeaders& headers);

struct BodyFraming {
  enum class Kind { none, length, chunked, until_close };
  Kind kind = Kind::none;
  std::uint64_t length = 0;

  bool operator==(const BodyFraming&) const = default;
};

Result<BodyFraming> framing_of_request(const HttpRequest& head);
Result<BodyFraming> framing_of_response(std::string_view request_method, const HttpResponse& head);

// Takes the chunked coding apart. feed() gives the payload of what was fed through `take`; it stops
// at the end of the body.
class ChunkedDecoder {
 public:
  // Appends payload to `payload` and returns how many bytes were used; fewer than given only when
  // done().
  Result<std::size_t> feed(std::string_view bytes, std::string& payload);
  bool done() const { return stage_ == Stage::done; }

 private:
  enum class Stage { size_line, data, data_end, trailer_line, done };

  Status end_size_line();

  Stage stage_ = Stage::size_line;
  std::string line_;
  std::uint64_t left_ = 0;  // of the current chunk; of the line end behind it in data_end
  std::size_t trailer_bytes_ = 0;
};

}  // namespace rekindle
