// Certificate checking against real servers on loopback.
#include "common/net/tls.h"

#include <gtest/gtest.h>

#include "common/base/format.h"
#include "common/net/http_client.h"
#include "common/net/http_server.h"
#include "tests/support/certificates.h"

namespace rekindle {
namespace {

const std::string kJobUri = "rekindle://team-a/11111111-2222-3333-4444-555555555555";

class TlsTest : public testing::Test {
 protected:
  void serve(TlsKeyPair own, std::string client_authorities = {}) {
    auto started = HttpServer::start(
        {.address = "127.0.0.1", .tls = server_context(std::move(own), std::move(client_authorities)), .workers = 2},
        [](const ServedRequest& served) {
          return HttpResponse{.status = 200, .body = served.peer_uri.value_or("nobody")};
        });
    ASSERT_TRUE(started) << started.error().message;
    server = std::move(*started);
  }

  // What a client that trusts `authorities` gets from the server under `host`.
  Result<HttpResponse> ask(const std::string& authorities, std::optional<TlsIdentity> identity = std::nullopt,
                           std::optional<TlsKeyPair> own = std::nullopt, const std::string& host = "127.0.0.1") {
    HttpClient client({.host = host,
                       .port = server->port(),
                       .tls = client_context(authorities, std::move(own)),
                       .identity = std::move(identity)});
    return client.send({});
  }

  static void expect_refused(const Result<HttpResponse>& answer, const std::string& part) {
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ErrorCode::refused) << answer.error().message;
    EXPECT_EQ(answer.error().retry, Retry::no);
    EXPECT_NE(answer.error().message.find(part), std::string::npos) << answer.error().message;
  }

