#include "common/net/openssl_support.h"

#include <limits>

#include <openssl/err.h>
#include <openssl/pem.h>

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
  // An encrypted key would make OpenSSL ask on the terminal; it gets an empty passphrase instead and fails.
  const auto no_passphrase = [](char*, int, int, void*) { return 0; };
  KeyPointer key(bio ? PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, nullptr) : nullptr);
  if (!key) {
    ERR_clear_error();
    return fail(ErrorCode::corrupt, "the text holds no private key in PEM form without a passphrase");
  }
  return key;
}

}  // namespace rekindle
