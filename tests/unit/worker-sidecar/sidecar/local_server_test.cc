// The Unix socket of the sidecar against clients that mean no good.
#include "worker-sidecar/sidecar/local_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <atomic>
#include <future>
#include <random>
#include <thread>

#include "common/base/format.h"
#include "socket_client.h"
#include "tests/support/random_seed.h"
#include "tests/support/temporary_folder.h"

namespace rekindle::sidecar {
namespace {

using namespace std::chrono_literals;

// A TCP connection whose last close waits until what it has sent is read, which is never.
class Lingering {
 public:
  Lingering() {
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof address;
    EXPECT_EQ(::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener, 1), 0);
    ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &bytes);
    sender_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(::connect(sender_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    reader_ = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    ::close(listener);
    const std::string much(64u << 10, 'x');
    while (::send(sender_, much.data(), much.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) continue;
    const linger for_an_hour{.l_onoff = 1, .l_linger = 3600};
    ::setsockopt(sender_, SOL_SOCKET, SO_LINGER, &for_an_hour, sizeof for_an_hour);
  }
  ~Lingering() { let_go(); }
  Lingering(const Lingering&) = delete;
  Lingering& operator=(const Lingering&) = delete;

  // Whoever has got it closes it last.
  void hand_over(Client& client) {
    if (!client.send_descriptors({sender_})) {
      ADD_FAILURE() << "the server has hung up already";
      return let_go();
    }
    ::close(std::exchange(sender_, -1));
  }
  // Ends the wait of whoever closes it.
  void let_go() {
    for (int* const end : {&reader_, &sender_}) {
      if (*end >= 0) ::close(std::exchange(*end, -1));
    }
  }

 private:
  int sender_ = -1;
  int reader_ = -1;
};

FileDescriptor own_process() { return FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0))); }

class LocalServerTest : public testing::Test {
 protected:
  void SetUp() override {
    auto server =
        LocalServer::listen(loop_, path(),
                            {.hello =
                                 [this](LinkId link, const HelloMessage& hello, std::uint32_t, FileDescriptor process) {
                                   hellos_.push_back(hello.rank);
                                   links_.push_back(link);
                                   if (process) ++processes_;
                                 },
                             .message = [this](LinkId, const LocalMessage&, std::uint32_t) { ++messages_; },
                             .hook = [this](LinkId, const HookMessage&) { ++hooks_; },
                             .status =
                                 [this](LinkId link) {
                                   server_->send(link, StatusMessage{answer_}, 0);
                                   ++asked_;
                                 },
                             .ended = [this](LinkId, const std::string& why) { ended_.push_back(why); }});
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
  }
  std::string path() const { return folder_.at("s.sock"); }
  template <typename Condition>
  bool until(Condition holds) {
    const auto limit = std::chrono::steady_clock::now() + 30s;
    while (!holds() && std::chrono::steady_clock::now() < limit) loop_.run_one_for(5ms);
    return holds();
  }
  bool still_answers() {
    Client client(path());
    client.send(framed(StatusMessage{}));
    const int before = asked_;
    return until([&] { return asked_ > before; });
  }

  TemporaryFolder folder_;
  asio::io_context loop_;
  std::unique_ptr<LocalServer> server_;
  // Whether the server answers others while and after `attack` runs, which hands `lingering` over.
  bool answers_beside(Lingering& lingering, const std::function<void()>& attack) {
    std::atomic<bool> over = false;
    std::thread serving([&] {
      while (!over) loop_.run_one_for(5ms);
    });
    attack();
    bool answered = true;
    // The first may be served before what the attack did.
    for (int i = 0; i < 5 && answered; ++i) {
      Client good(path());
      good.send(framed(StatusMessage{}));
      answered = good.hears(10s);
    }
    lingering.let_go();
    over = true;
    serving.join();
    return answered;
  }

