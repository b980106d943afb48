#include "common/net/connection.h"

#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "common/base/format.h"
#include "common/net/openssl_support.h"
#include "common/system/clock.h"

namespace rekindle {
namespace {

Status wait_or_fail(int descriptor, bool to_write, Instant deadline, int interrupt) {
  const Result<Readiness> readiness = wait_for(descriptor, to_write, deadline, interrupt);
  if (!readiness) return std::unexpected(readiness.error());
  if (*readiness == Readiness::interrupted) return stopped();
  if (*readiness == Readiness::timed_out) {
    return fail(ErrorCode::deadline_exceeded,
                to_write ? "the other side did not take our bytes in time" : "no bytes came in time", Retry::yes);
  }
  return {};
}

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

class PlainConnection final : public Connection {
 public:
  explicit PlainConnection(FileDescriptor descriptor) : descriptor_(std::move(descriptor)) {}

  Result<std::size_t> read_some(char* buffer, std::size_t size, Instant deadline, int interrupt) override {
    while (true) {
      const ssize_t count = recv(descriptor_.get(), buffer, size, 0);
      if (count >= 0) return static_cast<std::size_t>(count);
      if (errno == EINTR) continue;
      if (!would_block(errno)) return fail_errno(errno, "the connection broke");
      if (Status status = wait_or_fail(descriptor_.get(), false, deadline, interrupt); !status) {
        return std::unexpected(status.error());
      }
    }
  }

  Status write_all(std::string_view bytes, Duration silence, Instant deadline, int interrupt) override {
    while (!bytes.empty()) {
      const ssize_t count = send(descriptor_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count >= 0) {
        bytes.remove_prefix(static_cast<std::size_t>(count));
        continue;
      }
      if (errno == EINTR) continue;
      if (!would_block(errno)) return fail_errno(errno, "the connection broke");
      const Instant limit = std::min(deadline, monotonic_now() + silence);
      if (Status status = wait_or_fail(descriptor_.get(), true, limit, interrupt); !status) return status;
    }
    return {};
  }

  bool has_buffered() const override { return false; }
  int descriptor() const override { return descriptor_.get(); }

 private:
  FileDescriptor descriptor_;
};

int descriptor_of(BIO* bio) { return static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio))); }

// OpenSSL's own socket BIO writes with write(), which raises SIGPIPE when the peer is gone; a
// library may not rely on the process ignoring it.
int bio_write(BIO* bio, const char* data, std::size_t size, std::size_t* written) {
  BIO_clear_retry_flags(bio);
  const ssize_t count = send(descriptor_of(bio), data, size, MSG_NOSIGNAL);
  if (count < 0) {
    if (would_block(errno) || errno == EINTR) BIO_set_retry_write(bio);
    return 0;
  }
  *written = static_cast<std::size_t>(count);
  return 1;
}

int bio_read(BIO* bio, char* data, std::size_t size, std::size_t* got) {
  BIO_clear_retry_flags(bio);
  const ssize_t count = recv(descriptor_of(bio), data, size, 0);
  if (count < 0 && (would_block(errno) || errno == EINTR)) BIO_set_retry_read(bio);
  if (count == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  if (count <= 0) return 0;
  *got = static_cast<std::size_t>(count);
  return 1;
}

long bio_control(BIO* bio, int command, long, void*) {
  switch (command) {
    case BIO_CTRL_FLUSH: return 1;
    case BIO_CTRL_EOF: return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0 ? 1 : 0;
    default: return 0;
  }
}

const BIO_METHOD* bio_method() {
  static const BIO_METHOD* const method = [] {
    constexpr int kKind = BIO_TYPE_SOURCE_SINK | BIO_TYPE_DESCRIPTOR;
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | kKind, "rekindle socket");
    BIO_meth_set_write_ex(made, bio_write);
    BIO_meth_set_read_ex(made, bio_read);
    BIO_meth_set_ctrl(made, bio_control);
    return made;
  }();
  return method;
}

