#include "worker-sidecar/sidecar/local_server.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <cerrno>
#include <cstring>
#include <map>

#include "common/base/format.h"
#include "worker-sidecar/protocol/frame.h"

namespace rekindle::sidecar {
namespace {

constexpr std::size_t kConnectionsMax = 1024;
constexpr std::chrono::seconds kFirstFrameLimit{10};
constexpr int kBacklog = 64;
// Of connections that brought what nobody asked for. Behind that nobody is let in until some are
// closed.
constexpr std::size_t kClosesMax = 64;
constexpr std::chrono::milliseconds kClosesPause{100};
// The largest order and another one that replaces it; a rank that is this far behind does not read.
constexpr std::size_t kRankUnreadBytesMax = 2 * (kMessageBodyBytesMax + kFrameBodyBytesMax);

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return fail(ErrorCode::invalid_input,
                format("the socket path {} has {} bytes, a Unix socket allows 1 to {}; choose a shorter folder", path,
                       path.size(), sizeof address.sun_path - 1));
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

// Whether another process accepts connections there.
bool answers(const sockaddr_un& address) {
  const FileDescriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 || errno == EAGAIN;
}

}  // namespace

struct LocalServer::Parts : std::enable_shared_from_this<LocalServer::Parts> {
  enum class Role { unknown, rank, tool };

  struct Connection {
    std::shared_ptr<UnixLink> link;
    // a peer that has not identified itself has no longer
    FrameDecoder decoder{{.message_bytes_max = kFrameBodyBytesMax}};
    FrameEncoder encoder;
    Role role = Role::unknown;
    FileDescriptor process;  // that came, and that no frame has taken
    std::unique_ptr<asio::steady_timer> first_frame;
  };

  Parts(asio::io_context& loop_, int listener_, std::string path_, Handlers handlers_)
      : loop(loop_),
        listener(loop_, listener_),
        accept_timer(loop_),
        path(std::move(path_)),
        handlers(std::move(handlers_)) {}

  void accept_next() {
    if (closing.waiting() >= kClosesMax) {
      accept_timer.expires_after(kClosesPause);
      accept_timer.async_wait([self = shared_from_this()](std::error_code error) {
        if (!error && !self->stopped) self->accept_next();
      });
      return;
    }
    listener.async_wait(asio::posix::stream_descriptor::wait_read, [self = shared_from_this()](std::error_code error) {
      if (error || self->stopped) return;
      self->accept_one();
      self->accept_next();
    });
  }

