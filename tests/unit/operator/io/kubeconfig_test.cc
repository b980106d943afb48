#include "operator/io/kubeconfig.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "common/base/format.h"
#include "tests/support/temporary_folder.h"

namespace rekindle::op {
namespace {

TEST(ServerUrl, IsTakenApart) {
  EXPECT_EQ(parse_server_url("https://10.0.0.1:6443"), (ApiServerAddress{.host = "10.0.0.1", .port = 6443}));
  EXPECT_EQ(parse_server_url("https://api.example/"), (ApiServerAddress{.host = "api.example", .port = 443}));
  EXPECT_EQ(parse_server_url("https://h/k8s/clusters/c-1/"),
            (ApiServerAddress{.host = "h", .port = 443, .path_prefix = "/k8s/clusters/c-1"}));
  EXPECT_EQ(parse_server_url("http://127.0.0.1:8080"),
            (ApiServerAddress{.host = "127.0.0.1", .port = 8080, .tls = false}));
  EXPECT_EQ(parse_server_url("https://[fd00::1]:6443"), (ApiServerAddress{.host = "fd00::1", .port = 6443}));
}

TEST(ServerUrl, ThatIsNoneIsRefused) {
  for (const char* url :
       {"", "10.0.0.1:6443", "https://", "https://:6443", "https://h:", "https://h:0", "https://h:70000",
        "https://h:6x", "https://user@h", "https://h/a?b", "https://[fd00::1", "ftp://h"}) {
    EXPECT_FALSE(parse_server_url(url)) << url;
  }
}

class KubeconfigTest : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = std::filesystem::path(folder.path()) / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path.string();
  }

  // A file with one context whose user is `user` and whose cluster has these lines more.
  std::string with_user(const std::string& user, const std::string& cluster = "certificate-authority-data: Y2E=") {
    return write("config",
                 format("apiVersion: v1\nkind: Config\ncurrent-context: here\ncontexts: [{{name: here, context: "
                        "{{cluster: c, user: u, namespace: team-a}}}}]\nclusters:\n- name: c\n  cluster:\n    "
                        "server: https://10.0.0.1:6443\n    {}\nusers:\n- name: u\n  user: {}\n",
                        cluster, user));
  }

  TemporaryFolder folder;
};

TEST_F(KubeconfigTest, ReadsInlineCertificates) {
  const auto facts = read_kubeconfig({with_user("{client-certificate-data: Y2VydA==, client-key-data: a2V5}")});
  ASSERT_TRUE(facts) << facts.error().message;
  EXPECT_EQ(facts->context, "here");
  EXPECT_EQ(facts->namespace_name, "team-a");
  EXPECT_EQ(facts->server.host, "10.0.0.1");
  EXPECT_EQ(facts->authorities_pem, "ca");
  EXPECT_EQ(facts->own, (TlsKeyPair{"cert", "key"}));
}

TEST_F(KubeconfigTest, ReadsFilesBesideTheConfig) {
  write("pki/ca.crt", "the ca");
  write("pki/me.crt", "the cert");
  write("pki/me.key", "the key");
  const auto facts = read_kubeconfig(
      {with_user("{client-certificate: pki/me.crt, client-key: pki/me.key}", "certificate-authority: pki/ca.crt")});
  ASSERT_TRUE(facts) << facts.error().message;
  EXPECT_EQ(facts->authorities_pem, "the ca");
  EXPECT_EQ(facts->own, (TlsKeyPair{"the cert", "the key"}));
}

TEST_F(KubeconfigTest, ReadsTokens) {
  EXPECT_EQ(read_kubeconfig({with_user("{token: abc}")})->token, "abc");
  const std::string path = with_user("{tokenFile: token}");
  EXPECT_EQ(read_kubeconfig({path})->token_file, (std::filesystem::path(folder.path()) / "token").string());
}