  TestAuthority authority;
  std::unique_ptr<HttpServer> server;
};

TEST_F(TlsTest, TheRightIpAddressIsAccepted) {
  serve(authority.server({.ip = {"127.0.0.1"}}));
  EXPECT_EQ(ask(authority.pem())->body, "nobody");
}

TEST_F(TlsTest, TheRightDnsNameIsAccepted) {
  serve(authority.server({.dns = {"localhost"}}));
  EXPECT_EQ(ask(authority.pem(), std::nullopt, std::nullopt, "localhost")->status, 200);
}

TEST_F(TlsTest, TheRightUriIsAccepted) {
  serve(authority.server({.uri = {kJobUri}}));
  EXPECT_EQ(ask(authority.pem(), TlsIdentity::of_uri(kJobUri))->status, 200);
}

TEST_F(TlsTest, AnExpectedNameCountsAndNotTheAddressThatWasDialled) {
  serve(authority.server({.dns = {"rekindle.rekindle-system.svc"}}));
  EXPECT_EQ(ask(authority.pem(), TlsIdentity::of_host("rekindle.rekindle-system.svc"))->status, 200);
}

TEST_F(TlsTest, AWrongIpAddressIsRefused) {
  serve(authority.server({.ip = {"127.0.0.2"}}));
  expect_refused(ask(authority.pem()), "the certificate is for 127.0.0.2, not for 127.0.0.1");
}

TEST_F(TlsTest, AnIpAddressWrittenAsADnsNameIsRefused) {
  serve(authority.server({.dns = {"127.0.0.1"}}));
  expect_refused(ask(authority.pem()), "not for 127.0.0.1");
}

TEST_F(TlsTest, AWrongDnsNameIsRefused) {
  serve(authority.server({.dns = {"localhost.evil.example"}}));
  expect_refused(ask(authority.pem(), std::nullopt, std::nullopt, "localhost"),
                 "the certificate is for localhost.evil.example, not for localhost");
}

TEST_F(TlsTest, ACommonNameCountsForNothing) {
  serve(sign_certificate(authority.pair(),
                         {.common_name = "localhost", .names = {.dns = {"other"}}, .validity = valid_around_now()})
            .value());
  expect_refused(ask(authority.pem(), std::nullopt, std::nullopt, "localhost"), "not for localhost");
}

TEST_F(TlsTest, AWrongUriIsRefused) {
  serve(authority.server({.uri = {kJobUri + "x"}}));
  expect_refused(ask(authority.pem(), TlsIdentity::of_uri(kJobUri)), "not for " + kJobUri);
}

TEST_F(TlsTest, OneUriAmongSeveralIsRefused) {
  serve(authority.server({.uri = {kJobUri, "rekindle://team-b/other"}}));
  expect_refused(ask(authority.pem(), TlsIdentity::of_uri(kJobUri)), "not for " + kJobUri);
}

TEST_F(TlsTest, AnotherAuthorityIsRefused) {
  serve(TestAuthority("a stranger").server({.ip = {"127.0.0.1"}}));
  expect_refused(ask(authority.pem()), "not signed by an authority that we trust");
}

TEST_F(TlsTest, AnotherAuthorityOfTheSameNameIsRefused) {
  serve(TestAuthority().server({.ip = {"127.0.0.1"}}));
  expect_refused(ask(authority.pem()), "TLS with 127.0.0.1");
}

TEST_F(TlsTest, AnExpiredCertificateIsRefused) {
  serve(authority.server({.ip = {"127.0.0.1"}}, already_expired()));
  expect_refused(ask(authority.pem()), "the certificate has expired");
}

TEST_F(TlsTest, ACertificateOfTheFutureIsRefused) {
  CertificateValidity later = valid_around_now();
  later.not_before += std::chrono::days(1) + std::chrono::hours(1);
  later.not_after += std::chrono::days(2);
  serve(authority.server({.ip = {"127.0.0.1"}}, later));
  expect_refused(ask(authority.pem()), "not valid yet");
}

TEST_F(TlsTest, ACertificateForClientsOnlyIsNoServer) {
  serve(sign_certificate(
            authority.pair(),
            {.names = {.ip = {"127.0.0.1"}}, .validity = valid_around_now(), .for_server = false, .for_client = true})
            .value());
  expect_refused(ask(authority.pem()), "TLS with 127.0.0.1");
}

TEST_F(TlsTest, ALeafCannotSignForOthers) {
  const TlsKeyPair leaf = authority.server({.dns = {"honest"}});
  TlsKeyPair forged = sign_certificate(leaf, {.names = {.ip = {"127.0.0.1"}}, .validity = valid_around_now()}).value();
  forged.certificate_pem += leaf.certificate_pem;
  serve(forged);
  expect_refused(ask(authority.pem()), "TLS with 127.0.0.1");
}

TEST_F(TlsTest, SeveralAuthoritiesInOneBundleAreTrusted) {
  serve(authority.server({.ip = {"127.0.0.1"}}));
  EXPECT_EQ(ask(format("{}\n# a comment\n{}", TestAuthority("old").pem(), authority.pem()))->status, 200);
}

TEST_F(TlsTest, MutualTlsGivesTheClientsUri) {
  serve(authority.server({.ip = {"127.0.0.1"}}), authority.pem());
  EXPECT_EQ(ask(authority.pem(), std::nullopt, authority.client(kJobUri))->body, kJobUri);
}

TEST_F(TlsTest, MutualTlsRefusesAClientWithoutACertificate) {
  serve(authority.server({.ip = {"127.0.0.1"}}), authority.pem());
  EXPECT_FALSE(ask(authority.pem()));
}

TEST_F(TlsTest, MutualTlsRefusesAStrangersCertificate) {
  serve(authority.server({.ip = {"127.0.0.1"}}), authority.pem());
  EXPECT_FALSE(ask(authority.pem(), std::nullopt, TestAuthority("a stranger").client(kJobUri)));
}

TEST_F(TlsTest, MutualTlsRefusesAnExpiredClient) {
  serve(authority.server({.ip = {"127.0.0.1"}}), authority.pem());
  EXPECT_FALSE(ask(authority.pem(), std::nullopt, authority.client(kJobUri, already_expired())));
}

TEST_F(TlsTest, MutualTlsRefusesAClientWithoutAUri) {
  serve(authority.server({.ip = {"127.0.0.1"}}), authority.pem());
  const TlsKeyPair nameless =
      sign_certificate(
          authority.pair(),
          {.names = {.dns = {"client"}}, .validity = valid_around_now(), .for_server = false, .for_client = true})
          .value();
  EXPECT_FALSE(ask(authority.pem(), std::nullopt, nameless));
}

TEST_F(TlsTest, MutualTlsRefusesAServersCertificateAsAClient) {
  serve(authority.server({.ip = {"127.0.0.1"}}), authority.pem());
  EXPECT_FALSE(ask(authority.pem(), std::nullopt, authority.server({.uri = {kJobUri}})));
}

TEST_F(TlsTest, AClientCertificateIsNotLookedAtWithoutMutualTls) {
  serve(authority.server({.ip = {"127.0.0.1"}}));
  EXPECT_EQ(ask(authority.pem(), std::nullopt, authority.client(kJobUri))->body, "nobody");
}

TEST_F(TlsTest, RotationServesNewConnectionsWithTheNewCertificate) {
  serve(authority.server({.ip = {"127.0.0.1"}}));
  const TestAuthority next("next");
  EXPECT_FALSE(ask(next.pem()));
  server->replace_tls(server_context(next.server({.ip = {"127.0.0.1"}})));
  EXPECT_EQ(ask(next.pem())->status, 200);
  EXPECT_FALSE(ask(authority.pem()));
}

TEST_F(TlsTest, PlainTextOnATlsPortGetsNoAnswer) {
  serve(authority.server({.ip = {"127.0.0.1"}}));
  HttpClient client({.host = "127.0.0.1", .port = server->port()});
  EXPECT_FALSE(client.send({}));
}

TEST(TlsContext, SaysWhichPartDoesNotFit) {
  const TestAuthority authority;
  const TlsKeyPair one = authority.server({.dns = {"a"}});
  const TlsKeyPair two = authority.server({.dns = {"a"}});
  const auto error = [](const auto& context) { return context ? std::string() : context.error().message; };
  EXPECT_NE(error(TlsClientContext::make({""})).find("holds no certificate"), std::string::npos);
  EXPECT_NE(error(TlsClientContext::make({"rubbish"})).find("holds no certificate"), std::string::npos);
  std::string damaged = authority.pem();
  damaged[damaged.size() / 2] = '!';
  EXPECT_NE(error(TlsClientContext::make({damaged})).find("damaged"), std::string::npos);
  EXPECT_NE(error(TlsServerContext::make({{one.certificate_pem, two.private_key_pem}})).find("does not belong"),
            std::string::npos);
  EXPECT_NE(error(TlsServerContext::make({{one.certificate_pem, "rubbish"}})).find("private key"), std::string::npos);
}

TEST(TlsIdentity, TellsAddressesFromNames) {
  EXPECT_EQ(TlsIdentity::of_host("10.0.0.1").kind, TlsIdentity::Kind::ip);
  EXPECT_EQ(TlsIdentity::of_host("fd00::1").kind, TlsIdentity::Kind::ip);
  EXPECT_EQ(TlsIdentity::of_host("[fd00::1]"), (TlsIdentity{TlsIdentity::Kind::ip, "fd00::1"}));
  EXPECT_EQ(TlsIdentity::of_host("10.0.0.1.example").kind, TlsIdentity::Kind::dns);
}

}  // namespace
}  // namespace rekindle
