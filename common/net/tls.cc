#include "common/net/tls.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include <array>
#include <utility>
#include <vector>

#include "common/base/format.h"
#include "common/net/openssl_support.h"

namespace rekindle {
namespace {

constexpr std::size_t kNamesBytesMax = 400;  // further ones are left out

// Travels with each connection: what must stand in the peer's certificate, and what stood there.
struct Expectation {
  std::optional<TlsIdentity> identity;
  std::string names_seen;
};

void free_expectation(void*, void* expectation, CRYPTO_EX_DATA*, int, long, void*) {
  delete static_cast<Expectation*>(expectation);
}

int expectation_index() {
  static const int index = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, free_expectation);
  return index;
}

Expectation* expectation_of(SSL* connection) {
  return static_cast<Expectation*>(SSL_get_ex_data(connection, expectation_index()));
}

Expectation* make_expectation(SSL* connection) {
  Expectation* existing = expectation_of(connection);
  if (existing != nullptr) return existing;
  auto fresh = std::make_unique<Expectation>();
  if (SSL_set_ex_data(connection, expectation_index(), fresh.get()) != 1) return nullptr;
  return fresh.release();
}

bool is_ip(const std::string& text) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  return inet_pton(AF_INET, text.c_str(), bytes.data()) == 1 || inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1;
}

// For people. Somebody else wrote these bytes and they go into a log line.
std::string describe(const CertificateNames& names) {
  std::string all;
  for (const std::vector<std::string>* kind : {&names.uri, &names.dns, &names.ip}) {
    for (const std::string& name : *kind) {
      if (all.size() < kNamesBytesMax) all += (all.empty() ? "" : ", ") + name;
    }
  }
  for (char& letter : all) {
    if (static_cast<unsigned char>(letter) < 0x20 || static_cast<unsigned char>(letter) > 0x7e) letter = '?';
  }
  return all.empty() ? "nobody by name" : all;
}

// Runs for each certificate of the chain after OpenSSL's own checks. Only the leaf interests us:
// its URI, and for clients that somebody said whom to expect.
int verify(int accepted, X509_STORE_CTX* store_context) {
  auto* connection = static_cast<SSL*>(X509_STORE_CTX_get_ex_data(store_context, SSL_get_ex_data_X509_STORE_CTX_idx()));
  X509* certificate = X509_STORE_CTX_get_current_cert(store_context);
  const bool is_leaf = X509_STORE_CTX_get_error_depth(store_context) == 0;
  if (connection == nullptr || certificate == nullptr || !is_leaf) return accepted;

  const CertificateNames names = names_of(certificate);
  Expectation* expectation = make_expectation(connection);
  if (expectation == nullptr) return 0;
  expectation->names_seen = describe(names);
  if (accepted == 0) return 0;

  bool fits = true;
  if (SSL_is_server(connection) == 1) {
    fits = names.uri.size() == 1;
  } else if (!expectation->identity) {
    fits = false;
  } else if (expectation->identity->kind == TlsIdentity::Kind::uri) {
    fits = names.uri.size() == 1 && names.uri.front() == expectation->identity->value;
  }
  if (!fits) X509_STORE_CTX_set_error(store_context, X509_V_ERR_APPLICATION_VERIFICATION);
  return fits ? 1 : 0;
}

Status use_authorities(SSL_CTX* context, const std::string& pem) {
  X509StorePointer store(X509_STORE_new());
  const BioPointer bio = bio_of(pem);
  if (!store || !bio) return fail(ErrorCode::internal, "out of memory while reading the certificate authorities");
  int count = 0;
  while (X509Pointer certificate{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)}) {
    // OpenSSL reads the extensions when they are first needed; done here, it is not left to
    // handshakes on many threads.
    X509_check_purpose(certificate.get(), -1, 0);
    if (X509_STORE_add_cert(store.get(), certificate.get()) != 1) {
      return fail(ErrorCode::invalid_input,
                  "a certificate authority cannot be used: " + take_openssl_error("unknown reason"));
    }
    ++count;
  }
  // The end of the text leaves "no start line" behind; anything else is a certificate that is
  // damaged.
  const unsigned long last = ERR_peek_last_error();
  const bool at_end = last == 0 || ERR_GET_REASON(last) == PEM_R_NO_START_LINE;
  const std::string reason = take_openssl_error("unknown reason");
  if (!at_end) return fail(ErrorCode::invalid_input, "the bundle of certificate authorities is damaged: " + reason);
  if (count == 0) {
    return fail(ErrorCode::invalid_input, "the bundle of certificate authorities holds no certificate in PEM form");
  }
  // What we were given is trusted as it is: an intermediate in the bundle needs no root above it.
  X509_STORE_set_flags(store.get(), X509_V_FLAG_PARTIAL_CHAIN);
  SSL_CTX_set_cert_store(context, store.release());
  return {};
}

Status use_key_pair(SSL_CTX* context, const TlsKeyPair& pair) {
  Result<X509Pointer> leaf = certificate_of(pair.certificate_pem);
  if (!leaf) return std::unexpected(leaf.error());
  Result<KeyPointer> key = private_key_of(pair.private_key_pem);
  if (!key) return std::unexpected(key.error());
  if (SSL_CTX_use_certificate(context, leaf->get()) != 1) {
    return fail(ErrorCode::invalid_input, "the certificate cannot be used: " + take_openssl_error("unknown reason"));
  }
  if (SSL_CTX_use_PrivateKey(context, key->get()) != 1 || SSL_CTX_check_private_key(context) != 1) {
    ERR_clear_error();
    return fail(ErrorCode::invalid_input, "the private key does not belong to the certificate");
  }
  const BioPointer bio = bio_of(pair.certificate_pem);
  X509Pointer skipped(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  while (X509Pointer link{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)}) {
    if (SSL_CTX_add1_chain_cert(context, link.get()) != 1) {
      return fail(ErrorCode::invalid_input,
                  "the chain of the certificate cannot be used: " + take_openssl_error("unknown reason"));
    }
  }
  ERR_clear_error();
  return {};
}

