#include "worker-sidecar/sidecar/cluster/peer_mesh.h"

#include <openssl/ssl.h>

#include <algorithm>
#include <asio/ip/v6_only.hpp>
#include <map>
#include <set>

#include "common/base/format.h"
#include "worker-sidecar/sidecar/cluster/peer_link.h"

namespace rekindle::sidecar {
namespace {

constexpr std::chrono::milliseconds kFirstRedialPause{100};
// an eviction right after a sidecar came back waits for this
constexpr std::chrono::milliseconds kLongestRedialPause{500};
constexpr std::size_t kStrangersMax = 64;

// asio frees the context that it is given; ours is shared.
asio::ssl::context share(ssl_ctx_st* native) {
  ::SSL_CTX_up_ref(native);
  return asio::ssl::context(native);
}

}  // namespace

struct PeerMesh::Parts : std::enable_shared_from_this<PeerMesh::Parts> {
  struct Peer {
    PeerAddress where;
    std::shared_ptr<PeerLink> link;  // dialled, or up
    bool up = false;
    std::string pod_uid;  // of the pod at the other end, once it is up
    std::chrono::milliseconds pause = kFirstRedialPause;
    std::unique_ptr<asio::steady_timer> retry;
  };

  Parts(asio::io_context& loop_, PeerMeshSettings settings_, Handlers handlers_)
      : loop(loop_),
        settings(std::move(settings_)),
        handlers(std::move(handlers_)),
        client(share(settings.client->native())),
        server(share(settings.server->native())),
        acceptor(loop_) {}

  Status listen() {
    for (const std::uint16_t port : {settings.port, std::uint16_t{0}}) {
      std::error_code error;
      asio::ip::tcp::endpoint endpoint(asio::ip::tcp::v6(), port);
      acceptor.open(endpoint.protocol(), error);
      if (!error) {
        acceptor.set_option(asio::ip::v6_only(false), error);
      } else {
        endpoint = {asio::ip::tcp::v4(), port};  // a node without IPv6
        acceptor.open(endpoint.protocol(), error);
      }
      if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
      if (!error) acceptor.bind(endpoint, error);
      if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
      if (!error) return {};
      acceptor.close(error);
    }
    return fail(ErrorCode::unavailable, "no port can be listened on for the other sidecars of the job");
  }

  void accept_next() {
    acceptor.async_accept([weak = weak_from_this()](std::error_code error, asio::ip::tcp::socket socket) {
      const auto self = weak.lock();
      if (!self || error == asio::error::operation_aborted) return;
      if (!error && self->strangers.size() < kStrangersMax) self->take(std::move(socket));
      self->accept_next();
    });
  }

  void take(asio::ip::tcp::socket socket) {
    auto link = std::make_shared<PeerLink>(std::move(socket), loop, server, settings.identity);
    strangers.insert(link);
    PeerLink* const raw = link.get();
    const std::weak_ptr<Parts> weak = weak_from_this();
    link->accept({
        .secured =
            [weak, raw] {
              if (const auto self = weak.lock()) raw->send(self->hello(), 0);
            },
        .frame =
            [weak, raw](const Frame& frame) {
              if (const auto self = weak.lock()) self->on_frame(raw, std::nullopt, frame);
            },
        .ended =
            [weak, raw](const std::string& why) {
              if (const auto self = weak.lock()) self->on_ended(raw, why);
            },
    });
  }

  PeerHelloMessage hello() const {
    return {.job_uid = settings.job_uid,
            .pod_uid = settings.pod_uid,
            .ordinal = settings.ordinal,
            .pods = settings.pods,
            .version = settings.version};
  }

