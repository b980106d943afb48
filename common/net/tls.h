// TLS as this project wants it: version 1.2 or newer, the chain checked against the bundle that we
// were given and nothing else, the peer's identity checked against what we expect (a DNS name, an
// IP address or a URI in its subject alternative names; the common name counts for nothing), expiry
// checked. Contexts are immutable and shared: rotation makes a new one and hands it to whoever
// opens the next connection.
//
// OpenSSL stays out of this header; a caller that brings its own transport (asio) uses native() and
// the two functions at the end. Contexts may be used from any number of threads.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "common/base/error.h"

struct ssl_ctx_st;  // SSL_CTX
struct ssl_st;      // SSL

namespace rekindle {

// A certificate with the chain behind it, and its private key, as PEM text.
struct TlsKeyPair {
  std::string certificate_pem;
  std::string private_key_pem;

  bool operator==(const TlsKeyPair&) const = default;
};

// Whom the certificate must have been made for.
struct TlsIdentity {
  enum class Kind { dns, ip, uri };
  Kind kind = Kind::dns;
  std::string value;

  // An IP address where `host` is one (an IPv6 address may stand in brackets), else a DNS name.
  static TlsIdentity of_host(std::string host);
  static TlsIdentity of_uri(std::string uri);

  bool operator==(const TlsIdentity&) const = default;
};

struct TlsClientSettings {
  std::string authorities_pem;    // the only roots of trust; at least one certificate
  std::optional<TlsKeyPair> own;  // shown to a server that asks for one
};

class TlsClientContext {
 public:
  // Fails with invalid_input that names the part that does not fit: no certificate in the bundle, a
  // key that is not the certificate's...
  static Result<std::shared_ptr<const TlsClientContext>> make(const TlsClientSettings& settings);
  ~TlsClientContext();
  TlsClientContext(const TlsClientContext&) = delete;
  TlsClientContext& operator=(const TlsClientContext&) = delete;

  ssl_ctx_st* native() const { return context_; }

 private:
  explicit TlsClientContext(ssl_ctx_st* context) : context_(context) {}
  ssl_ctx_st* context_;
};

struct TlsServerSettings {
  TlsKeyPair own;
  // Set: only peers with a certificate under these roots and with exactly one URI name get in
  // (mutual TLS). Empty: any client.
  std::string client_authorities_pem;
};

class TlsServerContext {
 public:
  static Result<std::shared_ptr<const TlsServerContext>> make(const TlsServerSettings& settings);
  ~TlsServerContext();
  TlsServerContext(const TlsServerContext&) = delete;
  TlsServerContext& operator=(const TlsServerContext&) = delete;

  ssl_ctx_st* native() const { return context_; }
  // For tests: whether a server was made with the authority of its clients.
  bool asks_for_client_certificate() const { return mutual_; }

 private:
  TlsServerContext(ssl_ctx_st* context, bool mutual) : context_(context), mutual_(mutual) {}
  ssl_ctx_st* context_;
  bool mutual_;
};

// For transports of the caller's own: what must stand in the peer's certificate. Call before the
// handshake, which then fails for anybody else.
Status expect_tls_identity(ssl_st* connection, const TlsIdentity& identity);

// The URI in the verified certificate of the peer after the handshake. None when there was no
// certificate, or not exactly one URI in it.
std::optional<std::string> verified_peer_uri(ssl_st* connection);

// Why the handshake on this connection failed, in words: "the certificate has expired", "the
// certificate is for ..., not for ...". `fallback` is used when it was not the certificate.
std::string describe_tls_failure(ssl_st* connection, std::string fallback);

}  // namespace rekindle
