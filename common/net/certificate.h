// Makes and reads certificates: an authority of our own, leaf certificates under it, facts about
// one that exists. EC P-256 keys, SHA-256. Wall time is an argument, since validity is about the
// calendar and not about our clock. Functions may be called from any thread.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/net/tls.h"

namespace rekindle {

struct CertificateNames {
  std::vector<std::string> dns;
  std::vector<std::string> ip;   // text form, IPv4 or IPv6
  std::vector<std::string> uri;  // "rekindle://namespace/uid"

  bool operator==(const CertificateNames&) const = default;
};

struct CertificateValidity {
  std::chrono::sys_seconds not_before;
  std::chrono::sys_seconds not_after;

  bool operator==(const CertificateValidity&) const = default;
};

// A self-signed authority that may sign leaf certificates and nothing below them.
Result<TlsKeyPair> make_authority(const std::string& common_name, const CertificateValidity& validity);

struct LeafCertificate {
  std::string common_name;  // for people; at most 64 bytes, longer ones are cut. Nobody checks it
  CertificateNames names;   // what is checked; at least one
  CertificateValidity validity;
  bool for_server = true;
  bool for_client = false;
};

// A fresh key and a certificate for it, signed by `authority`.
Result<TlsKeyPair> sign_certificate(const TlsKeyPair& authority, const LeafCertificate& leaf);

struct CertificateFacts {
  std::string common_name;
  CertificateNames names;
  CertificateValidity validity;
  bool is_authority = false;
  std::string sha256;  // of the DER form, 64 hex digits
};

// The first certificate in the text. corrupt when there is none that can be read.
// For tests: what we have made, as others read it.
Result<CertificateFacts> read_certificate(const std::string& pem);

}  // namespace rekindle