SslContextPointer make_context(const SSL_METHOD* method) {
  SslContextPointer context(SSL_CTX_new(method));
  if (!context) return nullptr;
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_security_level(context.get(), 2);
  // No resumption: a resumed session would carry an identity that was checked under rules which may
  // have changed since.
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_num_tickets(context.get(), 0);
  SSL_CTX_set_mode(context.get(),
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_AUTO_RETRY);
  return context;
}

}  // namespace

TlsIdentity TlsIdentity::of_host(std::string host) {
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  const Kind kind = is_ip(host) ? Kind::ip : Kind::dns;
  return {kind, std::move(host)};
}

TlsIdentity TlsIdentity::of_uri(std::string uri) { return {Kind::uri, std::move(uri)}; }

Result<std::shared_ptr<const TlsClientContext>> TlsClientContext::make(const TlsClientSettings& settings) {
  ERR_clear_error();
  SslContextPointer context = make_context(TLS_client_method());
  if (!context) return fail(ErrorCode::internal, "TLS cannot be set up: " + take_openssl_error("unknown reason"));
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, verify);
  if (Status status = use_authorities(context.get(), settings.authorities_pem); !status) {
    return std::unexpected(status.error());
  }
  if (settings.own) {
    if (Status status = use_key_pair(context.get(), *settings.own); !status) return std::unexpected(status.error());
  }
  return std::shared_ptr<const TlsClientContext>(new TlsClientContext(context.release()));
}

TlsClientContext::~TlsClientContext() { SSL_CTX_free(context_); }

Result<std::shared_ptr<const TlsServerContext>> TlsServerContext::make(const TlsServerSettings& settings) {
  ERR_clear_error();
  SslContextPointer context = make_context(TLS_server_method());
  if (!context) return fail(ErrorCode::internal, "TLS cannot be set up: " + take_openssl_error("unknown reason"));
  if (Status status = use_key_pair(context.get(), settings.own); !status) return std::unexpected(status.error());
  const bool mutual = !settings.client_authorities_pem.empty();
  if (mutual) {
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, verify);
    if (Status status = use_authorities(context.get(), settings.client_authorities_pem); !status) {
      return std::unexpected(status.error());
    }
  }
  return std::shared_ptr<const TlsServerContext>(new TlsServerContext(context.release(), mutual));
}

TlsServerContext::~TlsServerContext() { SSL_CTX_free(context_); }

Status expect_tls_identity(ssl_st* connection, const TlsIdentity& identity) {
  Expectation* expectation = make_expectation(connection);
  if (expectation == nullptr) return fail(ErrorCode::internal, "out of memory while opening a TLS connection");
  if (identity.value.empty()) return fail(ErrorCode::invalid_input, "nobody is expected behind a TLS connection");
  X509_VERIFY_PARAM* parameters = SSL_get0_param(connection);
  X509_VERIFY_PARAM_set_hostflags(parameters,
                                  X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  bool taken = true;
  switch (identity.kind) {
    case TlsIdentity::Kind::dns:
      taken = X509_VERIFY_PARAM_set1_host(parameters, identity.value.c_str(), identity.value.size()) == 1 &&
              SSL_set_tlsext_host_name(connection, identity.value.c_str()) == 1;
      break;
    case TlsIdentity::Kind::ip: taken = X509_VERIFY_PARAM_set1_ip_asc(parameters, identity.value.c_str()) == 1; break;
    case TlsIdentity::Kind::uri: break;  // verify() compares it
  }
  if (!taken) {
    ERR_clear_error();
    return fail(ErrorCode::invalid_input,
                format("'{}' is no name or address that a certificate can carry", identity.value));
  }
  expectation->identity = identity;
  return {};
}

std::optional<std::string> verified_peer_uri(ssl_st* connection) {
  if (SSL_get_verify_result(connection) != X509_V_OK || (SSL_get_verify_mode(connection) & SSL_VERIFY_PEER) == 0) {
    return std::nullopt;
  }
  const X509Pointer certificate(SSL_get1_peer_certificate(connection));
  if (!certificate) return std::nullopt;
  CertificateNames names = names_of(certificate.get());
  if (names.uri.size() != 1) return std::nullopt;
  return std::move(names.uri.front());
}

std::string describe_tls_failure(ssl_st* connection, std::string fallback) {
  const long result = SSL_get_verify_result(connection);
  const Expectation* expectation = expectation_of(connection);
  const std::string names = expectation == nullptr ? std::string() : expectation->names_seen;
  switch (result) {
    case X509_V_OK: return fallback;
    case X509_V_ERR_CERT_HAS_EXPIRED: return "the certificate has expired";
    case X509_V_ERR_CERT_NOT_YET_VALID: return "the certificate is not valid yet (is a clock wrong?)";
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE: return "the certificate was not signed by an authority that we trust";
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
    case X509_V_ERR_APPLICATION_VERIFICATION:
      if (expectation != nullptr && expectation->identity) {
        return format("the certificate is for {}, not for {}", names, expectation->identity->value);
      }
      return format("the certificate is for {}, and does not carry exactly one URI that says who this is", names);
    default: return std::string("the certificate was refused: ") + X509_verify_cert_error_string(result);
  }
}

}  // namespace rekindle
