// Our client against a server that somebody else wrote, and our server against a client that
// somebody else wrote: what two halves of the same hand understand in the same wrong way shows
// here.
#include <gtest/gtest.h>
#include <httplib.h>

#include <thread>

#include "common/base/format.h"
#include "common/net/http_client.h"
#include "common/net/http_server.h"
#include "tests/support/certificates.h"

namespace rekindle {
namespace {

using namespace std::chrono_literals;

TEST(HttpInterop, OurClientTalksToAnotherServer) {
  httplib::Server server;
  server.Put("/echo", [](const httplib::Request& request, httplib::Response& response) {
    response.set_content(request.get_param_value("q") + request.body, "text/plain");
  });
  server.Get("/stream", [](const httplib::Request&, httplib::Response& response) {
    response.set_chunked_content_provider("text/plain", [](std::size_t offset, httplib::DataSink& sink) {
      if (offset >= 30) {
        sink.done();
      } else {
        sink.write("0123456789", 10);
      }
      return true;
    });
  });
  const int port = server.bind_to_any_port("127.0.0.1");
  std::thread thread([&] { server.listen_after_bind(); });
  while (!server.is_running()) std::this_thread::yield();

  HttpEndpoint endpoint{.host = "127.0.0.1", .port = static_cast<std::uint16_t>(port)};
  HttpClient client(endpoint);
  const std::string large(3'000'000, 'x');
  const Result<HttpResponse> echoed =
      client.send({.method = "PUT", .path = "/echo", .query = {{"q", "a&b c"}}, .body = large});
  const Result<HttpResponse> missing = client.send({.path = "/missing"});
  std::string streamed;
  const Result<HttpStreamEnd> end = client.stream({.path = "/stream"},
                                                  {.on_bytes =
                                                       [&](std::string_view bytes) {
                                                         streamed += bytes;
                                                         return true;
                                                       }},
                                                  {});
  // hangs up, since that server waits for its idle connections when it stops
  client.replace_endpoint(endpoint);
  server.stop();
  thread.join();

  ASSERT_TRUE(echoed) << echoed.error().message;
  EXPECT_EQ(echoed->body, "a&b c" + large);
  ASSERT_TRUE(missing);
  EXPECT_EQ(missing->status, 404);
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(streamed, "012345678901234567890123456789");
}

TEST(HttpInterop, AnotherClientTalksToOurServer) {
  const TestAuthority authority;
  auto server = HttpServer::start(
      {.address = "127.0.0.1", .tls = server_context(authority.server({.dns = {"localhost"}, .ip = {"127.0.0.1"}}))},
      [](const ServedRequest& served) {
        return HttpResponse{
            .status = 200,
            .headers = {{"Content-Type", "text/plain"}},
            .body = format("{} {} {}", served.request.method, request_target(served.request), served.request.body)};
      });
  ASSERT_TRUE(server) << server.error().message;

  httplib::SSLClient client("127.0.0.1", (*server)->port());
  // what this library checks is not what is tested here
  client.enable_server_certificate_verification(false);
  client.set_keep_alive(true);
  for (int i = 0; i < 3; ++i) {
    const httplib::Result posted = client.Post("/a?q=b%20c", "body", "text/plain");
    ASSERT_TRUE(posted) << httplib::to_string(posted.error());
    EXPECT_EQ(posted->body, "POST /a?q=b%20c body");
  }
  const std::string large(3'000'000, 'x');
  const httplib::Result chunked = client.Post(
      "/chunked",
      [&](std::size_t offset, httplib::DataSink& sink) {
        if (offset < large.size()) {
          sink.write(large.data(), large.size());
        } else {
          sink.done();
        }
        return true;
      },
      "text/plain");
  ASSERT_TRUE(chunked) << httplib::to_string(chunked.error());
  EXPECT_EQ(chunked->body.size(), std::string("POST /chunked ").size() + large.size());
  EXPECT_EQ(client.Head("/")->body, "");
}

}  // namespace
}  // namespace rekindle