  void accept_one() {
    FileDescriptor socket(::accept4(listener.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) return;
    if (connections.size() >= kConnectionsMax) return closing.close_socket(std::move(socket));
    const LinkId id = ++last_id;
    Connection& connection = connections[id];
    connection.link = std::make_shared<UnixLink>(loop, std::move(socket), closing);
    connection.first_frame = std::make_unique<asio::steady_timer>(loop, kFirstFrameLimit);
    const std::weak_ptr<Parts> weak = weak_from_this();
    connection.first_frame->async_wait([weak, id](std::error_code error) {
      if (const auto self = weak.lock(); self && !error) self->drop(id, "said nothing for 10 s");
    });
    connection.link->start({
        .received =
            [weak, id](std::string_view bytes, FileDescriptor process) {
              if (const auto self = weak.lock()) self->received(id, bytes, std::move(process));
            },
        .ended =
            [weak, id](const std::string& why) {
              if (const auto self = weak.lock()) self->drop(id, why);
            },
    });
  }

  void received(LinkId id, std::string_view bytes, FileDescriptor process) {
    const auto found = connections.find(id);
    if (found == connections.end()) return;
    if (process) found->second.process = std::move(process);
    found->second.decoder.feed(bytes);
    while (true) {
      // A handler may end any connection, this one too.
      const auto at = connections.find(id);
      if (at == connections.end() || at->second.link->overrun()) return;
      const auto frame = at->second.decoder.next();
      if (!frame) return drop(id, std::string(explain(frame.error())));
      if (!*frame) return;
      handle(id, at->second, **frame);
    }
  }

  void handle(LinkId id, Connection& connection, const Frame& frame) {
    const Result<LocalMessage> message = decode_local_message(frame.header.kind, frame.body);
    if (!message) {
      if (message.error().code == ErrorCode::not_found) return;  // a kind of a newer minor version
      return drop(id, message.error().message);
    }
    connection.first_frame.reset();
    if (std::holds_alternative<StatusMessage>(*message) && connection.role != Role::rank) {
      connection.role = Role::tool;
      return handlers.status(id);
    }
    if (const auto* hook = std::get_if<HookMessage>(&*message); hook != nullptr && connection.role == Role::unknown) {
      connection.role = Role::tool;
      return handlers.hook(id, *hook);
    }
    if (const auto* hello = std::get_if<HelloMessage>(&*message);
        hello != nullptr && connection.role == Role::unknown) {
      connection.role = Role::rank;
      connection.decoder.set_message_bytes_max(kMessageBodyBytesMax);
      connection.link->set_outgoing_bytes_max(kRankUnreadBytesMax);
      return handlers.hello(id, *hello, frame.header.attempt, std::move(connection.process));
    }
    if (connection.role != Role::rank || std::holds_alternative<HelloMessage>(*message)) {
      return drop(id, "a message came that does not fit the moment");
    }
    handlers.message(id, *message, frame.header.attempt);
  }

  void drop(LinkId id, const std::string& why) {
    const auto found = connections.find(id);
    if (found == connections.end()) return;
    const Connection ended = std::move(found->second);
    connections.erase(found);
    ended.link->close();
    if (!stopped) handlers.ended(id, why);
  }

  asio::io_context& loop;
  asio::posix::stream_descriptor listener;
  asio::steady_timer accept_timer;
  ClosingThreads closing;
  std::string path;
  Handlers handlers;
  std::map<LinkId, Connection> connections;
  LinkId last_id = 0;
  bool stopped = false;
};

Result<std::unique_ptr<LocalServer>> LocalServer::listen(asio::io_context& loop, const std::string& path,
                                                         Handlers handlers) {
  Result<sockaddr_un> address = address_of(path);
  if (!address) return std::unexpected(address.error());
  if (answers(*address)) return fail(ErrorCode::already_exists, format("another sidecar answers on {} already", path));
  struct stat about{};
  if (::lstat(path.c_str(), &about) == 0) {
    if (!S_ISSOCK(about.st_mode)) {
      return fail(ErrorCode::already_exists,
                  format("{} is there and is no socket; remove it or set REKINDLE_SOCKET to another path", path));
    }
    ::unlink(path.c_str());
  }
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return fail_errno(errno, "making a socket");
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0) {
    return fail_errno(errno, format("the socket {} cannot be made", path));
  }
  ::chmod(path.c_str(), 0666);
  if (::listen(socket.get(), kBacklog) != 0) return fail_errno(errno, format("listening on {}", path));
  auto parts = std::make_shared<Parts>(loop, socket.release(), path, std::move(handlers));
  parts->accept_next();
  return std::unique_ptr<LocalServer>(new LocalServer(std::move(parts)));
}

LocalServer::LocalServer(std::shared_ptr<Parts> parts) : parts_(std::move(parts)) {}

LocalServer::~LocalServer() {
  parts_->stopped = true;
  ::unlink(parts_->path.c_str());
  parts_->accept_timer.cancel();
  // Those that nobody has let in would be closed with the listener, with all that they brought.
  const FileDescriptor listener(parts_->listener.release());
  ::shutdown(listener.get(), SHUT_RDWR);
  while (FileDescriptor socket{::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)})
    parts_->closing.close_socket(std::move(socket));
  for (auto& [id, connection] : parts_->connections) connection.link->close();
  parts_->connections.clear();
}

void LocalServer::send(LinkId link, const LocalMessage& message, std::uint32_t attempt, int descriptor) {
  const auto found = parts_->connections.find(link);
  if (found == parts_->connections.end()) return;
  const EncodedMessage encoded = encode_local_message(message);
  Result<std::string> bytes = found->second.encoder.encode(encoded.kind, attempt, encoded.body);
  // Not from inside the caller's own loop over connections.
  if (!bytes)
    return asio::post(parts_->loop, [parts = parts_, link, why = bytes.error().message] { parts->drop(link, why); });
  found->second.link->send(*std::move(bytes), descriptor);
}

void LocalServer::close_after_sending(LinkId link) {
  const auto found = parts_->connections.find(link);
  if (found == parts_->connections.end()) return;
  const std::shared_ptr<UnixLink> kept = found->second.link;
  parts_->connections.erase(found);
  kept->close_after_sending();
}

bool LocalServer::connected(LinkId link) const { return parts_->connections.contains(link); }

}  // namespace rekindle::sidecar
