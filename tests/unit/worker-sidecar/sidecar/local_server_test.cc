// The Unix socket of the sidecar against clients that mean no good.
#include "worker-sidecar/sidecar/local_server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <random>

#include "tests/support/random_seed.h"
#include "tests/support/temporary_folder.h"
#include "worker-sidecar/protocol/frame.h"

namespace rekindle::sidecar {
namespace {

using namespace std::chrono_literals;

class Client {
 public:
  explicit Client(const std::string& path) : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    connected_ = ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  ~Client() { ::close(socket_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool connected() const { return connected_; }
  void send(const std::string& bytes) {
    [[maybe_unused]] const auto sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  void send_descriptors(int count) {
    std::vector<int> descriptors(static_cast<std::size_t>(count), 0);
    std::string control(CMSG_SPACE(descriptors.size() * sizeof(int)), '\0');
    char byte = 'x';
    iovec part{.iov_base = &byte, .iov_len = 1};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size() * sizeof(int));
    [[maybe_unused]] const auto sent = ::sendmsg(socket_, &message, MSG_NOSIGNAL);
  }
  // The other side has closed.
  bool ended() {
    char buffer[4096];
    while (true) {
      const ssize_t got = ::recv(socket_, buffer, sizeof buffer, 0);
      if (got > 0) continue;
      return got == 0 || errno == ECONNRESET;
    }
  }

 private:
  int socket_;
  bool connected_ = false;
};

std::string framed(const LocalMessage& message) {
  FrameEncoder encoder;
  const EncodedMessage encoded = encode_local_message(message);
  return *encoder.encode(encoded.kind, 0, encoded.body);
}

class LocalServerTest : public testing::Test {
 protected:
  void SetUp() override {
    auto server = LocalServer::listen(loop_, path(),
                                      {.hello = [this](LinkId, const HelloMessage& hello, std::uint32_t,
                                                       FileDescriptor) { hellos_.push_back(hello.rank); },
                                       .message = [this](LinkId, const LocalMessage&, std::uint32_t) { ++messages_; },
                                       .hook = [this](LinkId, const HookMessage&) { ++hooks_; },
                                       .status =
                                           [this](LinkId link) {
                                             server_->send(link, StatusMessage{"{\"fine\":true}"}, 0);
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
  std::vector<std::uint32_t> hellos_;
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
    for (int round = 0; round < 20; ++round) bad.send_descriptors(4);
    ASSERT_TRUE(until([&] { return bad.ended(); }));
  }
  ASSERT_TRUE(until([&] { return open_descriptors() <= before; })) << open_descriptors() << " of " << before;
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
