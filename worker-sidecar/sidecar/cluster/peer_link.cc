#include "worker-sidecar/sidecar/cluster/peer_link.h"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <asio/post.hpp>
#include <asio/write.hpp>

#include "common/base/format.h"
#include "common/net/tls.h"

namespace rekindle::sidecar {
namespace {

constexpr std::chrono::seconds kHelloLimit{10};
// The largest plan, and what every rank of the job holds where ranks differ; a peer this far
// behind does not read.
constexpr std::size_t kOutgoingBytesMax = 4 * kMessageBodyBytesMax;

void set_option(int socket, int level, int name, int value) { ::setsockopt(socket, level, name, &value, sizeof value); }

}  // namespace

PeerLink::PeerLink(asio::io_context& loop, asio::ssl::context& context, std::string identity)
    : loop_(loop), stream_(loop, context), identity_(std::move(identity)), limit_(loop) {}

PeerLink::PeerLink(asio::ip::tcp::socket socket, asio::io_context& loop, asio::ssl::context& context,
                   std::string identity)
    : loop_(loop), stream_(std::move(socket), context), identity_(std::move(identity)), limit_(loop) {}

void PeerLink::limit_time() {
  limit_.expires_after(kHelloLimit);
  limit_.async_wait([weak = weak_from_this()](std::error_code error) {
    if (const auto self = weak.lock(); self && !error) self->end("no hello within 10 s");
  });
}

void PeerLink::keep() { limit_.cancel(); }

// A node that is gone sends no end of a connection; the kernel has to ask.
void PeerLink::prepare_socket() {
  const int socket = stream_.next_layer().native_handle();
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, 3);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, 2);
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
  set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, 9000);
}

void PeerLink::dial(const asio::ip::tcp::endpoint& endpoint, Handlers handlers) {
  handlers_ = std::move(handlers);
  limit_time();
  stream_.next_layer().async_connect(endpoint, [self = shared_from_this()](std::error_code error) {
    if (error) return self->end(error.message());
    self->prepare_socket();
    self->shake_hands(asio::ssl::stream_base::client);
  });
}

void PeerLink::accept(Handlers handlers) {
  handlers_ = std::move(handlers);
  limit_time();
  prepare_socket();
  shake_hands(asio::ssl::stream_base::server);
}

void PeerLink::shake_hands(asio::ssl::stream_base::handshake_type side) {
  if (!open_) return;
  const bool dialled = side == asio::ssl::stream_base::client;
  if (dialled) {
    if (Status expected = expect_tls_identity(stream_.native_handle(), TlsIdentity::of_uri(identity_)); !expected) {
      return end(expected.error().message);
    }
  }
  stream_.async_handshake(side, [self = shared_from_this()](std::error_code error) {
    if (!self->open_) return;
    if (error) {
      return self->end(describe_tls_failure(self->stream_.native_handle(), error.message()));
    }
    // Both sides: the name in the certificate has to be the job's, whatever the address.
    const std::optional<std::string> uri = verified_peer_uri(self->stream_.native_handle());
    if (uri != self->identity_)
      return self->end(format("the certificate is of {}, not of {}", uri.value_or("nobody"), self->identity_));
    self->secured_ = true;
    self->handlers_.secured();
    self->write_next();
    self->read_some();
  });
}

void PeerLink::read_some() {
  if (!open_) return;
  stream_.async_read_some(asio::buffer(buffer_), [self = shared_from_this()](std::error_code error, std::size_t bytes) {
    if (!self->open_) return;
    if (error) return self->end(error.message());
    self->decoder_.feed({self->buffer_.data(), bytes});
    while (self->open_) {
      const auto frame = self->decoder_.next();
      if (!frame) return self->end(std::string(explain(frame.error())));
      if (!*frame) break;
      self->handlers_.frame(**frame);
    }
    self->read_some();
  });
}

void PeerLink::send(const PeerMessage& message, std::uint32_t attempt) {
  if (!open_) return;
  const EncodedMessage encoded = encode_peer_message(message);
  Result<std::string> bytes = encoder_.encode(encoded.kind, attempt, encoded.body);
  if (bytes && outgoing_bytes_ + bytes->size() > kOutgoingBytesMax)
    bytes = fail(ErrorCode::exhausted, "it does not read what is sent");
  if (!bytes) {
    asio::post(loop_, [self = shared_from_this(), why = bytes.error().message] { self->end(why); });
    return;
  }
  outgoing_bytes_ += bytes->size();
  outgoing_.push_back(*std::move(bytes));
  write_next();
}

void PeerLink::write_next() {
  if (!open_ || !secured_ || writing_ || outgoing_.empty()) return;
  writing_ = true;
  asio::async_write(stream_, asio::buffer(outgoing_.front()),
                    [self = shared_from_this()](std::error_code error, std::size_t) {
                      self->writing_ = false;
                      if (!self->open_) return;
                      if (error) return self->end(error.message());
                      self->outgoing_bytes_ -= self->outgoing_.front().size();
                      self->outgoing_.pop_front();
                      self->write_next();
                    });
}

void PeerLink::close() {
  if (!open_) return;
  open_ = false;
  limit_.cancel();
  std::error_code ignored;
  stream_.next_layer().close(ignored);
  // Not now: one of them may be running.
  asio::post(loop_, [self = shared_from_this()] { self->handlers_ = {}; });
}

void PeerLink::end(const std::string& why) {
  if (!open_) return;
  const std::function<void(const std::string&)> ended = handlers_.ended;
  close();
  if (ended) ended(why);
}

}  // namespace rekindle::sidecar
