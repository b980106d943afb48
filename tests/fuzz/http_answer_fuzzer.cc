// What a server answers to a client of ours, in portions of any size. Where the stream is cut
// changes nothing; an answer that is accepted is spelled again with the same meaning and has a body
// within its limit.
#include <optional>
#include <tuple>
#include <utility>

#include "common/net/http_client.h"
#include "common/net/http_reader.h"
#include "tests/fuzz/support/cost.h"
#include "tests/fuzz/support/memory_connection.h"

namespace rekindle {
namespace {

constexpr Duration kPatience = std::chrono::hours(1);
constexpr Instant kDeadline = Instant::max();

Result<HttpResponse> hear(std::string_view method, std::string_view stream, std::size_t portion,
                          const HttpLimits& limits) {
  MemoryConnection connection(stream, portion);
  HttpReader reader(connection);
  const Result<std::string> head = reader.read_head(limits.head_bytes_max, kPatience, kDeadline, -1);
  if (!head) return std::unexpected(head.error());
  Result<HttpResponse> response = parse_response_head(*head);
  if (!response) return response;
  const Result<BodyFraming> framing = framing_of_response(method, *response);
  if (!framing) return std::unexpected(framing.error());
  reader.begin_body(*framing);
  Result<std::string> body = reader.read_body(limits.body_bytes_max, kPatience, kDeadline, -1);
  if (!body) return std::unexpected(body.error());
  response->body = std::move(*body);
  return response;
}

bool same(const Result<HttpResponse>& left, const Result<HttpResponse>& right) {
  if (left.has_value() != right.has_value()) return false;
  return left ? *left == *right : left.error().code == right.error().code;
}

void check_answer(std::string_view method, const HttpResponse& response) {
  RK_ASSERT(response.status >= 100 && response.status <= 999);
  for (const HttpHeader& header : response.headers)
    RK_ASSERT((header.name + header.value).find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos);
  const bool open = keeps_open(response.headers);
  const std::string head = encode_response_head(response, open);
  const Result<HttpResponse> again = hear(method, head + response.body, head.size() + response.body.size() + 1, {});
  RK_ASSERT(again.has_value() && again->status == response.status && keeps_open(again->headers) == open);
  RK_ASSERT(again->body == response.body);
}

}  // namespace
}  // namespace rekindle

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  using namespace rekindle;
  const HttpLimits limits;
  const std::string head = "HTTP/1.1 200 OK\r\n";
  const auto read = [&](std::string_view what, const std::string& stream, std::size_t portion) {
    expect_cost(stream.size(), [&] { std::ignore = hear("GET", stream, portion, limits); }, {}, what);
  };
  const std::size_t most = limits.head_bytes_max;
  read("many headers", repeated(head, "a:b\r\n", "\r\n", most), most);
  read("many lengths", repeated(head, "Content-Length:0\r\n", "\r\n", most), most);
  read("many connections", repeated(head, "Connection:,,,,\r\n", "\r\n", most), most);
  const std::size_t large = 8 << 20;
  read("a body until the end", repeated(head + "\r\n", "x", "", large), 1 << 14);
  const std::string chunked = head + "Transfer-Encoding: chunked\r\n\r\n";
  read("many chunks", repeated(chunked, "1\r\nx\r\n", "0\r\n\r\n", large), 1 << 16);
  read("many trailers", repeated(chunked + "0\r\n", "a: b\r\n", "\r\n", large), 1 << 16);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace rekindle;
  std::string_view stream = text_of(data, bytes);
  const auto choice = take_number<std::uint8_t>(stream);
  const std::string_view method = choice % 4 == 0 ? "HEAD" : "GET";
  const HttpLimits limits{.head_bytes_max = 1024, .body_bytes_max = 512};
  Result<HttpResponse> whole;
  expect_cost(bytes, [&] { whole = hear(method, stream, stream.size() + 1, limits); });
  Result<HttpResponse> cut;
  expect_cost(bytes, [&] { cut = hear(method, stream, 1 + choice / 4, limits); });
  RK_ASSERT(same(whole, cut));
  if (!whole) {
    expect_sentence(whole.error());
    return 0;
  }
  RK_ASSERT(whole->body.size() <= limits.body_bytes_max && whole->body.size() <= bytes);
  check_answer(method, *whole);
  return 0;
}
