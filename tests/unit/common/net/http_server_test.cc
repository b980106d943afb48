#include "common/net/http_server.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "common/base/format.h"
#include "common/net/http_client.h"
#include "common/net/socket.h"
#include "common/system/clock.h"
#include "tests/support/certificates.h"

namespace rekindle {
namespace {

using namespace std::chrono_literals;

// A client that says exactly the bytes of a test.
class RawClient {
 public:
  explicit RawClient(std::uint16_t port)
      : descriptor_(connect_to("127.0.0.1", port, monotonic_now() + 10s, -1).value()) {}

  // False when the server hangs up on it.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::send(descriptor_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count < 0) {
        if (errno != EAGAIN) return false;
        static_cast<void>(wait_for(descriptor_.get(), true, monotonic_now() + 10s, -1));
        continue;
      }
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }

  // Until what was heard contains `part`, or the server hangs up.
  std::string receive(std::string_view part = "the server never says this") {
    std::string heard;
    while (heard.find(part) == std::string::npos) {
      char buffer[4096];
      const ssize_t count = recv(descriptor_.get(), buffer, sizeof buffer, 0);
      if (count == 0 || (count < 0 && errno != EAGAIN)) break;
      if (count > 0) heard.append(buffer, static_cast<std::size_t>(count));
      if (count < 0 && *wait_for(descriptor_.get(), false, monotonic_now() + 10s, -1) != Readiness::ready) {
        ADD_FAILURE() << "the server neither speaks nor hangs up";
        break;
      }
    }
    return heard;
  }

  void hang_up() { descriptor_.reset(); }

 private:
  FileDescriptor descriptor_;
};

// Where handlers stop until the test lets them on.
class Gate {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    ++arrivals_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
  }
  void wait_for_arrivals(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return arrivals_ >= count; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int arrivals_ = 0;
  bool open_ = false;
};

HttpResponse echo(const ServedRequest& served) {
  std::string body = format("{} {} {}", served.request.method, request_target(served.request), served.request.body);
  return {.status = 200, .headers = {{"Content-Type", "text/plain"}}, .body = std::move(body)};
}

class HttpServerTest : public testing::Test {
 protected:
  void serve(HttpServerSettings settings = {}, HttpServer::Handler handler = echo) {
    settings.address = "127.0.0.1";
    auto started = HttpServer::start(std::move(settings), std::move(handler), [this](const Error& error) {
      const std::lock_guard lock(mutex);
      troubles.push_back(error.message);
      told.notify_all();
    });
    ASSERT_TRUE(started) << started.error().message;
    server = std::move(*started);
  }

  // The first line of the answer to these bytes, and whether the server hung up behind it.
  std::string status_of(std::string_view bytes) {
    RawClient client(server->port());
    client.send(bytes);
    const std::string heard = client.receive();
    return heard.substr(0, heard.find('\r'));
  }

  void wait_for_trouble(std::string_view part) {
    std::unique_lock lock(mutex);
    told.wait(lock, [&] {
      return std::ranges::any_of(troubles, [&](const std::string& each) { return each.contains(part); });
    });
  }

  // Whoever spoke before has been looked at when this returns, where there is one worker.
  void serve_another() {
    EXPECT_EQ(status_of("GET /another HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"), "HTTP/1.1 200 OK");
  }

  // A clock for a server that stands until the test moves it.
  std::function<Instant()> standing_clock() {
    return [this] { return Instant(1h) + elapsed.load(); };
  }

  std::mutex mutex;
  std::condition_variable told;
  std::vector<std::string> troubles;  // guarded by mutex
  std::atomic<Duration> elapsed{Duration::zero()};
  std::unique_ptr<HttpServer> server;
};

