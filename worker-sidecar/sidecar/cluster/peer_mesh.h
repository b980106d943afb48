// The connections between the sidecars of one job: one for each pair, dialled by the higher
// ordinal, mutual TLS, framed. The identity in the certificate is the trust, an address never is.
//
//   dialling --tcp, tls, hello both ways--> up --end, silence, broken frame--> waiting --> dialling
//
// with growing pauses.
//
// Bounded: connections that have not identified themselves, time until a hello, sizes of frames,
// what a peer leaves unread. Threads: the loop thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/net/tls.h"
#include "worker-sidecar/sidecar/host.h"

namespace rekindle::sidecar {

struct PeerMeshSettings {
  std::string identity;  // rekindle://namespace/job-uid, of every sidecar of the job
  std::string job_uid;
  std::string pod_uid;
  std::uint32_t ordinal = 0;
  std::uint32_t pods = 1;
  std::string version;
  std::uint16_t port = 8471;  // when taken another one
  std::shared_ptr<const TlsClientContext> client;
  std::shared_ptr<const TlsServerContext> server;
};

struct PeerAddress {
  std::uint32_t ordinal = 0;
  std::string uid;
  std::string address;
  std::uint16_t port = 0;

  bool operator==(const PeerAddress&) const = default;
};

class PeerMesh : public PeerTransport {
 public:
  struct Handlers {
    std::function<void(std::uint32_t ordinal)> connected;
    std::function<void(std::uint32_t ordinal)> lost;
    std::function<void(std::uint32_t from, std::uint32_t attempt, PeerMessage message)> message;
    std::function<void(Severity, const std::string& what, std::uint32_t ordinal, const std::string& why)> log;
  };

  static Result<std::unique_ptr<PeerMesh>> start(asio::io_context& loop, PeerMeshSettings settings, Handlers handlers);
  ~PeerMesh() override;

  std::uint16_t port() const;
  // Where the others are now. Those with a lower ordinal are dialled; a connection to a pod that is
  // no longer named ends.
  void set_peers(const std::vector<PeerAddress>& peers);
  void send(std::uint32_t ordinal, const PeerMessage& message, std::uint32_t attempt) override;
  std::size_t connections() const;

 private:
  struct Parts;
  explicit PeerMesh(std::shared_ptr<Parts> parts);
  std::shared_ptr<Parts> parts_;
};

}  // namespace rekindle::sidecar