  std::string answer_ = "{\"fine\":true}";
  std::vector<std::uint32_t> hellos_;
  std::vector<LinkId> links_;
  int processes_ = 0;
  std::vector<std::string> ended_;
  int messages_ = 0;
  int hooks_ = 0;
  int asked_ = 0;
};

TEST_F(LocalServerTest, TellsRanksFromTools) {
  Client rank(path());
  rank.send(framed(HelloMessage{.rank = 2, .world_size = 4}));
  Client hook(path());
  hook.send(framed(HookMessage{.container = "main"}));
  EXPECT_TRUE(until([&] { return hellos_.size() == 1 && hooks_ == 1; }));
  EXPECT_EQ(hellos_, (std::vector<std::uint32_t>{2}));
}

TEST_F(LocalServerTest, GarbageEndsItsOwnConnectionOnly) {
  Client rank(path());
  rank.send(framed(HelloMessage{.rank = 2, .world_size = 4}));
  ASSERT_TRUE(until([&] { return hellos_.size() == 1; }));
  test::for_each_seed({}, [&](std::uint64_t seed) {
    std::mt19937 chance(seed);
    for (int round = 0; round < 25; ++round) {
      Client bad(path());
      std::string bytes(64 + chance() % 4096, '\0');
      for (char& byte : bytes) byte = static_cast<char>(chance());
      bad.send(bytes);
      ASSERT_TRUE(until([&] { return bad.ended(); })) << "round " << round;
    }
  });
  EXPECT_TRUE(still_answers());
  EXPECT_FALSE(rank.ended());
}

TEST_F(LocalServerTest, AMessageBeforeHelloEndsTheConnection) {
  Client bad(path());
  bad.send(framed(FinishedMessage{0}));
  EXPECT_TRUE(until([&] { return bad.ended(); }));
  EXPECT_EQ(messages_, 0);
}

TEST_F(LocalServerTest, DescriptorsThatNobodyAskedForAreClosed) {
  const auto open_descriptors = [] { return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}); };
  Client probe(path());
  ASSERT_TRUE(still_answers());
  const auto before = open_descriptors();
  {
    Client bad(path());
    for (int round = 0; round < 20; ++round) bad.send_descriptors({0, 0, 0, 0});
    ASSERT_TRUE(until([&] { return bad.ended(); }));
  }
  ASSERT_TRUE(until([&] { return open_descriptors() <= before; })) << open_descriptors() << " of " << before;
}

TEST_F(LocalServerTest, ASocketThatLingersHoldsNobodyUp) {
  Lingering lingering;
  EXPECT_TRUE(answers_beside(lingering, [&] {
    Client bad(path());
    lingering.hand_over(bad);
  }));
}

TEST_F(LocalServerTest, ASocketThatLingersBehindBytesThatAreNotReadHoldsNobodyUp) {
  Lingering lingering;
  Client bad(path());
  // More than the server reads at once, and all of it before it has read the first and hangs up.
  bad.send(std::string(96u << 10, 'x'));
  lingering.hand_over(bad);
  EXPECT_TRUE(answers_beside(lingering, [] {}));
}

TEST_F(LocalServerTest, ASocketThatLingersWhereNobodyWasLetInDoesNotHoldUpTheEnd) {
  Lingering lingering;
  Client bad(path());
  lingering.hand_over(bad);
  std::future<void> ended = std::async(std::launch::async, [&] { server_.reset(); });
  EXPECT_EQ(ended.wait_for(10s), std::future_status::ready);
  lingering.let_go();
}

TEST_F(LocalServerTest, ARankBringsItsProcess) {
  const FileDescriptor process = own_process();
  Client rank(path());
  rank.send_descriptors({process.get()}, framed(HelloMessage{.rank = 2, .world_size = 4}));
  ASSERT_TRUE(until([&] { return hellos_.size() == 1; }));
  EXPECT_EQ(processes_, 1);
}

