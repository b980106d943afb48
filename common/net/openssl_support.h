// Ownership, texts and errors of OpenSSL objects. Included by .cc files of this folder only.
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>

#include "common/base/error.h"
#include "common/net/certificate.h"

namespace rekindle {

template <auto Free>
struct OpensslDeleter {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};

using BioPointer = std::unique_ptr<BIO, OpensslDeleter<BIO_free_all>>;
using KeyPointer = std::unique_ptr<EVP_PKEY, OpensslDeleter<EVP_PKEY_free>>;
using X509Pointer = std::unique_ptr<X509, OpensslDeleter<X509_free>>;
using X509StorePointer = std::unique_ptr<X509_STORE, OpensslDeleter<X509_STORE_free>>;
using SslContextPointer = std::unique_ptr<SSL_CTX, OpensslDeleter<SSL_CTX_free>>;
using SslPointer = std::unique_ptr<SSL, OpensslDeleter<SSL_free>>;
using GeneralNamesPointer = std::unique_ptr<GENERAL_NAMES, OpensslDeleter<GENERAL_NAMES_free>>;

// The oldest error of this thread in words, and the queue emptied; `otherwise` when there is none.
std::string take_openssl_error(std::string_view otherwise);

// A read-only view; the text must outlive it. Null when the text is too long for OpenSSL.
BioPointer bio_of(const std::string& text);

// The first certificate and the first private key of a text.
Result<X509Pointer> certificate_of(const std::string& pem);
Result<KeyPointer> private_key_of(const std::string& pem);

// Bytes as somebody else wrote them.
std::string text_of(const ASN1_STRING* text);
// Empty when the certificate has no alternative names.
CertificateNames names_of(const X509* certificate);

}  // namespace rekindle
