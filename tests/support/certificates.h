// Certificates for tests: one authority and leaves under it, valid from a day ago for a day to come
// unless said otherwise.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>

#include "common/net/certificate.h"

namespace rekindle {

inline CertificateValidity valid_around_now() {
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  return {now - std::chrono::days(1), now + std::chrono::days(1)};
}

inline CertificateValidity already_expired() {
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  return {now - std::chrono::days(2), now - std::chrono::hours(1)};
}

class TestAuthority {
 public:
  explicit TestAuthority(const std::string& name = "test authority")
      : authority_(make_authority(name, valid_around_now()).value()) {}

  const std::string& pem() const { return authority_.certificate_pem; }
  const TlsKeyPair& pair() const { return authority_; }

  TlsKeyPair server(CertificateNames names, CertificateValidity validity = valid_around_now()) const {
    const LeafCertificate leaf{.common_name = "server", .names = std::move(names), .validity = validity};
    return sign_certificate(authority_, leaf).value();
  }
  TlsKeyPair client(const std::string& uri, CertificateValidity validity = valid_around_now()) const {
    return sign_certificate(authority_, {.common_name = "client",
                                         .names = {.uri = {uri}},
                                         .validity = validity,
                                         .for_server = false,
                                         .for_client = true})
        .value();
  }

 private:
  TlsKeyPair authority_;
};

inline std::shared_ptr<const TlsServerContext> server_context(TlsKeyPair own, std::string client_authorities = {}) {
  auto context = TlsServerContext::make({std::move(own), std::move(client_authorities)});
  EXPECT_TRUE(context) << context.error().message;
  return context.value();
}

inline std::shared_ptr<const TlsClientContext> client_context(std::string authorities,
                                                              std::optional<TlsKeyPair> own = std::nullopt) {
  auto context = TlsClientContext::make({std::move(authorities), std::move(own)});
  EXPECT_TRUE(context) << context.error().message;
  return context.value();
}

}  // namespace rekindle
