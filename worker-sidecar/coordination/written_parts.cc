#include "worker-sidecar/coordination/written_parts.h"

#include <utility>

namespace rekindle {
namespace {

// With the longest names an entry takes some 400 bytes, and a frame a MiB.
constexpr std::size_t kEntriesInAMessage = 1'500;

}  // namespace

void send_in_parts(std::uint32_t to, const PodWrittenMessage& written, CoordinationOutputs& out) {
  PodWrittenMessage message = written;
  message.ranks.clear();
  std::size_t entries = 0;
  for (const RankWrittenFile& rank : written.ranks) {
    if (!message.ranks.empty() && entries + rank.written.entries.size() > kEntriesInAMessage) {
      out.push_back(SendToPeer{to, PodWrittenMessage{.term = written.term, .ordinal = written.ordinal, .ok = written.ok, .error = written.error,
                                                     .failed_ranks = written.failed_ranks, .ranks = std::exchange(message.ranks, {}), .more = true}});
      entries = 0;
    }
    entries += rank.written.entries.size();
    message.ranks.push_back(rank);
  }
  out.push_back(SendToPeer{to, std::move(message)});
}

}  // namespace rekindle
