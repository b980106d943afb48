// The sum of one vector over all ranks, over TCP, in rank order: rank 0 collects ((g0 + g1) + g2) +
// g3 and sends the sum back, so every rank gets the same bytes and any two runs with as many ranks
// do.
//
// What a caller may rely on when a rank dies: sum() succeeds on a rank only when at least one other
// rank holds the complete sum too. Rank 0 returns after the others have confirmed theirs, the
// others have it from rank 0. So whenever a dead rank has made an update, a survivor can make it as
// well. For the same reason a rank that dies after the sum was complete does not spoil this step
// for the others; the next one fails.
//
// One thread. Every wait has an end.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "result.h"
#include "socket.h"

namespace digits {

// Who we are, where rank 0 listens, and how long to wait.
struct MeetingPlace {
  int rank = 0;
  int world_size = 1;
  std::string master_host = "127.0.0.1";
  std::string master_port = "29500";
  // ranks leave rk_restore together, so all are there at once
  std::chrono::seconds connect_patience{30};
  // a breakpoint may hold the others that long at their gates
  std::chrono::seconds patience{120};
};

class AllReduce {
 public:
  // Connects at the first use, and then only ranks of the same attempt.
  AllReduce(MeetingPlace place, std::uint64_t attempt) : place_(std::move(place)), attempt_(attempt) {}

  // Replaces `values` by the sum over all ranks. On failure `values` is not to be used.
  Status sum(std::span<float> values, std::uint64_t step);

  // Returns when all ranks have called it.
  Status meet(std::uint64_t step);

 private:
  struct Greeting;
  struct Header;

  static Deadline after(std::chrono::seconds patience) { return std::chrono::steady_clock::now() + patience; }
  Status connect();
  Status connect_to_master();
  Status await_peers();
  Result<int> greet_peer(Socket& peer, Deadline until);
  Status send_message(Socket& peer, std::uint64_t step, std::span<const float> values);
  Status receive_message(Socket& peer, int peer_rank, std::uint64_t step, std::span<float> values);
  Status sum_as_master(std::span<float> values, std::uint64_t step);
  Status sum_as_peer(std::span<float> values, std::uint64_t step);

  MeetingPlace place_;
  std::uint64_t attempt_;
  bool connected_ = false;
  // rank 0: by rank, its own place empty; others: one, rank 0
  std::vector<Socket> peers_;
  std::vector<float> received_;
};

}  // namespace digits
