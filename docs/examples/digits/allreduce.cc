#include "allreduce.h"

#include <utility>

namespace digits {

// Both structs travel as they are: all ranks run the same program on the same kind of machine.
struct AllReduce::Greeting {
  static constexpr std::uint64_t kMagic = 0x31302d7374696764;  // "digits-01"
  std::uint64_t magic = kMagic;
  std::uint64_t attempt = 0;
  std::uint32_t rank = 0;
  std::uint32_t world_size = 0;
};

struct AllReduce::Header {
  std::uint64_t step = 0;
  std::uint64_t elements = 0;
};

Status AllReduce::sum(std::span<float> values, std::uint64_t step) {
  if (place_.world_size == 1) return {};
  if (Status connected = connect(); !connected) return connected;
  return place_.rank == 0 ? sum_as_master(values, step) : sum_as_peer(values, step);
}

Status AllReduce::meet(std::uint64_t step) {
  float nothing = 0.0F;
  return sum({&nothing, 1}, step);
}

Status AllReduce::sum_as_master(std::span<float> values, std::uint64_t step) {
  received_.resize(values.size());
  for (int rank = 1; rank < place_.world_size; ++rank) {
    if (Status received = receive_message(peers_[rank], rank, step, received_); !received) return received;
    for (std::size_t k = 0; k < values.size(); ++k) values[k] += received_[k];
  }
  // From here the step is decided; who has died meanwhile is noticed in the next one.
  for (int rank = 1; rank < place_.world_size; ++rank) {
    if (!send_message(peers_[rank], step, values)) peers_[rank].close();
  }
  for (int rank = 1; rank < place_.world_size; ++rank) {
    if (peers_[rank].is_open() && !receive_message(peers_[rank], rank, step, {})) peers_[rank].close();
  }
  return {};
}

Status AllReduce::sum_as_peer(std::span<float> values, std::uint64_t step) {
  Socket& master = peers_[0];
  if (Status sent = send_message(master, step, values); !sent) return failure("rank 0: " + sent.error());
  if (Status received = receive_message(master, 0, step, values); !received) return received;
  // The sum is here; should rank 0 be gone by now, that does not take it away.
  if (!send_message(master, step, {})) master.close();
  return {};
}

Status AllReduce::send_message(Socket& peer, std::uint64_t step, std::span<const float> values) {
  const Header header{.step = step, .elements = values.size()};
  const Deadline until = after(place_.patience);
  if (Status sent = peer.send_all(&header, sizeof header, until); !sent) return sent;
  return peer.send_all(values.data(), values.size_bytes(), until);
}

Status AllReduce::receive_message(Socket& peer, int peer_rank, std::uint64_t step, std::span<float> values) {
  const std::string who = "rank " + std::to_string(peer_rank) + ": ";
  if (!peer.is_open()) return failure(who + "the connection ended");
  Header header;
  const Deadline until = after(place_.patience);
  if (Status received = peer.receive_all(&header, sizeof header, until); !received)
    return failure(who + received.error());
  if (header.step != step || header.elements != values.size()) {
    return failure(who + "sent " + std::to_string(header.elements) + " numbers of step " + std::to_string(header.step) +
                   " where " + std::to_string(values.size()) + " of step " + std::to_string(step) + " were due");
  }
  if (Status received = peer.receive_all(values.data(), values.size_bytes(), until); !received) {
    return failure(who + received.error());
  }
  return {};
}

Status AllReduce::connect() {
  if (connected_) return {};
  if (Status done = place_.rank == 0 ? await_peers() : connect_to_master(); !done) return done;
  connected_ = true;
  return {};
}

Status AllReduce::connect_to_master() {
  const Deadline until = after(place_.connect_patience);
  Greeting own{.attempt = attempt_,
               .rank = static_cast<std::uint32_t>(place_.rank),
               .world_size = static_cast<std::uint32_t>(place_.world_size)};
  // A rank 0 of an earlier attempt may still be ending: it hangs up, and the next try finds the
  // right one.
  std::string fault;
  do {
    Result<Socket> master = Socket::connect_to(place_.master_host, place_.master_port, until);
    if (!master) return failure("rank 0: " + master.error());
    Greeting theirs;
    if (!master->send_all(&own, sizeof own, until) || !master->receive_all(&theirs, sizeof theirs, until)) {
      fault = "it hung up";
    } else if (theirs.magic != Greeting::kMagic) {
      return failure("something else than digits listens at " + place_.master_host + ":" + place_.master_port);
    } else if (theirs.attempt == attempt_ && theirs.world_size == own.world_size) {
      peers_.clear();
      peers_.push_back(std::move(*master));
      return {};
    } else {
      fault = "it lives in attempt " + std::to_string(theirs.attempt) + " with " + std::to_string(theirs.world_size) +
              " ranks";
    }
  } while (std::chrono::steady_clock::now() < until);
  return failure("rank 0: " + fault);
}

Status AllReduce::await_peers() {
  Result<Socket> listener = Socket::listen_at(place_.master_port, place_.world_size);
  if (!listener) return failure(listener.error());
  const Deadline until = after(place_.connect_patience);
  peers_.clear();
  peers_.resize(place_.world_size);
  for (int missing = place_.world_size - 1; missing > 0;) {
    Result<Socket> peer = listener->accept_one(until);
    if (!peer) {
      return failure(std::to_string(missing) + " of " + std::to_string(place_.world_size) +
                     " ranks did not connect: " + peer.error());
    }
    const Result<int> rank =
        greet_peer(*peer, std::min(until, std::chrono::steady_clock::now() + std::chrono::seconds(5)));
    // Not one of ours; the closed connection says so.
    if (!rank) continue;
    missing -= peers_[*rank].is_open() ? 0 : 1;
    peers_[*rank] = std::move(*peer);
  }
  return {};
}

Result<int> AllReduce::greet_peer(Socket& peer, Deadline until) {
  const Greeting own{.attempt = attempt_, .rank = 0, .world_size = static_cast<std::uint32_t>(place_.world_size)};
  Greeting theirs;
  if (Status received = peer.receive_all(&theirs, sizeof theirs, until); !received) return failure(received.error());
  if (Status sent = peer.send_all(&own, sizeof own, until); !sent) return failure(sent.error());
  const bool fits = theirs.magic == Greeting::kMagic && theirs.attempt == attempt_ &&
                    theirs.world_size == own.world_size && theirs.rank > 0 && theirs.rank < own.world_size;
  if (!fits) return failure("a process of another job or attempt");
  return static_cast<int>(theirs.rank);
}

}  // namespace digits
