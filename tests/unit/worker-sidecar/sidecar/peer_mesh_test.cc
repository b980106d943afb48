#include "worker-sidecar/sidecar/cluster/peer_mesh.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <asio/io_context.hpp>

#include "common/base/format.h"
#include "tests/support/certificates.h"

namespace rekindle::sidecar {
namespace {

using namespace std::chrono_literals;

constexpr const char* kIdentity = "rekindle://team/uid-1";

// One sidecar's mesh with what it was told.
struct Node {
  Node(asio::io_context& loop, const TestAuthority& authority, std::uint32_t ordinal_,
       const std::string& certificate = kIdentity, const std::string& job_uid = "uid-1")
      : ordinal(ordinal_) {
    const TlsKeyPair own = sign_certificate(authority.pair(), {.common_name = "sidecar",
                                                               .names = {.uri = {certificate}},
                                                               .validity = valid_around_now(),
                                                               .for_server = true,
                                                               .for_client = true})
                               .value();
    auto started = PeerMesh::start(
        loop,
        {.identity = kIdentity,
         .job_uid = job_uid,
         .pod_uid = "pod-" + std::to_string(ordinal),
         .ordinal = ordinal,
         .pods = 3,
         .version = "test",
         .port = 0,
         .client = client_context(authority.pem(), own),
         .server = server_context(own, authority.pem())},
        {.connected = [this](std::uint32_t peer) { said.push_back(format("up {}", peer)); },
         .lost = [this](std::uint32_t peer) { said.push_back(format("lost {}", peer)); },
         .message =
             [this](std::uint32_t from, std::uint32_t attempt, PeerMessage message) {
               if (const auto* finished = std::get_if<PodFinishedMessage>(&message)) {
                 said.push_back(format("finished {} from {} attempt {}", finished->ordinal, from, attempt));
               }
             },
         .log = [this](Severity, const std::string& what, std::uint32_t,
                       const std::string& why) { logged += format("{}: {}\n", what, why); }});
    EXPECT_TRUE(started) << started.error().message;
    mesh = std::move(*started);
  }
  PeerAddress address() const {
    return {.ordinal = ordinal, .uid = "pod-" + std::to_string(ordinal), .address = "127.0.0.1", .port = mesh->port()};
  }
  bool heard(const std::string& text) const { return std::ranges::find(said, text) != said.end(); }

  std::uint32_t ordinal;
  std::vector<std::string> said;
  std::string logged;
  std::unique_ptr<PeerMesh> mesh;
};

class PeerMeshTest : public testing::Test {
 protected:
  template <typename Condition>
  bool until(Condition holds) {
    const auto limit = std::chrono::steady_clock::now() + 30s;
    while (!holds() && std::chrono::steady_clock::now() < limit) loop_.run_one_for(10ms);
    return holds();
  }
  asio::io_context loop_;
  TestAuthority authority_;
};

TEST_F(PeerMeshTest, EachPairHasOneConnectionAndMessagesKnowTheirSender) {
  Node zero(loop_, authority_, 0);
  Node one(loop_, authority_, 1);
  for (Node* node : {&zero, &one}) node->mesh->set_peers({zero.address(), one.address()});
  ASSERT_TRUE(until([&] { return zero.heard("up 1") && one.heard("up 0"); })) << zero.logged << one.logged;
  zero.mesh->send(1, PodFinishedMessage{0}, 7);
  one.mesh->send(0, PodFinishedMessage{1}, 7);
  EXPECT_TRUE(
      until([&] { return one.heard("finished 0 from 0 attempt 7") && zero.heard("finished 1 from 1 attempt 7"); }));
  EXPECT_EQ(zero.mesh->connections(), 1u);
}

TEST_F(PeerMeshTest, ThePodOfAnotherJobIsNotLetIn) {
  Node zero(loop_, authority_, 0);
  Node one(loop_, authority_, 1, "rekindle://team/uid-2");
  for (Node* node : {&zero, &one}) node->mesh->set_peers({zero.address(), one.address()});
  ASSERT_TRUE(until([&] { return zero.logged.contains("uid-2"); })) << zero.logged << one.logged;
  EXPECT_TRUE(zero.said.empty());
  EXPECT_EQ(zero.mesh->connections(), 0u);
}

TEST_F(PeerMeshTest, AnAuthorityOfSomebodyElseIsNotBelieved) {
  const TestAuthority other("another cluster");
  Node zero(loop_, authority_, 0);
  Node one(loop_, other, 1);
  for (Node* node : {&zero, &one}) node->mesh->set_peers({zero.address(), one.address()});
  ASSERT_TRUE(until([&] { return one.logged.contains("cannot be reached"); })) << one.logged;
  EXPECT_TRUE(zero.said.empty());
  EXPECT_TRUE(one.said.empty());
}

TEST_F(PeerMeshTest, APodThatIsNotTheOneThatTheOperatorNamesIsNotLetIn) {
  Node zero(loop_, authority_, 0);
  Node one(loop_, authority_, 1);
  PeerAddress successor = one.address();
  successor.uid = "pod-of-the-next-life";
  zero.mesh->set_peers({successor});
  one.mesh->set_peers({zero.address()});
  ASSERT_TRUE(until([&] { return zero.logged.contains("another pod"); })) << zero.logged;
  EXPECT_TRUE(zero.said.empty());
}

TEST_F(PeerMeshTest, ALostPeerIsToldAndFoundAgain) {
  Node zero(loop_, authority_, 0);
  auto one = std::make_unique<Node>(loop_, authority_, 1);
  zero.mesh->set_peers({one->address()});
  one->mesh->set_peers({zero.address()});
  ASSERT_TRUE(until([&] { return zero.heard("up 1"); })) << zero.logged;
  one.reset();
  ASSERT_TRUE(until([&] { return zero.heard("lost 1"); }));
  zero.said.clear();
  Node again(loop_, authority_, 1);
  zero.mesh->set_peers({again.address()});
  again.mesh->set_peers({zero.address()});
  EXPECT_TRUE(until([&] { return zero.heard("up 1"); })) << zero.logged;
}

}  // namespace
}  // namespace rekindle::sidecar
