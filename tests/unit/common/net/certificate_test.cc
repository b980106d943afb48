#include "common/net/certificate.h"

#include <gtest/gtest.h>

#include "tests/support/certificates.h"

namespace rekindle {
namespace {

TEST(Certificate, CarriesTheNamesAndTheTimeThatItWasMadeWith) {
  const TestAuthority authority;
  const CertificateNames names{
      .dns = {"a.svc", "a.svc.cluster.local"}, .ip = {"10.1.2.3", "fd00::1"}, .uri = {"rekindle://team-a/uid"}};
  const CertificateValidity validity = valid_around_now();
  const TlsKeyPair leaf = authority.server(names, validity);
  const Result<CertificateFacts> facts = read_certificate(leaf.certificate_pem);
  ASSERT_TRUE(facts) << facts.error().message;
  EXPECT_EQ(facts->names, names);
  EXPECT_EQ(facts->validity, validity);
  EXPECT_EQ(facts->common_name, "server");
  EXPECT_FALSE(facts->is_authority);
  EXPECT_EQ(facts->sha256.size(), 64u);
}

TEST(Certificate, OfAnAuthorityIsOne) {
  const TestAuthority authority("rekindle test");
  const Result<CertificateFacts> facts = read_certificate(authority.pem());
  ASSERT_TRUE(facts);
  EXPECT_TRUE(facts->is_authority);
  EXPECT_EQ(facts->common_name, "rekindle test");
}

TEST(Certificate, TwoOfTheSameAreDifferent) {
  const TestAuthority authority;
  EXPECT_NE(read_certificate(authority.server({.dns = {"a"}}).certificate_pem)->sha256,
            read_certificate(authority.server({.dns = {"a"}}).certificate_pem)->sha256);
}

TEST(Certificate, LongCommonNamesAreCut) {
  const TestAuthority authority;
  const Result<TlsKeyPair> leaf =
      sign_certificate(authority.pair(),
                       {.common_name = std::string(200, 'n'), .names = {.dns = {"a"}}, .validity = valid_around_now()});
  ASSERT_TRUE(leaf) << leaf.error().message;
  EXPECT_EQ(read_certificate(leaf->certificate_pem)->common_name, std::string(64, 'n'));
}

TEST(Certificate, WithoutAProperNameIsNotMade) {
  const TestAuthority authority;
  const auto sign = [&](CertificateNames names) {
    return sign_certificate(authority.pair(), {.names = std::move(names), .validity = valid_around_now()});
  };
  EXPECT_FALSE(sign({}));
  EXPECT_FALSE(sign({.dns = {""}}));
  EXPECT_FALSE(sign({.dns = {"a b"}}));
  EXPECT_FALSE(sign({.dns = {std::string("a\0b", 3)}}));
  EXPECT_FALSE(sign({.ip = {"10.1.2"}}));
  EXPECT_FALSE(sign({.uri = {"rekindle://\xc3\xa9"}}));
}

TEST(Certificate, ThatEndsBeforeItBeginsIsNotMade) {
  const CertificateValidity validity = valid_around_now();
  EXPECT_FALSE(make_authority("a", {validity.not_after, validity.not_before}));
}

TEST(Certificate, IsNotSignedWithTheKeyOfAnotherAuthority) {
  TlsKeyPair mixed = TestAuthority().pair();
  mixed.private_key_pem = TestAuthority().pair().private_key_pem;
  EXPECT_FALSE(sign_certificate(mixed, {.names = {.dns = {"a"}}, .validity = valid_around_now()}));
}

TEST(Certificate, TextWithoutOneIsCorrupt) {
  EXPECT_EQ(read_certificate("").error().code, ErrorCode::corrupt);
  EXPECT_EQ(read_certificate("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").error().code,
            ErrorCode::corrupt);
}

}  // namespace
}  // namespace rekindle
