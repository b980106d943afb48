#include "common/net/openssl_support.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include <limits>

namespace rekindle {

std::string take_openssl_error(std::string_view otherwise) {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return std::string(otherwise);
  const char* reason = ERR_reason_error_string(code);
  if (reason != nullptr) return reason;
  char text[256];
  ERR_error_string_n(code, text, sizeof text);
  return text;
}

BioPointer bio_of(const std::string& text) {
  if (text.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) return nullptr;
  return BioPointer(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

Result<X509Pointer> certificate_of(const std::string& pem) {
  const BioPointer bio = bio_of(pem);
  X509Pointer certificate(bio ? PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr) : nullptr);
  if (!certificate) {
    ERR_clear_error();
    return fail(ErrorCode::corrupt, "the text holds no certificate in PEM form (-----BEGIN CERTIFICATE-----)");
  }
  return certificate;
}

Result<KeyPointer> private_key_of(const std::string& pem) {
  const BioPointer bio = bio_of(pem);
  // An encrypted key would make OpenSSL ask on the terminal; it gets an empty passphrase instead
  // and fails.
  const auto no_passphrase = [](char*, int, int, void*) { return 0; };
  KeyPointer key(bio ? PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, nullptr) : nullptr);
  if (!key) {
    ERR_clear_error();
    return fail(ErrorCode::corrupt, "the text holds no private key in PEM form without a passphrase");
  }
  return key;
}

std::string text_of(const ASN1_STRING* text) {
  const auto* data = reinterpret_cast<const char*>(ASN1_STRING_get0_data(text));
  return {data, static_cast<std::size_t>(ASN1_STRING_length(text))};
}

CertificateNames names_of(const X509* certificate) {
  CertificateNames names;
  const GeneralNamesPointer alternatives(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  const int count = alternatives ? sk_GENERAL_NAME_num(alternatives.get()) : 0;
  for (int at = 0; at < count; ++at) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(alternatives.get(), at);
    if (name->type == GEN_DNS) {
      names.dns.push_back(text_of(name->d.dNSName));
    } else if (name->type == GEN_URI) {
      names.uri.push_back(text_of(name->d.uniformResourceIdentifier));
    } else if (name->type == GEN_IPADD) {
      const int size = ASN1_STRING_length(name->d.iPAddress);
      char buffer[INET6_ADDRSTRLEN];
      if (size != 4 && size != 16) continue;
      inet_ntop(size == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(name->d.iPAddress), buffer, sizeof buffer);
      names.ip.emplace_back(buffer);
    }
  }
  return names;
}

}  // namespace rekindle
