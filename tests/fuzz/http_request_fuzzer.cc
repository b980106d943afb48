// What a client sends to a server of ours, in portions of any size, one request behind the other.
// Where the stream is cut changes nothing; a request that is accepted is spelled again with the
// same meaning, has one framing and a body within its limit.
#include <optional>
#include <utility>
#include <vector>

#include "common/net/http_reader.h"
#include "common/net/http_server.h"
#include "tests/fuzz/support/cost.h"
#include "tests/fuzz/support/memory_connection.h"

namespace rekindle {
namespace {

constexpr Duration kPatience = std::chrono::hours(1);
constexpr Instant kDeadline = Instant::max();

struct Heard {
  std::vector<HttpRequest> requests;
  std::optional<ErrorCode> refused;

  bool operator==(const Heard&) const = default;
};

// As the server does it.
Result<HttpRequest> read_request(HttpReader& reader, const std::string& head, std::size_t body_bytes_max) {
  Result<HttpRequest> request = parse_request_head(head);
  if (!request) return request;
  const Result<BodyFraming> framing = framing_of_request(*request);
  if (!framing) return std::unexpected(framing.error());
  reader.begin_body(*framing);
  Result<std::string> body = reader.read_body(body_bytes_max, kPatience, kDeadline, -1);
  if (!body) return std::unexpected(body.error());
  request->body = std::move(*body);
  return request;
}

Heard hear(std::string_view stream, std::size_t portion, const HttpServerSettings& limits) {
  MemoryConnection connection(stream, portion);
  HttpReader reader(connection);
  Heard heard;
  for (;;) {
    const Result<std::string> head = reader.read_head(limits.head_bytes_max, kPatience, kDeadline, -1);
    if (head && head->empty()) return heard;
    Result<HttpRequest> request =
        head ? read_request(reader, *head, limits.body_bytes_max) : std::unexpected(head.error());
    if (!request) {
      expect_sentence(request.error());
      heard.refused = request.error().code;
      return heard;
    }
    heard.requests.push_back(std::move(*request));
  }
}

bool is_ours(std::string_view name) {
  for (const char* ours : {"Host", "Content-Length", "Transfer-Encoding", "Connection"}) {
    if (equal_ignoring_case(name, ours)) return true;
  }
  return false;
}

HttpHeaders without_ours(const HttpHeaders& headers) {
  HttpHeaders others;
  for (const HttpHeader& header : headers) {
    if (!is_ours(header.name)) others.add(header.name, header.value);
  }
  return others;
}

void check_request(HttpRequest request, std::size_t bytes) {
  RK_ASSERT(request.body.size() <= bytes && request.headers.size() <= bytes && request.query.size() <= bytes);
  RK_ASSERT(request.path.starts_with('/') && request.headers.count("Host") == 1);
  RK_ASSERT(!request.headers.has("Transfer-Encoding") || !request.headers.has("Content-Length"));
  for (const HttpHeader& header : request.headers)
    RK_ASSERT((header.name + header.value).find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos);
  request.headers = without_ours(request.headers);
  const Result<std::string> head = encode_request_head(request, "somewhere");
  RK_ASSERT(head.has_value());
  const Heard again = hear(*head + request.body, bytes + head->size() + 1, {});
  RK_ASSERT(again.requests.size() == 1 && !again.refused);
  const HttpRequest& said = again.requests.front();
  RK_ASSERT(said.method == request.method && said.path == request.path && said.query == request.query);
  RK_ASSERT(said.body == request.body && without_ours(said.headers) == request.headers);
}

}  // namespace
}  // namespace rekindle

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  using namespace rekindle;
  const HttpServerSettings limits;
  const std::string head = "POST /v1/sync HTTP/1.1\r\nHost: a\r\n";
  const auto read = [&](std::string_view what, const std::string& stream, std::size_t portion) {
    expect_cost(stream.size(), [&] { hear(stream, portion, limits); }, {}, what);
  };
  const std::size_t most = limits.head_bytes_max;
  read("many headers", repeated(head, "a:b\r\n", "\r\n", most), most);
  read("many lengths", repeated(head, "Content-Length:0\r\n", "\r\n", most), most);
  read("a long query", repeated("GET /?a", "&a=%41", " HTTP/1.1\r\nHost: a\r\n\r\n", most), most);
  read("a head without an end", repeated(head, "a:b\r\n", "", 2 * most), most);
  read("a head in small portions", repeated(head, "a:b\r\n", "\r\n", most), 16);
  read("many requests", repeated("", head + "\r\n", "", 4 << 20), 1 << 20);
  const std::string length = head + "Content-Length: " + std::to_string(limits.body_bytes_max) + "\r\n\r\n";
  read("a body", repeated(length, "x", "", length.size() + limits.body_bytes_max), 1 << 12);
  const std::string chunked = head + "Transfer-Encoding: chunked\r\n\r\n";
  read("many chunks", repeated(chunked, "1\r\nx\r\n", "0\r\n\r\n", 4 << 20), 1 << 16);
  read("chunks with long lines", repeated(chunked, "1;" + std::string(1000, 'x') + "\r\nx\r\n", "", 4 << 20), 1 << 16);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace rekindle;
  std::string_view stream = text_of(data, bytes);
  const std::size_t portion = 1 + take_number<std::uint8_t>(stream);
  // Small enough for an input to reach them.
  const HttpServerSettings limits{.head_bytes_max = 1024, .body_bytes_max = 512};
  Heard whole;
  expect_cost(bytes, [&] { whole = hear(stream, stream.size() + 1, limits); });
  Heard cut;
  expect_cost(bytes, [&] { cut = hear(stream, portion, limits); });
  RK_ASSERT(cut == whole);
  for (HttpRequest& request : whole.requests) {
    RK_ASSERT(request.body.size() <= limits.body_bytes_max);
    check_request(std::move(request), bytes);
  }
  return 0;
}
