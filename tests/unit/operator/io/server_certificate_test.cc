#include "operator/io/server_certificate.h"

#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "common/net/certificate.h"
#include "tests/support/recorded_transport.h"

namespace rekindle::op {
namespace {

using namespace std::chrono_literals;
using std::chrono::days;

const std::chrono::sys_seconds kMade = std::chrono::sys_days(std::chrono::year(2026) / 11 / 22);

// Whether a server that shows this context's certificate is believed at that time.
bool is_valid(const TlsServerContext& context, std::chrono::sys_seconds when) {
  const X509* certificate = SSL_CTX_get0_certificate(context.native());
  std::time_t time = std::chrono::system_clock::to_time_t(when);
  return X509_cmp_time(X509_get0_notBefore(certificate), &time) < 0 &&
         X509_cmp_time(X509_get0_notAfter(certificate), &time) > 0;
}

class ServerCertificateTest : public testing::Test {
 protected:
  ServerCertificateTest() {
    transport.prepare("POST /api/v1/namespaces/rekindle-system/secrets", 201, Json::object());
    store = CertificateStore::open(transport, "rekindle-system", kMade);
  }

  RecordedTransport transport;
  Result<CertificateStore> store = fail(ErrorCode::internal, "not opened yet");
};

TEST_F(ServerCertificateTest, IsMadeAnewLongBeforeItExpires) {
  ServerCertificate certificate(*store, "rekindle-operator", "rekindle-system");
  ServerTls served = **certificate.renew(kMade);
  int renewals = 0;
  for (auto now = kMade; now < kMade + days(200); now += 6h) {
    const Result<std::optional<ServerTls>> fresh = certificate.renew(now);
    ASSERT_TRUE(fresh) << fresh.error().message;
    if (*fresh) {
      served = **fresh;
      ++renewals;
    }
    // A week is left to repeat a renewal that fails.
    ASSERT_TRUE(is_valid(*served.admission, now + days(7))) << (now - kMade) / 24h << " days on";
    ASSERT_TRUE(is_valid(*served.sidecars, now + days(7)));
  }
  EXPECT_LT(renewals, 20) << "it is renewed when it has to be, not all the time";
}

TEST_F(ServerCertificateTest, IsMadeAnewWhenTheClockWasPutBack) {
  ServerCertificate certificate(*store, "rekindle-operator", "rekindle-system");
  ServerTls served = **certificate.renew(kMade + days(20));
  const Result<std::optional<ServerTls>> fresh = certificate.renew(kMade);
  ASSERT_TRUE(fresh) << fresh.error().message;
  if (*fresh) served = **fresh;
  EXPECT_TRUE(is_valid(*served.admission, kMade)) << "no webhook and no sidecar would be served for 20 days";
}

TEST_F(ServerCertificateTest, OnlySidecarsNeedACertificateOfTheirOwn) {
  const ServerTls tls = **ServerCertificate(*store, "rekindle-operator", "rekindle-system").renew(kMade);
  EXPECT_FALSE(tls.admission->asks_for_client_certificate());
  EXPECT_TRUE(tls.sidecars->asks_for_client_certificate());
}

// The API server and the sidecars call it by the name that ends with .svc.
TEST_F(ServerCertificateTest, TheServersCertificateNamesTheServiceAsItsClientsDo) {
  const TlsKeyPair made = store->server_certificate("rekindle-operator", "rekindle-system", kMade).value();
  const CertificateFacts facts = read_certificate(made.certificate_pem).value();
  const CertificateNames names{.dns = {"rekindle-operator", "rekindle-operator.rekindle-system",
                                       "rekindle-operator.rekindle-system.svc",
                                       "rekindle-operator.rekindle-system.svc.cluster.local"}};
  EXPECT_EQ(facts.names, names);
  EXPECT_EQ(facts.validity.not_after, kMade + days(30));
}

// Nothing renews it while the job is there.
TEST_F(ServerCertificateTest, TheCertificateOfAJobHoldsForAYear) {
  const TlsKeyPair made = store->job_certificate("team-a", "j1", kMade).value();
  const CertificateFacts facts = read_certificate(made.certificate_pem).value();
  EXPECT_EQ(facts.names, (CertificateNames{.uri = {"rekindle://team-a/j1"}}));
  EXPECT_EQ(facts.validity.not_after, kMade + days(365));
}

// Clocks of nodes differ; a certificate made by one that is ahead must hold on the others at once.
TEST_F(ServerCertificateTest, EveryCertificateHoldsOnANodeWhoseClockIsBehind) {
  for (const Result<TlsKeyPair>& made : {store->server_certificate("rekindle-operator", "rekindle-system", kMade),
                                         store->job_certificate("team-a", "j1", kMade)}) {
    const CertificateFacts facts = read_certificate(made->certificate_pem).value();
    EXPECT_LE(facts.validity.not_before, kMade - 2min) << facts.common_name;
  }
  EXPECT_LE(read_certificate(store->authority_pem())->validity.not_before, kMade - 2min);
}

}  // namespace
}  // namespace rekindle::op
