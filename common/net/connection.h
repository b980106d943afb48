// One byte stream, plain or TLS, for the HTTP client and server of this folder. Every call has a
// deadline and can be interrupted through a descriptor. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/base/instant.h"
#include "common/net/socket.h"
#include "common/net/tls.h"

namespace rekindle {

class Connection {
 public:
  virtual ~Connection() = default;

  // What has to pass before the first byte can be read at the server's end: a TLS handshake,
  // nothing where it is plain. After deadline_exceeded it can be called again.
  virtual Status open(Instant /*deadline*/, int /*interrupt*/) { return {}; }

  // At least one byte into the buffer, or 0 at the proper end of the stream. A TLS stream that ends
  // without saying so is an error (it may have been cut). deadline_exceeded when nothing came in
  // time; the connection can be read again then.
  virtual Result<std::size_t> read_some(char* buffer, std::size_t size, Instant deadline, int interrupt) = 0;

  // Everything, or an error. `silence` bounds the time without progress.
  virtual Status write_all(std::string_view bytes, Duration silence, Instant deadline, int interrupt) = 0;

  // Bytes that were received and not read yet, so that poll would not tell of them.
  virtual bool has_buffered() const = 0;

  // The URI of a verified peer, see tls.h.
  virtual std::optional<std::string> peer_uri() const { return std::nullopt; }

  // Says goodbye as far as that takes no time.
  virtual void close_politely() {}

  virtual int descriptor() const = 0;
};

std::unique_ptr<Connection> make_plain_connection(FileDescriptor descriptor);

// A client's end comes back open, a server's end before its handshake (open()). Errors name the
// other side as `peer`.
using ConnectionPointer = std::unique_ptr<Connection>;
Result<ConnectionPointer> make_tls_client_connection(FileDescriptor descriptor, const TlsClientContext& context,
                                                     const TlsIdentity& identity, const std::string& peer,
                                                     Instant deadline, int interrupt);
Result<ConnectionPointer> make_tls_server_connection(FileDescriptor descriptor, const TlsServerContext& context,
                                                     std::string peer);

}  // namespace rekindle