  void dial(std::uint32_t ordinal) {
    Peer& peer = peers[ordinal];
    if (peer.link || peer.where.address.empty()) return;
    std::error_code error;
    const asio::ip::address address = asio::ip::make_address(peer.where.address, error);
    if (error)
      return handlers.log(Severity::warning, "the operator gave an address that is none", ordinal, peer.where.address);
    peer.link = std::make_shared<PeerLink>(loop, client, settings.identity);
    PeerLink* const raw = peer.link.get();
    const std::weak_ptr<Parts> weak = weak_from_this();
    peer.link->dial({address, peer.where.port}, {
                                                    .secured =
                                                        [weak, raw] {
                                                          if (const auto self = weak.lock())
                                                            raw->send(self->hello(), 0);
                                                        },
                                                    .frame =
                                                        [weak, raw, ordinal](const Frame& frame) {
                                                          if (const auto self = weak.lock())
                                                            self->on_frame(raw, ordinal, frame);
                                                        },
                                                    .ended =
                                                        [weak, raw](const std::string& why) {
                                                          if (const auto self = weak.lock()) self->on_ended(raw, why);
                                                        },
                                                });
  }

  // Which peer this link belongs to, once it is known.
  std::optional<std::uint32_t> owner_of(const PeerLink* link) const {
    for (const auto& [ordinal, peer] : peers) {
      if (peer.link.get() == link) return ordinal;
    }
    return std::nullopt;
  }

  void on_frame(PeerLink* link, std::optional<std::uint32_t> dialled, const Frame& frame) {
    const Result<PeerMessage> message = decode_peer_message(frame.header.kind, frame.body);
    if (!message) {
      if (message.error().code == ErrorCode::not_found) return;  // a kind of a newer minor version
      return drop(link, message.error().message);
    }
    const std::optional<std::uint32_t> owner = owner_of(link);
    if (owner && peers[*owner].up) {
      if (std::holds_alternative<PeerHelloMessage>(*message)) return drop(link, "it said hello twice");
      return handlers.message(*owner, frame.header.attempt, *message);
    }
    const auto* hello = std::get_if<PeerHelloMessage>(&*message);
    if (hello == nullptr) return drop(link, "it did not say hello first");
    if (hello->job_uid != settings.job_uid || hello->pods != settings.pods || hello->ordinal >= settings.pods ||
        (dialled ? hello->ordinal != *dialled : hello->ordinal <= settings.ordinal)) {
      return drop(
          link, format("it says it is pod {} of {} of job {}, which does not fit pod {} of {} of job {}",
                       hello->ordinal, hello->pods, hello->job_uid, settings.ordinal, settings.pods, settings.job_uid));
    }
    // A pod of an earlier life that still runs must not take the place of the one that the operator
    // names.
    const auto known = peers.find(hello->ordinal);
    if (known != peers.end() && !known->second.where.uid.empty() && known->second.where.uid != hello->pod_uid) {
      return drop(link, "it is another pod than the operator names for its place");
    }
    come_up(link, hello->ordinal, hello->pod_uid);
  }

  void come_up(PeerLink* link, std::uint32_t ordinal, const std::string& pod_uid) {
    Peer& peer = peers[ordinal];
    if (peer.link.get() != link) {
      const auto stranger = std::ranges::find(strangers, link, [](const auto& kept) { return kept.get(); });
      if (stranger == strangers.end()) return;
      const std::shared_ptr<PeerLink> fresh = *stranger;
      strangers.erase(stranger);
      // The sidecar over there was restarted before the end of the old connection was seen.
      if (peer.link) peer.link->close();
      const bool was_up = std::exchange(peer.up, false);
      peer.link = fresh;
      if (was_up) handlers.lost(ordinal);
    }
    link->keep();
    Peer& now = peers[ordinal];
    now.up = true;
    now.pod_uid = pod_uid;
    now.pause = kFirstRedialPause;
    handlers.log(Severity::info, "connected to a peer", ordinal, "");
    handlers.connected(ordinal);
  }

  void drop(PeerLink* link, const std::string& why) {
    link->close();
    on_ended(link, why);
  }

  void on_ended(PeerLink* link, const std::string& why) {
    std::erase_if(strangers, [&](const auto& kept) { return kept.get() == link; });
    const std::optional<std::uint32_t> owner = owner_of(link);
    if (!owner) return handlers.log(Severity::warning, "a connection of a stranger ended", settings.pods, why);
    Peer& peer = peers[*owner];
    peer.link.reset();
    const bool was_up = std::exchange(peer.up, false);
    handlers.log(was_up ? Severity::warning : Severity::debug, was_up ? "a peer is gone" : "a peer cannot be reached",
                 *owner, why);
    if (*owner < settings.ordinal) retry_later(*owner);
    if (was_up) handlers.lost(*owner);
  }

