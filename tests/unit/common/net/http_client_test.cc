#include "common/net/http_client.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <thread>

#include "common/base/format.h"
#include "common/net/http_server.h"
#include "tests/support/certificates.h"
#include "tests/support/scripted_server.h"

namespace rekindle {
namespace {

using namespace std::chrono_literals;

const std::string kHello = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

HttpEndpoint at(const ScriptedServer& server) { return {.host = "127.0.0.1", .port = server.port()}; }

ScriptedServer::Script answer(std::string bytes) {
  return [bytes = std::move(bytes)](ScriptedPeer& peer) {
    peer.receive_until("\r\n\r\n");
    peer.send(bytes);
  };
}

// Keeps the connection open until the client or the test ends.
ScriptedServer::Script answer_and_stay(std::string bytes) {
  return [bytes = std::move(bytes)](ScriptedPeer& peer) {
    peer.receive_until("\r\n\r\n");
    peer.send(bytes);
    peer.receive_all();
  };
}

TEST(HttpClient, SendsTheRequestByteForByte) {
  std::string heard;
  ScriptedServer server({[&](ScriptedPeer& peer) {
    heard = peer.receive_until("\r\n\r\n{}");
    peer.send(kHello);
  }});
  HttpClient client(at(server));
  const Result<HttpResponse> response = client.send({.method = "PUT", .path = "/a", .body = "{}"});
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->body, "hello");
  EXPECT_EQ(heard, format("PUT /a HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Length: 2\r\n\r\n{{}}", server.port()));
}

TEST(HttpClient, UsesAConnectionAgain) {
  ScriptedServer server({[](ScriptedPeer& peer) {
    for (int i = 0; i < 3; ++i) {
      peer.receive_until("\r\n\r\n");
      peer.send(kHello);
    }
  }});
  HttpClient client(at(server));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.send({})->body, "hello");
  EXPECT_EQ(server.connections(), 1);
}

TEST(HttpClient, OpensAnotherConnectionWhenTheServerClosedTheKeptOne) {
  ScriptedServer server({answer(kHello), answer(kHello)});
  HttpClient client(at(server));
  EXPECT_EQ(client.send({})->body, "hello");
  EXPECT_EQ(client.send({})->body, "hello");
  EXPECT_EQ(server.connections(), 2);
}

TEST(HttpClient, RepeatsAGetThatAKeptConnectionSwallowed) {
  ScriptedServer server({[](ScriptedPeer& peer) {
                           peer.receive_until("\r\n\r\n");
                           peer.send(kHello);
                           peer.receive_until("\r\n\r\n");  // takes the second request and hangs up
                         },
                         answer(kHello)});
  HttpClient client(at(server));
  EXPECT_EQ(client.send({})->body, "hello");
  EXPECT_EQ(client.send({})->body, "hello");
}

TEST(HttpClient, DoesNotRepeatAPostThatAKeptConnectionSwallowed) {
  ScriptedServer server({[](ScriptedPeer& peer) {
                           peer.receive_until("\r\n\r\n");
                           peer.send(kHello);
                           peer.receive_until("\r\n\r\n");
                         },
                         answer(kHello)});
  HttpClient client(at(server));
  EXPECT_EQ(client.send({})->body, "hello");
  const Result<HttpResponse> second = client.send({.method = "POST"});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::unavailable);
  EXPECT_EQ(server.connections(), 1);
}

TEST(HttpClient, DoesNotKeepAConnectionThatTheServerWantsClosed) {
  ScriptedServer server(
      {answer_and_stay("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\na"), answer(kHello)});
  HttpClient client(at(server));
  EXPECT_EQ(client.send({})->body, "a");
  EXPECT_EQ(client.send({})->body, "hello");
  EXPECT_EQ(server.connections(), 2);
}

TEST(HttpClient, ReadsAnAnswerInWhateverPiecesItComes) {
  const std::string stream =
      "HTTP/1.1 100 Continue\r\n\r\n"
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
  ScriptedServer server({[&](ScriptedPeer& peer) {
    peer.receive_until("\r\n\r\n");
    for (const char letter : stream) peer.send(std::string_view(&letter, 1));
  }});
  HttpClient client(at(server));
  EXPECT_EQ(client.send({})->body, "abcde");
}

TEST(HttpClient, ReadsUntilTheEndWhereNoLengthIsGiven) {
  ScriptedServer server({answer("HTTP/1.1 200 OK\r\n\r\nall of it")});
  HttpClient client(at(server));
  EXPECT_EQ(client.send({})->body, "all of it");
}