TEST_F(HttpServerTest, GivesMethodPathQueryHeadersAndBody) {
  ServedRequest seen;
  serve({}, [&](const ServedRequest& served) {
    seen = served;
    return HttpResponse{.status = 201, .headers = {{"X-A", "b"}}, .body = "made"};
  });
  HttpClient client({.host = "127.0.0.1", .port = server->port()});
  const Result<HttpResponse> response = client.send(
      {.method = "POST", .path = "/v1/sync", .query = {{"a", "b c"}}, .headers = {{"X-Q", "1"}}, .body = "{}"});
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->status, 201);
  EXPECT_EQ(response->headers.value_of("x-a"), "b");
  EXPECT_EQ(response->body, "made");
  EXPECT_EQ(seen.request.method, "POST");
  EXPECT_EQ(seen.request.path, "/v1/sync");
  EXPECT_EQ(seen.request.query, (HttpQuery{{"a", "b c"}}));
  EXPECT_EQ(seen.request.headers.value_of("x-q"), "1");
  EXPECT_EQ(seen.request.body, "{}");
  EXPECT_EQ(seen.peer_uri, std::nullopt);
  EXPECT_TRUE(seen.peer_address.starts_with("127.0.0.1:"));
}

TEST_F(HttpServerTest, AnswersSeveralRequestsOnOneConnection) {
  serve();
  RawClient client(server->port());
  for (int i = 0; i < 3; ++i) {
    client.send(format("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", i));
    EXPECT_NE(client.receive(format("GET /{}", i)), "");
  }
}

TEST_F(HttpServerTest, AnswersRequestsThatCameInOnePiece) {
  serve();
  RawClient client(server->port());
  client.send("GET /a HTTP/1.1\r\nHost: h\r\n\r\nGET /b HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  const std::string heard = client.receive();
  EXPECT_NE(heard.find("GET /a"), std::string::npos);
  EXPECT_NE(heard.find("GET /b"), std::string::npos);
  EXPECT_NE(heard.find("Connection: close"), std::string::npos);
}

TEST_F(HttpServerTest, ReadsARequestInWhateverPiecesItComes) {
  serve();
  RawClient client(server->port());
  for (const char letter :
       std::string_view("POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n")) {
    client.send(std::string_view(&letter, 1));
  }
  EXPECT_NE(client.receive("POST /a hi").find("200 OK"), std::string::npos);
}

TEST_F(HttpServerTest, AHeadRequestGetsNoBody) {
  serve();
  RawClient client(server->port());
  client.send("HEAD / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(client.receive().ends_with("\r\n\r\n"));
}

TEST_F(HttpServerTest, SaysContinueToAClientThatAsksFirst) {
  serve();
  RawClient client(server->port());
  client.send("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(client.receive("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("ok");
  EXPECT_NE(client.receive("POST / ok").find("200 OK"), std::string::npos);
}

TEST_F(HttpServerTest, RefusesWhatIsNoProperRequest) {
  serve();
  EXPECT_EQ(status_of("rubbish\r\n\r\n"), "HTTP/1.1 400 Bad Request");
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\n\r\n"), "HTTP/1.1 400 Bad Request");
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: h\r\nContent-Length: -2\r\n\r\n"), "HTTP/1.1 400 Bad Request");
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"),
            "HTTP/1.1 400 Bad Request");
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n-2\r\nab\r\n"),
            "HTTP/1.1 400 Bad Request");
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n"), "HTTP/1.1 501 Not Implemented");
  EXPECT_EQ(status_of("GET / HTTP/1.0\r\nHost: h\r\n\r\n"), "HTTP/1.1 505 HTTP Version Not Supported");
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nHost: h\r\nExpect: more\r\nContent-Length: 2\r\n\r\n"),
            "HTTP/1.1 417 Expectation Failed");
}

TEST_F(HttpServerTest, RefusesWhatIsTooLarge) {
  serve({.head_bytes_max = 1000, .body_bytes_max = 1000});
  EXPECT_EQ(status_of(format("GET / HTTP/1.1\r\nHost: h\r\nX: {}\r\n\r\n", std::string(2000, 'x'))),
            "HTTP/1.1 431 Request Header Fields Too Large");
  EXPECT_EQ(status_of("GET /" + std::string(2000, 'x')), "HTTP/1.1 431 Request Header Fields Too Large");
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1001\r\n\r\n"), "HTTP/1.1 413 Content Too Large");
  const std::string chunked = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n";
  EXPECT_EQ(status_of(chunked + std::string(2000, 'x')), "HTTP/1.1 413 Content Too Large");
}