class TlsConnection final : public Connection {
 public:
  TlsConnection(FileDescriptor descriptor, ssl_ctx_st* context, std::string peer)
      : descriptor_(std::move(descriptor)), peer_(std::move(peer)), connection_(SSL_new(context)) {
    BIO* bio = BIO_new(bio_method());
    if (!connection_ || bio == nullptr) {
      BIO_free_all(bio);
      connection_.reset();
      return;
    }
    BIO_set_data(bio, reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor_.get())));
    BIO_set_init(bio, 1);
    SSL_set_bio(connection_.get(), bio, bio);
  }

  SSL* tls() const { return connection_.get(); }

  Status open(Instant deadline, int interrupt) override { return handshake(false, deadline, interrupt); }

  Status handshake(bool as_client, Instant deadline, int interrupt) {
    while (true) {
      ERR_clear_error();
      errno = 0;
      const int result = as_client ? SSL_connect(connection_.get()) : SSL_accept(connection_.get());
      if (result == 1) {
        open_ = true;
        return {};
      }
      const int reason = SSL_get_error(connection_.get(), result);
      if (reason == SSL_ERROR_WANT_READ || reason == SSL_ERROR_WANT_WRITE) {
        Status status = wait_or_fail(descriptor_.get(), reason == SSL_ERROR_WANT_WRITE, deadline, interrupt);
        if (!status) return std::unexpected(with_context(status.error(), "TLS with " + peer_));
        continue;
      }
      const bool broke = reason == SSL_ERROR_SYSCALL || (reason == SSL_ERROR_SSL && ERR_peek_error() == 0);
      if (broke && SSL_get_verify_result(connection_.get()) == X509_V_OK) {
        return fail(ErrorCode::unavailable,
                    format("TLS with {}: the other side closed the connection during the handshake", peer_),
                    Retry::yes);
      }
      const bool ended = ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
      std::string why = describe_tls_failure(connection_.get(), take_openssl_error("the handshake failed"));
      return fail(ended ? ErrorCode::unavailable : ErrorCode::refused, format("TLS with {}: {}", peer_, std::move(why)),
                  ended ? Retry::yes : Retry::no);
    }
  }

  Result<std::size_t> read_some(char* buffer, std::size_t size, Instant deadline, int interrupt) override {
    while (true) {
      ERR_clear_error();
      errno = 0;
      std::size_t count = 0;
      const int result = SSL_read_ex(connection_.get(), buffer, size, &count);
      if (result == 1) return count;
      const int saved_errno = errno;
      const int reason = SSL_get_error(connection_.get(), result);
      if (reason == SSL_ERROR_ZERO_RETURN) return 0;
      if (reason == SSL_ERROR_WANT_READ || reason == SSL_ERROR_WANT_WRITE) {
        Status status = wait_or_fail(descriptor_.get(), reason == SSL_ERROR_WANT_WRITE, deadline, interrupt);
        if (!status) return std::unexpected(status.error());
        continue;
      }
      return std::unexpected(broken(reason, saved_errno));
    }
  }

  Status write_all(std::string_view bytes, Duration silence, Instant deadline, int interrupt) override {
    while (!bytes.empty()) {
      ERR_clear_error();
      errno = 0;
      std::size_t count = 0;
      const int result = SSL_write_ex(connection_.get(), bytes.data(), bytes.size(), &count);
      if (result == 1) {
        bytes.remove_prefix(count);
        continue;
      }
      const int saved_errno = errno;
      const int reason = SSL_get_error(connection_.get(), result);
      if (reason != SSL_ERROR_WANT_READ && reason != SSL_ERROR_WANT_WRITE) {
        return std::unexpected(broken(reason, saved_errno));
      }
      const Instant limit = std::min(deadline, monotonic_now() + silence);
      if (Status status = wait_or_fail(descriptor_.get(), reason == SSL_ERROR_WANT_WRITE, limit, interrupt); !status) {
        return status;
      }
    }
    return {};
  }

  bool has_buffered() const override { return SSL_has_pending(connection_.get()) == 1; }
  std::optional<std::string> peer_uri() const override { return verified_peer_uri(connection_.get()); }

  void close_politely() override {
    ERR_clear_error();
    if (open_) SSL_shutdown(connection_.get());
    ERR_clear_error();
  }

  int descriptor() const override { return descriptor_.get(); }

 private:
  Error broken(int reason, int error_number) {
    open_ = false;  // OpenSSL forbids a shutdown after a fatal error
    if (reason == SSL_ERROR_SYSCALL && error_number != 0) {
      return fail_errno(error_number, "the connection broke").error();
    }
    return {ErrorCode::unavailable, "the TLS connection broke: " + take_openssl_error("the other side closed it"),
            Retry::yes};
  }

  FileDescriptor descriptor_;
  const std::string peer_;
  SslPointer connection_;
  bool open_ = false;
};

}  // namespace

std::unique_ptr<Connection> make_plain_connection(FileDescriptor descriptor) {
  return std::make_unique<PlainConnection>(std::move(descriptor));
}

Result<ConnectionPointer> make_tls_client_connection(FileDescriptor descriptor, const TlsClientContext& context,
                                                     const TlsIdentity& identity, const std::string& peer,
                                                     Instant deadline, int interrupt) {
  auto connection = std::make_unique<TlsConnection>(std::move(descriptor), context.native(), peer);
  if (connection->tls() == nullptr) return fail(ErrorCode::exhausted, "out of memory while opening a TLS connection");
  if (Status status = expect_tls_identity(connection->tls(), identity); !status) return std::unexpected(status.error());
  if (Status status = connection->handshake(true, deadline, interrupt); !status) {
    return std::unexpected(status.error());
  }
  return connection;
}

Result<ConnectionPointer> make_tls_server_connection(FileDescriptor descriptor, const TlsServerContext& context,
                                                     std::string peer) {
  auto connection = std::make_unique<TlsConnection>(std::move(descriptor), context.native(), std::move(peer));
  if (connection->tls() == nullptr) return fail(ErrorCode::exhausted, "out of memory while opening a TLS connection");
  return connection;
}

}  // namespace rekindle
