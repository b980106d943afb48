#include "worker-sidecar/coordination/message_parts.h"

#include <utility>

namespace rekindle::sidecar {
namespace {

// With the longest names an entry takes some 600 bytes, and a message holds 32 MiB.
constexpr std::size_t kEntriesInAMessage = 50'000;

}  // namespace

void send_in_parts(std::uint32_t to, const PodWrittenMessage& written, CoordinationOutputs& out) {
  PodWrittenMessage message = written;
  message.ranks.clear();
  std::size_t entries = 0;
  for (const RankWrittenFile& rank : written.ranks) {
    if (!message.ranks.empty() && entries + rank.written.entries.size() > kEntriesInAMessage) {
      out.push_back(SendToPeer{to, PodWrittenMessage{.term = written.term,
                                                     .ordinal = written.ordinal,
                                                     .ok = written.ok,
                                                     .error = written.error,
                                                     .failed_ranks = written.failed_ranks,
                                                     .ranks = std::exchange(message.ranks, {}),
                                                     .more = true}});
      entries = 0;
    }
    entries += rank.written.entries.size();
    message.ranks.push_back(rank);
  }
  out.push_back(SendToPeer{to, std::move(message)});
}

void send_in_parts(std::uint32_t to, const AssignMessage& assign, CoordinationOutputs& out) {
  std::vector<AssignMessage> messages(1, {.term = assign.term, .step = assign.step, .path = assign.path});
  std::size_t pieces = 0;
  for (const WriterPlan& writer : assign.writers) {
    if (pieces > 0 && pieces + writer.pieces.size() > kEntriesInAMessage) {
      messages.push_back({.term = assign.term, .step = assign.step, .path = assign.path});
      pieces = 0;
    }
    pieces += writer.pieces.size();
    messages.back().writers.push_back(writer);
  }
  for (AssignMessage& message : messages) {
    if (messages.size() > 1) message.writers_in_all = static_cast<std::uint32_t>(assign.writers.size());
    out.push_back(SendToPeer{to, std::move(message)});
  }
}

std::optional<AssignMessage> AssignParts::add(const AssignMessage& part) {
  if (part.writers_in_all == 0) return part;
  if (std::exchange(term_, part.term) != part.term) writers_.clear();
  for (const WriterPlan& writer : part.writers) writers_.insert_or_assign(writer.rank, writer);
  if (writers_.size() < part.writers_in_all) return std::nullopt;
  AssignMessage whole{.term = part.term, .step = part.step, .path = part.path};
  for (auto& [rank, writer] : std::exchange(writers_, {})) whole.writers.push_back(std::move(writer));
  return whole;
}

}  // namespace rekindle::sidecar