TEST(HttpClient, TakesARefusalThatComesBeforeTheBodyWasRead) {
  ScriptedServer server({[](ScriptedPeer& peer) {
    peer.send("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    peer.receive_all();
  }});
  HttpClient client(at(server));
  EXPECT_EQ(client.send({.method = "POST", .body = std::string(100'000, 'x')})->status, 413);
}

TEST(HttpClient, AnAnswerCutShortIsNoAnswer) {
  for (const char* bytes : {"", "HTTP/1.1 200", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel",
                            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"}) {
    ScriptedServer server({answer(bytes)});
    HttpClient client(at(server));
    const Result<HttpResponse> response = client.send({});
    ASSERT_FALSE(response) << bytes;
    EXPECT_EQ(response.error().code, ErrorCode::unavailable) << response.error().message;
    EXPECT_EQ(response.error().retry, Retry::yes);
  }
}

TEST(HttpClient, SomethingElseThanHttpIsCorrupt) {
  ScriptedServer server({answer("SSH-2.0-OpenSSH_9.2\r\n\r\n")});
  HttpClient client(at(server));
  EXPECT_EQ(client.send({}).error().code, ErrorCode::corrupt);
}

TEST(HttpClient, LimitsWhatItReads) {
  ScriptedServer announced({answer_and_stay("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n")});
  EXPECT_EQ(HttpClient(at(announced)).send({}, {.body_bytes_max = 10}).error().code, ErrorCode::exhausted);
  ScriptedServer unannounced({answer_and_stay("HTTP/1.1 200 OK\r\n\r\n" + std::string(100, 'x'))});
  EXPECT_EQ(HttpClient(at(unannounced)).send({}, {.body_bytes_max = 10}).error().code, ErrorCode::exhausted);
  ScriptedServer head({answer_and_stay("HTTP/1.1 200 OK\r\nX: " + std::string(100'000, 'x'))});
  EXPECT_EQ(HttpClient(at(head)).send({}).error().code, ErrorCode::exhausted);
}

TEST(HttpClient, ASilentServerRunsIntoTheSilenceLimit) {
  ScriptedServer server({answer_and_stay("")});
  HttpClient client(at(server));
  EXPECT_EQ(client.send({}, {.silence = 20ms}).error().code, ErrorCode::deadline_exceeded);
}

// From when on no descriptor can be opened, to its end.
class NoDescriptorLeft {
 public:
  NoDescriptorLeft() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit none{.rlim_cur = 0, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptorLeft() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST(HttpClient, WithoutADescriptorLeftACallFailsAndTheProcessLives) {
  ScriptedServer server({[](ScriptedPeer& peer) {
    for (int i = 0; i < 3; ++i) {
      peer.receive_until("\r\n\r\n");
      peer.send(kHello);
    }
  }});
  HttpClient client(at(server));
  const std::stop_source stop;
  // Its connection is kept, and the next call needs a descriptor only for being stopped.
  EXPECT_TRUE(client.send({}, {}, stop.get_token()));
  HttpEndpoint by_name = at(server);
  by_name.host = "localhost";
  {
    const NoDescriptorLeft now;
    EXPECT_EQ(client.send({}, {}, stop.get_token()).error().code, ErrorCode::exhausted);
    EXPECT_EQ(client.stream({}, {}, {}, stop.get_token()).error().code, ErrorCode::exhausted);
    EXPECT_EQ(HttpClient(by_name).send({}).error().code, ErrorCode::exhausted);
    EXPECT_FALSE(HttpServer::start({.address = "127.0.0.1"}, {}));
  }
  EXPECT_TRUE(client.send({}, {}, stop.get_token()));
}

TEST(HttpClient, ATricklingServerRunsIntoTheTotalLimit) {
  ScriptedServer server({[](ScriptedPeer& peer) {
    peer.send("HTTP/1.1 200 OK\r\n\r\n");
    while (peer.send("more and more ")) {
    }
  }});
  HttpClient client(at(server));
  EXPECT_EQ(client.send({}, {.silence = 10s, .total = 50ms}).error().code, ErrorCode::deadline_exceeded);
}

TEST(HttpClient, ATlsHandshakeThatNeverEndsRunsIntoTheConnectLimit) {
  ScriptedServer server({[](ScriptedPeer& peer) { peer.receive_all(); }});
  HttpEndpoint endpoint = at(server);
  endpoint.tls = client_context(TestAuthority().pem());
  HttpClient client(std::move(endpoint));
  EXPECT_EQ(client.send({}, {.connect = 20ms}).error().code, ErrorCode::deadline_exceeded);
}

TEST(HttpClient, ATlsHandshakeThatIsCutIsUnavailable) {
  ScriptedServer server({[](ScriptedPeer& peer) { peer.send("\x16\x03\x03"); }});
  HttpEndpoint endpoint = at(server);
  endpoint.tls = client_context(TestAuthority().pem());
  HttpClient client(std::move(endpoint));
  const Result<HttpResponse> response = client.send({});
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::unavailable) << response.error().message;
}

TEST(HttpClient, NobodyListeningIsUnavailable) {
  std::uint16_t port = 0;
  {
    port = local_port(listen_on("127.0.0.1", 0)->get());
  }
  HttpClient client({.host = "127.0.0.1", .port = port});
  const Result<HttpResponse> response = client.send({});
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::unavailable);
  EXPECT_EQ(response.error().retry, Retry::yes);
  EXPECT_NE(response.error().message.find(format("127.0.0.1:{}", port)), std::string::npos);
}

TEST(HttpClient, ANameWithoutAnAddressIsUnavailable) {
  HttpClient client({.host = "no-such-host.invalid", .port = 1});
  const Result<HttpResponse> response = client.send({});
  ASSERT_FALSE(response);
  EXPECT_NE(response.error().message.find("no-such-host.invalid"), std::string::npos) << response.error().message;
}

TEST(HttpClient, StoppingEndsACallThatWaits) {
  ScriptedServer server({answer_and_stay("")});
  HttpClient client(at(server));
  std::stop_source stop;
  std::thread stopper([&] {
    while (server.connections() == 0) std::this_thread::yield();
    stop.request_stop();
  });
  const Result<HttpResponse> response = client.send({}, {.silence = 1h, .total = 1h}, stop.get_token());
  stopper.join();
  ASSERT_FALSE(response);
  EXPECT_TRUE(is_stopped(response.error()));
  EXPECT_EQ(response.error().retry, Retry::no);
}

TEST(HttpClient, AStoppedTokenEndsACallAtOnce) {
  ScriptedServer server({answer_and_stay("")});
  HttpClient client(at(server));
  std::stop_source stop;
  stop.request_stop();
  EXPECT_TRUE(is_stopped(client.send({}, {}, stop.get_token()).error()));
}

TEST(HttpStream, GivesBytesAsTheyComeAndEndsWithTheAnswer) {
  ScriptedServer server({[](ScriptedPeer& peer) {
    peer.receive_until("\r\n\r\n");
    peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\none\n\r\n");
    peer.send("4\r\ntwo\n\r\n0\r\n\r\n");
  }});
  HttpClient client(at(server));
  std::string got;
  int status = 0;
  const Result<HttpStreamEnd> end = client.stream({},
                                                  {.on_head =
                                                       [&](const HttpResponse& head) {
                                                         status = head.status;
                                                         return true;
                                                       },
                                                   .on_bytes =
                                                       [&](std::string_view bytes) {
                                                         got += bytes;
                                                         return true;
                                                       }},
                                                  {});
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(status, 200);
  EXPECT_EQ(got, "one\ntwo\n");
  EXPECT_FALSE(end->by_sink);
}

TEST(HttpStream, TheSinkCanStopIt) {
  ScriptedServer server({answer_and_stay("HTTP/1.1 200 OK\r\n\r\nenough")});
  HttpClient client(at(server));
  const Result<HttpStreamEnd> end = client.stream({}, {.on_bytes = [](std::string_view) { return false; }}, {});
  ASSERT_TRUE(end);
  EXPECT_TRUE(end->by_sink);
}

TEST(HttpStream, ARefusalComesWholeAndNotAsAStream) {
  ScriptedServer server({answer("HTTP/1.1 410 Gone\r\nContent-Length: 4\r\n\r\ngone")});
  HttpClient client(at(server));
  bool streamed = false;
  const HttpStreamSink sink{.on_bytes = [&](std::string_view) { return streamed = true; }};
  const Result<HttpStreamEnd> end = client.stream({}, sink, {});
  ASSERT_TRUE(end);
  EXPECT_EQ(end->head.status, 410);
  EXPECT_EQ(end->head.body, "gone");
  EXPECT_FALSE(streamed);
}

TEST(HttpStream, QuietTimesAreToldAndCanStopIt) {
  ScriptedServer server({answer_and_stay("HTTP/1.1 200 OK\r\n\r\n")});
  HttpClient client(at(server));
  int quiet = 0;
  const Result<HttpStreamEnd> end =
      client.stream({}, {.on_quiet = [&] { return ++quiet < 3; }, .quiet_interval = 2ms}, {.silence = 1h, .total = 0s});
  ASSERT_TRUE(end);
  EXPECT_TRUE(end->by_sink);
  EXPECT_EQ(quiet, 3);
}

TEST(HttpStream, SilenceEndsIt) {
  ScriptedServer server({answer_and_stay("HTTP/1.1 200 OK\r\n\r\n")});
  HttpClient client(at(server));
  const Result<HttpStreamEnd> end = client.stream({}, {}, {.silence = 20ms, .total = 0s});
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, ErrorCode::deadline_exceeded);
}

TEST(HttpStream, BreakingOffIsUnavailable) {
  ScriptedServer server({answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\non")});
  HttpClient client(at(server));
  const Result<HttpStreamEnd> end = client.stream({}, {}, {});
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, ErrorCode::unavailable);
}

TEST(HttpStream, StoppingEndsIt) {
  ScriptedServer server({answer_and_stay("HTTP/1.1 200 OK\r\n\r\nfirst")});
  HttpClient client(at(server));
  std::stop_source stop;
  const HttpStreamSink sink{.on_bytes = [&](std::string_view) {
    stop.request_stop();
    return true;
  }};
  const Result<HttpStreamEnd> end = client.stream({}, sink, {.silence = 1h, .total = 0s}, stop.get_token());
  ASSERT_FALSE(end);
  EXPECT_TRUE(is_stopped(end.error()));
}

}  // namespace
}  // namespace rekindle