TEST_F(KubeconfigTest, AnotherContextCanBeChosen) {
  const std::string path = write("config",
                                 "current-context: one\n"
                                 "contexts:\n- {name: one, context: {cluster: c1}}\n"
                                 "- {name: two, context: {cluster: c2}}\n"
                                 "clusters:\n- {name: c1, cluster: {server: 'http://h1'}}\n"
                                 "- {name: c2, cluster: {server: 'http://h2', tls-server-name: other}}\n");
  EXPECT_EQ(read_kubeconfig({path})->server.host, "h1");
  EXPECT_EQ(read_kubeconfig({path}, "two")->server.host, "h2");
  EXPECT_EQ(read_kubeconfig({path}, "two")->server.tls_server_name, "other");
  EXPECT_EQ(read_kubeconfig({path}, "three").error().message, "the kubeconfig has no context 'three'");
}

TEST_F(KubeconfigTest, OfSeveralFilesTheFirstCounts) {
  const std::string first = write("first",
                                  "contexts: [{name: x, context: {cluster: c}}]\n"
                                  "clusters: [{name: c, cluster: {server: 'http://first'}}]\n");
  const std::string second = write("second",
                                   "current-context: x\n"
                                   "clusters: [{name: c, cluster: {server: 'http://second'}}]\n");
  const auto facts = read_kubeconfig({first, folder.path() + "/absent", second});
  ASSERT_TRUE(facts) << facts.error().message;
  EXPECT_EQ(facts->server.host, "first");
}

TEST_F(KubeconfigTest, WhatIsNotSupportedIsRefusedAndSaysWhatToDo) {
  const auto message = [&](const std::string& path) { return read_kubeconfig({path}).error().message; };
  EXPECT_NE(message(with_user("{exec: {command: aws}}")).find("exec plugin"), std::string::npos);
  EXPECT_NE(message(with_user("{auth-provider: {name: gcp}}")).find("auth provider"), std::string::npos);
  EXPECT_NE(message(with_user("{username: a, password: b}")).find("user name and password"), std::string::npos);
  EXPECT_NE(message(with_user("{as: root}")).find("impersonates"), std::string::npos);
  EXPECT_NE(message(with_user("{}", "insecure-skip-tls-verify: true")).find("anybody could pretend"),
            std::string::npos);
  EXPECT_NE(message(with_user("{}", "proxy-url: http://p")).find("proxy-url"), std::string::npos);
}

TEST_F(KubeconfigTest, WhatIsMissingIsNamed) {
  const auto message = [&](const std::string& text) {
    return read_kubeconfig({write("config", text)}).error().message;
  };
  EXPECT_NE(message("{}").find("no current context"), std::string::npos);
  EXPECT_NE(message("").find("there is no kubeconfig"), std::string::npos);
  EXPECT_NE(message("current-context: x\ncontexts: [{name: x, context: {cluster: gone}}]").find("no cluster 'gone'"),
            std::string::npos);
  EXPECT_NE(read_kubeconfig({with_user("{}", "x: y")}).error().message.find("names no certificate authority"),
            std::string::npos);
  EXPECT_NE(read_kubeconfig({with_user("{client-certificate-data: Y2VydA==}")}).error().message.find("without its key"),
            std::string::npos);
  EXPECT_EQ(read_kubeconfig({folder.path() + "/absent"}).error().code, ErrorCode::not_found);
  EXPECT_FALSE(read_kubeconfig({with_user("{}", "certificate-authority: absent.crt")}));
  EXPECT_FALSE(read_kubeconfig({with_user("{}", "certificate-authority-data: '%%%'")}));
}

TEST_F(KubeconfigTest, BrokenYamlIsAnErrorAndNoException) {
  for (const char* text : {"a: [", "- a\n- b\n", "just text", "a: b: c", "\t", "%YAML 9.9\n---\n", "contexts: {a: b}",
                           "current-context: x\ncontexts: [1, 2, [3]]", "current-context: {a: b}", "&a [*a]"}) {
    EXPECT_FALSE(read_kubeconfig({write("config", text)})) << text;
  }
}

}  // namespace
}  // namespace rekindle::op