TEST_F(HttpServerTest, RefusesAClientThatTakesItsTime) {
  serve({.head_limit = 20ms, .body_limit = 1h});
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost:"), "HTTP/1.1 408 Request Timeout");
  serve({.head_limit = 1h, .body_limit = 20ms});
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nhalf"), "HTTP/1.1 408 Request Timeout");
}

// Its bytes are always there already, so that nobody ever waits for it.
TEST_F(HttpServerTest, AClientThatIsNeverSilentGetsNoMoreTimeForABodyThanOthers) {
  serve({.body_limit = 0s});
  RawClient client(server->port());
  client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbody");
  const std::string heard = client.receive();
  EXPECT_TRUE(heard.contains("408 Request Timeout") && heard.contains("a body did not end in time")) << heard;
}

TEST_F(HttpServerTest, TheTimeForAHeadBeginsWithTheConnectionAndNotBehindTheHandshake) {
  serve({.workers = 1, .head_limit = 10s, .now = standing_clock()});
  RawClient slow(server->port());
  serve_another();
  elapsed = 6s;
  slow.send("G");
  serve_another();
  elapsed = 11s;
  serve_another();
  EXPECT_NE(slow.receive("\r\n").find("408 Request Timeout"), std::string::npos);
}

TEST_F(HttpServerTest, HangsUpOnAConnectionThatSaysNothing) {
  serve({.head_limit = 20ms});
  RawClient client(server->port());
  EXPECT_EQ(client.receive(), "");
}

