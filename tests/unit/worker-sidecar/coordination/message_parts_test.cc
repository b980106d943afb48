#include "worker-sidecar/coordination/message_parts.h"

#include <gtest/gtest.h>

#include "worker-sidecar/protocol/frame.h"

namespace rekindle::sidecar {
namespace {

// Four ranks of a pod, each with `pieces` tensors of its own.
AssignMessage order_of(std::size_t pieces) {
  AssignMessage order{.term = 131072, .step = 9, .path = "a1-s9-x"};
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    WriterPlan writer{.rank = rank, .file = "rank-" + std::to_string(rank) + ".safetensors", .pieces = {}};
    for (std::size_t i = 0; i < pieces; ++i) writer.pieces.push_back({std::string(240, 'n') + std::to_string(i), 0, 1});
    order.writers.push_back(std::move(writer));
  }
  return order;
}

template <typename Message>
std::vector<Message> messages_of(const CoordinationOutputs& out) {
  std::vector<Message> messages;
  for (const CoordinationOutput& output : out)
    messages.push_back(std::get<Message>(std::get<SendToPeer>(output).message));
  return messages;
}

std::vector<AssignMessage> parts_of(const AssignMessage& order) {
  CoordinationOutputs out;
  send_in_parts(1, order, out);
  return messages_of<AssignMessage>(out);
}

TEST(MessageParts, AnOrdinaryOrderIsOneMessageAsItIs) {
  const AssignMessage order = order_of(3);
  EXPECT_EQ(parts_of(order), std::vector{order});
  EXPECT_EQ(AssignParts().add(order), order);
}

TEST(MessageParts, APodWithoutWritersIsToldToo) {
  EXPECT_EQ(parts_of(AssignMessage{.term = 1, .step = 2, .path = "p"}).size(), 1u);
}

TEST(MessageParts, EachPartOfALongOrderFitsAMessage) {
  const std::vector<AssignMessage> parts = parts_of(order_of(30'000));
  EXPECT_EQ(parts.size(), 4u);
  for (const AssignMessage& part : parts) {
    EXPECT_EQ(part.writers_in_all, 4u);
    EXPECT_LE(encode_peer_message(part).body.size(), kMessageBodyBytesMax);
  }
}

TEST(MessageParts, PartsThatCameInAnyOrderAndTwiceMakeTheOrder) {
  const AssignMessage order = order_of(30'000);
  const std::vector<AssignMessage> parts = parts_of(order);
  AssignParts gathered;
  for (const std::size_t i : {3, 1, 1, 0, 3}) EXPECT_FALSE(gathered.add(parts[i]));
  EXPECT_EQ(gathered.add(parts[2]), order);
}

TEST(MessageParts, APartOfAnotherTermBeginsAnew) {
  const std::vector<AssignMessage> parts = parts_of(order_of(30'000));
  AssignParts gathered;
  for (const std::size_t i : {0, 1, 2}) EXPECT_FALSE(gathered.add(parts[i]));
  AssignMessage newer = parts[3];
  newer.term += 65536;
  EXPECT_FALSE(gathered.add(newer));
}

TEST(MessageParts, ALongReportIsCutBetweenRanks) {
  PodWrittenMessage report{.term = 7, .ordinal = 1, .ok = true};
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    RankWrittenFile file{
        .rank = rank,
        .written = {.file = "rank-" + std::to_string(rank) + ".safetensors", .bytes = 8, .hash = std::string(32, 'a')}};
    for (std::size_t i = 0; i < 30'000; ++i) {
      const std::string name = std::string(240, 'n') + std::to_string(i);
      file.written.entries.push_back({name, name, 0, 1, 8, 12});
    }
    report.ranks.push_back(std::move(file));
  }
  CoordinationOutputs out;
  send_in_parts(0, report, out);
  const std::vector<PodWrittenMessage> parts = messages_of<PodWrittenMessage>(out);
  ASSERT_EQ(parts.size(), 3u);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    EXPECT_EQ(parts[i].more, i + 1 < parts.size());
    EXPECT_EQ(parts[i].ranks, std::vector{report.ranks[i]});
    EXPECT_LE(encode_peer_message(parts[i]).body.size(), kMessageBodyBytesMax);
  }
}

}  // namespace
}  // namespace rekindle::sidecar