  void retry_later(std::uint32_t ordinal) {
    Peer& peer = peers[ordinal];
    peer.retry = std::make_unique<asio::steady_timer>(loop, peer.pause);
    peer.pause = std::min(peer.pause * 2, kLongestRedialPause);
    peer.retry->async_wait([weak = weak_from_this(), ordinal](std::error_code error) {
      if (const auto self = weak.lock(); self && !error) self->dial(ordinal);
    });
  }

  void set_peers(const std::vector<PeerAddress>& seen) {
    std::vector<std::uint32_t> lost;
    for (auto& [ordinal, peer] : peers) {
      const auto found = std::ranges::find(seen, ordinal, &PeerAddress::ordinal);
      // A connection that was accepted before its pod was named stays only if it is that pod's.
      const std::string& known = peer.up ? peer.pod_uid : peer.where.uid;
      if (found != seen.end() && (found->uid == known || known.empty())) continue;
      // Gone, or another pod has its place.
      if (peer.link) peer.link->close();
      peer.link.reset();
      peer.retry.reset();
      if (std::exchange(peer.up, false)) lost.push_back(ordinal);
      peer.where = {};
    }
    for (const PeerAddress& address : seen) {
      if (address.ordinal == settings.ordinal || address.ordinal >= settings.pods) continue;
      Peer& peer = peers[address.ordinal];
      const bool moved = peer.where != address;
      peer.where = address;
      if (address.ordinal < settings.ordinal && moved && !peer.up) {
        if (peer.link) peer.link->close();
        peer.link.reset();
        peer.retry.reset();
        peer.pause = kFirstRedialPause;
        dial(address.ordinal);
      }
    }
    for (const std::uint32_t ordinal : lost) handlers.lost(ordinal);
  }

  asio::io_context& loop;
  const PeerMeshSettings settings;
  Handlers handlers;
  asio::ssl::context client;
  asio::ssl::context server;
  asio::ip::tcp::acceptor acceptor;
  std::map<std::uint32_t, Peer> peers;
  std::set<std::shared_ptr<PeerLink>> strangers;  // accepted, no hello yet
};

Result<std::unique_ptr<PeerMesh>> PeerMesh::start(asio::io_context& loop, PeerMeshSettings settings,
                                                  Handlers handlers) {
  auto parts = std::make_shared<Parts>(loop, std::move(settings), std::move(handlers));
  if (Status listening = parts->listen(); !listening) return std::unexpected(listening.error());
  parts->accept_next();
  return std::unique_ptr<PeerMesh>(new PeerMesh(std::move(parts)));
}

PeerMesh::PeerMesh(std::shared_ptr<Parts> parts) : parts_(std::move(parts)) {}

PeerMesh::~PeerMesh() {
  std::error_code ignored;
  parts_->acceptor.close(ignored);
  for (auto& [ordinal, peer] : parts_->peers) {
    if (peer.link) peer.link->close();
    peer.retry.reset();
  }
  for (const auto& link : parts_->strangers) link->close();
}

std::uint16_t PeerMesh::port() const {
  std::error_code error;
  const auto endpoint = parts_->acceptor.local_endpoint(error);
  return error ? std::uint16_t{0} : endpoint.port();
}

void PeerMesh::set_peers(const std::vector<PeerAddress>& peers) { parts_->set_peers(peers); }

void PeerMesh::send(std::uint32_t ordinal, const PeerMessage& message, std::uint32_t attempt) {
  const auto found = parts_->peers.find(ordinal);
  if (found != parts_->peers.end() && found->second.up) found->second.link->send(message, attempt);
}

std::size_t PeerMesh::connections() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(parts_->peers, [](const auto& entry) { return entry.second.up; }));
}

}  // namespace rekindle::sidecar