TEST_F(LocalServerTest, AHelloWithAnotherDescriptorOrWithTwoEndsTheConnection) {
  const FileDescriptor process = own_process();
  for (const std::vector<int>& descriptors : {std::vector<int>{0}, std::vector<int>{process.get(), process.get()}}) {
    Client bad(path());
    bad.send_descriptors(descriptors, framed(HelloMessage{.rank = 2, .world_size = 4}));
    EXPECT_TRUE(until([&] { return bad.ended(); }));
  }
  EXPECT_TRUE(hellos_.empty());
}

TEST_F(LocalServerTest, ADescriptorAfterTheHelloEndsTheConnection) {
  const FileDescriptor process = own_process();
  Client rank(path());
  rank.send(framed(HelloMessage{.rank = 2, .world_size = 4}));
  ASSERT_TRUE(until([&] { return hellos_.size() == 1; }));
  rank.send_descriptors({process.get()});
  EXPECT_TRUE(until([&] { return rank.ended(); }));
}

TEST_F(LocalServerTest, AToolThatReadsNoAnswersIsEnded) {
  answer_ = format("{{\"state\":\"{}\"}}", std::string(16u << 10, 'x'));
  Client tool(path());
  FrameEncoder encoder;
  const EncodedMessage question = encode_local_message(StatusMessage{});
  for (int i = 0; i < 200; ++i) tool.send(*encoder.encode(question.kind, 0, question.body));
  EXPECT_TRUE(until([&] { return !ended_.empty(); })) << asked_ << " answers are kept for it";
  EXPECT_TRUE(still_answers());
}

TEST_F(LocalServerTest, OneLongAnswerReachesATool) {
  answer_ = format("{{\"state\":\"{}\"}}", std::string(700u << 10, 'x'));
  Client tool(path());
  tool.send(framed(StatusMessage{}));
  EXPECT_TRUE(until([&] { return tool.read_all() > answer_.size(); })) << tool.read_all();
}

TEST_F(LocalServerTest, ARankMayBeFarBehind) {
  Client rank(path());
  rank.send(framed(HelloMessage{.rank = 2, .world_size = 4}));
  ASSERT_TRUE(until([&] { return hellos_.size() == 1; }));
  const std::string much = format("{{\"state\":\"{}\"}}", std::string(900u << 10, 'x'));
  for (int i = 0; i < 8; ++i) server_->send(links_.at(0), StatusMessage{much}, 0);
  ASSERT_TRUE(still_answers());
  EXPECT_TRUE(server_->connected(links_.at(0)));
}

TEST_F(LocalServerTest, ManyConnectionsDoNotKeepOthersOut) {
  std::vector<std::unique_ptr<Client>> crowd;
  for (int i = 0; i < 200; ++i) {
    crowd.push_back(std::make_unique<Client>(path()));
    loop_.poll();
  }
  EXPECT_TRUE(still_answers());
}

TEST_F(LocalServerTest, ASocketThatAnswersIsNotTakenAway) {
  const auto second = LocalServer::listen(loop_, path(), {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::already_exists);
  EXPECT_TRUE(still_answers());
}

TEST(LocalServer, ASocketThatAKilledSidecarLeftIsReplaced) {
  TemporaryFolder folder;
  const std::string path = folder.at("s.sock");
  {
    const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ::close(socket);
  }
  asio::io_context loop;
  EXPECT_TRUE(LocalServer::listen(loop, path, {}));
}

TEST(LocalServer, AFileInTheWayAndAPathTooLongAreNamed) {
  TemporaryFolder folder;
  asio::io_context loop;
  write_bytes(folder.at("file"), "x");
  EXPECT_NE(LocalServer::listen(loop, folder.at("file"), {}).error().message.find("is no socket"), std::string::npos);
  EXPECT_NE(
      LocalServer::listen(loop, folder.at(std::string(200, 'x')), {}).error().message.find("choose a shorter folder"),
      std::string::npos);
}

}  // namespace
}  // namespace rekindle::sidecar