TEST_F(HttpServerTest, HangsUpOnAnIdleConnection) {
  serve({.idle_limit = 20ms});
  RawClient client(server->port());
  client.send("GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_TRUE(client.receive().ends_with("GET /a "));
}

TEST_F(HttpServerTest, HangsUpOnConnectionsAboveItsLimitWhileEverybodyIsBeingServed) {
  Gate gate;
  serve({.connections_max = 1}, [&](const ServedRequest& served) {
    gate.pass();
    return echo(served);
  });
  RawClient first(server->port());
  first.send("GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
  gate.wait_for_arrivals(1);
  RawClient second(server->port());
  EXPECT_EQ(second.receive(), "");
  gate.open();
  EXPECT_NE(first.receive("GET /a").find("200 OK"), std::string::npos);
}

TEST_F(HttpServerTest, WhoeverBroughtNoRequestGivesWayToANewConnection) {
  serve({.connections_max = 3});
  RawClient served(server->port());
  served.send("GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_NE(served.receive("GET /a"), "");
  RawClient slow(server->port());
  slow.send("GET / HT");
  RawClient silent(server->port());
  RawClient fresh(server->port());
  fresh.send("GET /b HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_NE(fresh.receive("GET /b").find("200 OK"), std::string::npos);
  served.send("GET /c HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_NE(served.receive("GET /c").find("200 OK"), std::string::npos);
}

TEST_F(HttpServerTest, AConnectionBetweenTwoRequestsGivesWayWhenThereIsNoOther) {
  serve({.connections_max = 1});
  RawClient first(server->port());
  first.send("GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_NE(first.receive("GET /a"), "");
  // The worker may still hold the first for a moment behind its answer.
  std::string heard;
  const Instant limit = monotonic_now() + 10s;
  while (heard.empty() && monotonic_now() < limit)
    heard = status_of("GET /b HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(heard, "HTTP/1.1 200 OK");
  EXPECT_EQ(first.receive(), "");
}

// More slow clients than workers, each in another part of its request, and nobody's time is over.
TEST_F(HttpServerTest, SlowClientsKeepNobodyFromBeingServed) {
  serve({.workers = 1, .head_limit = 1h, .body_limit = 1h});
  std::vector<RawClient> slow;
  for (const char* part : {"G", "GET / HTTP/1.1\r\nHo", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n",
                           "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nab",
                           "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"}) {
    slow.emplace_back(server->port());
    slow.back().send(part);
    HttpClient client({.host = "127.0.0.1", .port = server->port()});
    EXPECT_TRUE(client.send({})) << part;
  }
  slow[3].send("cde");
  EXPECT_NE(slow[3].receive("POST / abcde").find("200 OK"), std::string::npos);
}

// Refusing somebody takes no worker's time either, though the answer has to be waited for.
TEST_F(HttpServerTest, ClientsThatAreRefusedAndStayKeepNobodyFromBeingServed) {
  serve({.workers = 1});
  std::vector<RawClient> refused;
  for (int i = 0; i < 20; ++i) {
    refused.emplace_back(server->port());
    refused.back().send("rubbish\r\n\r\n");
    EXPECT_NE(refused.back().receive("\r\n\r\n").find("400"), std::string::npos);
  }
  HttpClient client({.host = "127.0.0.1", .port = server->port()});
  EXPECT_TRUE(client.send({}, {.total = 10s}));
}

TEST_F(HttpServerTest, ARefusedClientHearsAtOnceThatNothingFollows) {
  serve({.now = standing_clock()});
  EXPECT_EQ(status_of("rubbish\r\n\r\n"), "HTTP/1.1 400 Bad Request");
}

// The thread that throws its bytes away is the one that waits for everybody.
TEST_F(HttpServerTest, ARefusedClientThatGoesOnSendingIsHungUpOn) {
  serve({.now = standing_clock()});
  RawClient refused(server->port());
  refused.send("rubbish\r\n\r\n");
  EXPECT_NE(refused.receive("\r\n\r\n").find("400"), std::string::npos);
  const std::string piece(1u << 20, 'x');
  int taken = 0;
  while (taken < 64 && refused.send(piece)) ++taken;
  EXPECT_LT(taken, 64);
}

TEST_F(HttpServerTest, HalfATlsHandshakeKeepsNobodyFromBeingServed) {
  const TestAuthority authority;
  serve({.tls = server_context(authority.server({.ip = {"127.0.0.1"}})), .workers = 1, .head_limit = 1h});
  const std::string half_a_hello("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11);
  std::vector<RawClient> slow;
  for (std::size_t size : {1u, 5u, 11u}) {
    slow.emplace_back(server->port());
    slow.back().send(half_a_hello.substr(0, size));
    HttpClient client({.host = "127.0.0.1", .port = server->port(), .tls = client_context(authority.pem())});
    const Result<HttpResponse> response = client.send({});
    EXPECT_TRUE(response) << response.error().message;
  }
}

TEST_F(HttpServerTest, ASlowClientTakesNoThread) {
  // The server outlives this body: it may begin a worker for the slow clients that hang up at the
  // end.
  const auto threads = std::make_shared<std::atomic<int>>(0);
  serve({.workers = 100, .head_limit = 1h, .make_thread = [threads](std::function<void()> body) {
           ++*threads;
           return std::thread(std::move(body));
         }});
  std::vector<RawClient> slow;
  for (int i = 0; i < 50; ++i) {
    slow.emplace_back(server->port());
    slow.back().send("G");
    // Answered behind it, so that the slow one has been looked at.
    EXPECT_NE(status_of("GET /b HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"), "");
  }
  EXPECT_LT(*threads, 10);
}

// Gives so many threads and no more.
MakeThread at_most(int threads) {
  return [left = std::make_shared<std::atomic<int>>(threads)](std::function<void()> body) {
    if (left->fetch_sub(1) <= 0) throw std::system_error(EAGAIN, std::system_category());
    return std::thread(std::move(body));
  };
}

TEST_F(HttpServerTest, TheWorkersThatThereAreServeEverybodyWhenTheSystemHasNoThreadLeft) {
  Gate gate;
  serve({.workers = 8, .make_thread = at_most(2)}, [&](const ServedRequest& served) {
    if (served.request.path == "/first") gate.pass();
    return echo(served);
  });
  RawClient first(server->port());
  first.send("GET /first HTTP/1.1\r\nHost: h\r\n\r\n");
  gate.wait_for_arrivals(1);
  RawClient second(server->port());
  second.send("GET /second HTTP/1.1\r\nHost: h\r\n\r\n");
  wait_for_trouble("no thread for another worker");
  gate.open();
  EXPECT_NE(first.receive("GET /first").find("200 OK"), std::string::npos);
  EXPECT_NE(second.receive("GET /second").find("200 OK"), std::string::npos);
}

TEST_F(HttpServerTest, ARequestThatWaitedTooLongForAWorkerIsToldToComeAgain) {
  Gate gate;
  serve({.workers = 8, .head_limit = 10s, .make_thread = at_most(2), .now = standing_clock()},
        [&](const ServedRequest& served) {
          gate.pass();
          return echo(served);
        });
  RawClient first(server->port());
  first.send("GET /first HTTP/1.1\r\nHost: h\r\n\r\n");
  gate.wait_for_arrivals(1);
  RawClient second(server->port());
  second.send("GET /second HTTP/1.1\r\nHost: h\r\n\r\n");
  // It is in the queue by now.
  wait_for_trouble("no thread for another worker");
  elapsed = 10s;
  gate.open();
  EXPECT_NE(first.receive("GET /first").find("200 OK"), std::string::npos);
  EXPECT_NE(second.receive().find("503 Service Unavailable"), std::string::npos);
}

TEST_F(HttpServerTest, HangsUpWhenTheSystemHasNotASingleThreadForIt) {
  serve({.make_thread = at_most(1)});
  RawClient client(server->port());
  client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(client.receive(), "");
  wait_for_trouble("no thread for another worker");
}

TEST_F(HttpServerTest, AServerWithoutAThreadToWaitWithDoesNotStart) {
  const auto started = HttpServer::start({.address = "127.0.0.1", .make_thread = at_most(0)}, echo);
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, ErrorCode::exhausted);
}

TEST_F(HttpServerTest, IdleConnectionsOccupyNoWorker) {
  serve({.workers = 1});
  std::vector<RawClient> idle;
  for (int i = 0; i < 20; ++i) {
    idle.emplace_back(server->port());
    idle.back().send("GET /idle HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_NE(idle.back().receive("GET /idle"), "");
  }
  for (RawClient& client : idle) {
    client.send("GET /again HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_NE(client.receive("GET /again"), "");
  }
}

TEST_F(HttpServerTest, AsManyHandlersBlockAtOnceAsThereAreWorkers) {
  std::mutex gate;
  std::condition_variable changed;
  int inside = 0;
  serve({.workers = 3}, [&](const ServedRequest&) {
    std::unique_lock lock(gate);
    ++inside;
    changed.notify_all();
    changed.wait(lock, [&] { return inside == 3; });
    return HttpResponse{.status = 200};
  });
  std::vector<std::thread> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back([&] {
      HttpClient client({.host = "127.0.0.1", .port = server->port()});
      EXPECT_EQ(client.send({})->status, 200);
    });
  }
  for (std::thread& client : clients) client.join();
}

TEST_F(HttpServerTest, AnExceptionOfTheHandlerIsA500AndIsReported) {
  serve({}, [](const ServedRequest&) -> HttpResponse { throw std::runtime_error("secret detail"); });
  HttpClient client({.host = "127.0.0.1", .port = server->port()});
  const Result<HttpResponse> response = client.send({.path = "/x"});
  ASSERT_TRUE(response);
  EXPECT_EQ(response->status, 500);
  EXPECT_EQ(response->body.find("secret"), std::string::npos);
  const std::lock_guard lock(mutex);
  EXPECT_EQ(troubles, (std::vector<std::string>{"the handler of /x failed: secret detail"}));
}

TEST_F(HttpServerTest, AHandlerCanSeeThatItsClientIsGone) {
  std::atomic<bool> started{false};
  std::atomic<bool> noticed{false};
  serve({}, [&](const ServedRequest& served) {
    started = true;
    while (!served.peer_gone() && !served.stopping.stop_requested()) std::this_thread::yield();
    noticed = served.peer_gone();
    return HttpResponse{.status = 200};
  });
  RawClient client(server->port());
  client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  while (!started) std::this_thread::yield();
  client.hang_up();
  while (!noticed) std::this_thread::yield();
  server->stop();
}

TEST_F(HttpServerTest, StoppingEndsALongPollAndDeliversItsAnswer) {
  std::atomic<bool> started{false};
  serve({}, [&](const ServedRequest& served) {
    std::mutex never;
    std::condition_variable_any condition;
    std::unique_lock lock(never);
    started = true;
    condition.wait(lock, served.stopping, [] { return false; });
    return HttpResponse{.status = 200, .body = "as far as I know"};
  });
  RawClient client(server->port());
  client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  while (!started) std::this_thread::yield();
  server->stop();
  const std::string heard = client.receive();
  EXPECT_TRUE(heard.ends_with("as far as I know")) << heard;
  EXPECT_NE(heard.find("Connection: close"), std::string::npos);
}

TEST_F(HttpServerTest, StoppingDoesNotWaitForClientsThatSayNothing) {
  serve({.head_limit = 1h, .body_limit = 1h, .idle_limit = 1h});
  RawClient silent(server->port());
  RawClient halfway(server->port());
  halfway.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nab");
  RawClient idle(server->port());
  idle.send("GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
  idle.receive("GET /a");
  server->stop();
  EXPECT_EQ(halfway.receive(), "");
  EXPECT_EQ(idle.receive(), "");
}

// More than the sockets between the two take.
HttpResponse endless(const ServedRequest&) { return {.status = 200, .body = std::string(64u << 20, 'x')}; }

TEST_F(HttpServerTest, StoppingDoesNotWaitForAClientThatDoesNotRead) {
  serve({.write_limit = 1h, .last_write_limit = 1ms}, endless);
  RawClient client(server->port());
  client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  client.receive("200 OK");  // it is being written to
  server->stop();
}

TEST_F(HttpServerTest, AnAnswerThatIsMadeWhileTheServerStopsIsNotWaitedForEither) {
  Gate gate;
  serve({.write_limit = 1h, .last_write_limit = 1ms}, [&](const ServedRequest& served) {
    gate.pass();
    return endless(served);
  });
  RawClient client(server->port());
  client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  gate.wait_for_arrivals(1);
  server->request_stop();
  gate.open();
  server->stop();
}

TEST_F(HttpServerTest, AServerThatIsToStopSaysSoToItsHandlersAndWaitsForNobody) {
  Gate gate;
  std::atomic<bool> told_to_stop{false};
  serve({}, [&](const ServedRequest& served) {
    gate.pass();
    told_to_stop = served.stopping.stop_requested();
    return HttpResponse{.status = 200};
  });
  RawClient client(server->port());
  client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  gate.wait_for_arrivals(1);
  server->request_stop();
  gate.open();
  server->stop();
  EXPECT_TRUE(told_to_stop);
}

TEST_F(HttpServerTest, AStoppedServerLeavesItsPort) {
  serve();
  const std::uint16_t port = server->port();
  server->stop();
  EXPECT_TRUE(HttpServer::start({.address = "127.0.0.1", .port = port}, echo));
}

TEST_F(HttpServerTest, ATakenPortIsSaidAtStart) {
  serve();
  const auto second = HttpServer::start({.address = "127.0.0.1", .port = server->port()}, echo);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find(std::to_string(server->port())), std::string::npos);
  EXPECT_FALSE(HttpServer::start({.address = "not-an-address"}, echo));
}

}  // namespace
}  // namespace rekindle
