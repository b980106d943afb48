#include "operator/io/credentials.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/certificates.h"
#include "tests/support/temporary_folder.h"

namespace rekindle::op {
namespace {

using namespace std::chrono_literals;

const Instant kStart{1h};

class CredentialsTest : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    std::ofstream(std::filesystem::path(folder.path()) / name) << text;
  }

  void SetUp() override {
    write("token", "token-1\n");
    write("ca.crt", authority.pem());
    write("namespace", "rekindle-system");
  }

  Result<std::unique_ptr<Credentials>> in_cluster() {
    return Credentials::in_cluster({.folder = folder.path(), .host = "10.96.0.1", .port = "443"});
  }

  TestAuthority authority;
  TemporaryFolder folder;
};

TEST_F(CredentialsTest, OfAPodComeFromItsFiles) {
  const auto credentials = in_cluster();
  ASSERT_TRUE(credentials) << credentials.error().message;
  EXPECT_EQ((*credentials)->server(), (ApiServerAddress{.host = "10.96.0.1", .port = 443}));
  EXPECT_EQ((*credentials)->namespace_name(), "rekindle-system");
  EXPECT_EQ((*credentials)->token(kStart), "token-1");
  EXPECT_NE((*credentials)->endpoint(kStart)->endpoint.tls, nullptr);
}

TEST_F(CredentialsTest, ARotatedTokenIsSeenWithinAMinute) {
  const auto credentials = in_cluster();
  EXPECT_EQ((*credentials)->token(kStart), "token-1");
  write("token", "token-2");
  EXPECT_EQ((*credentials)->token(kStart + 59s), "token-1");
  EXPECT_EQ((*credentials)->token(kStart + 60s), "token-2");
}

TEST_F(CredentialsTest, ARefusedTokenIsReadAgainAtOnce) {
  const auto credentials = in_cluster();
  EXPECT_EQ((*credentials)->token(kStart), "token-1");
  EXPECT_FALSE((*credentials)->token_refused("token-1"));
  write("token", "token-2");
  EXPECT_TRUE((*credentials)->token_refused("token-1"));
  EXPECT_EQ((*credentials)->token(kStart + 1s), "token-2");
  EXPECT_TRUE((*credentials)->token_refused("token-1")) << "another thread asks with the old one";
}

TEST_F(CredentialsTest, ATokenThatIsAwayForAMomentStaysGood) {
  const auto credentials = in_cluster();
  EXPECT_EQ((*credentials)->token(kStart), "token-1");
  std::filesystem::remove(std::filesystem::path(folder.path()) / "token");
  EXPECT_EQ((*credentials)->token(kStart + 1h), "token-1");
}

TEST_F(CredentialsTest, RotatedAuthoritiesGiveANewEndpoint) {
  const auto credentials = in_cluster();
  const auto first = (*credentials)->endpoint(kStart);
  EXPECT_EQ((*credentials)->endpoint(kStart + 2min)->version, first->version);
  write("ca.crt", authority.pem() + TestAuthority("next").pem());
  const auto second = (*credentials)->endpoint(kStart + 4min);
  EXPECT_GT(second->version, first->version);
  EXPECT_NE(second->endpoint.tls, first->endpoint.tls);
}

TEST_F(CredentialsTest, DamagedAuthoritiesDoNotReplaceGoodOnes) {
  const auto credentials = in_cluster();
  const auto first = (*credentials)->endpoint(kStart);
  write("ca.crt", "rubbish");
  const auto second = (*credentials)->endpoint(kStart + 2min);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->endpoint.tls, first->endpoint.tls);
}

TEST_F(CredentialsTest, OfAPodWithoutATokenAreAnError) {
  std::filesystem::remove(std::filesystem::path(folder.path()) / "token");
  const auto credentials = in_cluster();
  ASSERT_FALSE(credentials);
  EXPECT_NE(credentials.error().message.find("token"), std::string::npos);
}

TEST_F(CredentialsTest, OfAKubeconfigNameItsContext) {
  write("config",
        "current-context: here\ncontexts: [{name: here, context: {cluster: c, user: u}}]\n"
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:8080'}}]\n"
        "users: [{name: u, user: {token: t}}]\n");
  const auto credentials = Credentials::find(folder.path() + "/config");
  ASSERT_TRUE(credentials) << credentials.error().message;
  EXPECT_EQ((*credentials)->origin(), "context here of the kubeconfig");
  EXPECT_EQ((*credentials)->token(kStart), "t");
  EXPECT_FALSE((*credentials)->token_refused("t")) << "a token in the file itself cannot change";
  EXPECT_EQ((*credentials)->endpoint(kStart)->endpoint.tls, nullptr);
}

}  // namespace
}  // namespace rekindle::op
