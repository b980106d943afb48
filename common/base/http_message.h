// HTTP requests and responses as values: what the pure parts build and read, and what common/net
// sends and serves. Nothing here knows a socket.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/error.h"

namespace rekindle {

struct HttpHeader {
  std::string name;
  std::string value;

  bool operator==(const HttpHeader&) const = default;
};

// Headers in the order in which they were added. Names are compared without regard to case.
class HttpHeaders {
 public:
  HttpHeaders() = default;
  HttpHeaders(std::initializer_list<HttpHeader> headers) : headers_(headers) {}

  void add(std::string name, std::string value);
  void set(std::string name, std::string value);  // replaces every earlier value of that name

  // The first value of that name; empty when there is none.
  std::string_view value_of(std::string_view name) const;
  bool has(std::string_view name) const;
  std::size_t count(std::string_view name) const;

  auto begin() const { return headers_.begin(); }
  auto end() const { return headers_.end(); }
  std::size_t size() const { return headers_.size(); }
  bool operator==(const HttpHeaders&) const = default;

 private:
  std::vector<HttpHeader> headers_;
};

using HttpQuery = std::vector<std::pair<std::string, std::string>>;

// `path` is as it stands on the wire (segments already percent-encoded); `query` holds decoded
// names and values.
struct HttpRequest {
  std::string method = "GET";
  std::string path = "/";
  HttpQuery query;
  HttpHeaders headers;
  std::string body;

  bool operator==(const HttpRequest&) const = default;
};

struct HttpResponse {
  int status = 0;
  HttpHeaders headers;
  std::string body;

  bool operator==(const HttpResponse&) const = default;
};

// Everything but letters, digits and -._~ as %XX.
std::string percent_encode(std::string_view text);

// The opposite, with '+' taken as a space where `plus_is_space`. Refuses a '%' that is not followed
// by two hex digits.
Result<std::string> percent_decode(std::string_view text, bool plus_is_space);

// "/path?name=value&..." with the query encoded.
std::string request_target(const HttpRequest& request);

// The part behind '?' into names and values.
Result<HttpQuery> parse_query(std::string_view text);

bool equal_ignoring_case(std::string_view left, std::string_view right);

}  // namespace rekindle
