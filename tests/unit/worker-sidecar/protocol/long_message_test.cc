// Messages of more than one frame.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "common/base/prng.h"
#include "tests/support/random_seed.h"
#include "worker-sidecar/protocol/frame.h"

namespace rekindle {
namespace {

constexpr std::size_t kFull = kFrameBodyBytesMax;

std::string body_of(std::size_t bytes) {
  Prng prng(bytes + 1);
  std::string body(bytes, '\0');
  for (std::size_t i = 0; i < bytes; i += 61) body[i] = static_cast<char>(prng.below(256));
  return body;
}

struct Heard {
  std::vector<Frame> messages;
  std::optional<FrameFault> fault;
};

Heard hear(FrameDecoder& decoder, std::string_view stream, std::size_t portion = 64u << 10) {
  Heard heard;
  for (; !stream.empty() && !heard.fault; stream.remove_prefix(std::min(portion, stream.size()))) {
    decoder.feed(stream.substr(0, portion));
    for (;;) {
      auto message = decoder.next();
      if (!message) heard.fault = message.error();
      if (!message || !*message) break;
      heard.messages.push_back(std::move(**message));
    }
  }
  return heard;
}

Heard hear(std::string_view stream) {
  FrameDecoder decoder;
  return hear(decoder, stream);
}

// A frame that goes on, and what may follow it.
std::string full_frame(std::uint64_t sequence, std::uint16_t kind = 4, std::uint32_t attempt = 1) {
  return encode_frame(kind, attempt, sequence, std::string(kFull, 'a'), true);
}

TEST(LongMessage, HasExactlyTheFramesThatItNeeds) {
  FrameEncoder encoder;
  const std::string body = body_of(2'500'000);
  const std::string stream = *encoder.encode(4, 1, body);
  EXPECT_EQ(stream.size(), body.size() + 3 * kFrameHeaderBytes);
  EXPECT_EQ(stream.substr(8, 4), std::string("\x00\x00\x10\x80", 4));
  EXPECT_EQ(stream.substr(2 * (kFrameHeaderBytes + kFull) + 8, 4), std::string("\xa0\x25\x06\x00", 4));
}

TEST(LongMessage, ComesBackWholeAtEveryLengthAroundABorder) {
  FrameEncoder encoder;
  FrameDecoder decoder;
  std::uint64_t frames = 0;
  for (const std::size_t bytes :
       {kFull - 1, kFull, kFull + 1, 2 * kFull - 1, 2 * kFull, 2 * kFull + 1, 5 * kFull + 77}) {
    const std::string body = body_of(bytes);
    frames += (bytes + kFull - 1) / kFull;
    const Heard heard = hear(decoder, *encoder.encode(4, 3, body));
    ASSERT_FALSE(heard.fault) << bytes;
    ASSERT_EQ(heard.messages.size(), 1u) << bytes;
    EXPECT_EQ(heard.messages[0].body, body);
    EXPECT_EQ(heard.messages[0].header.kind, 4);
    EXPECT_EQ(heard.messages[0].header.attempt, 3u);
    EXPECT_EQ(heard.messages[0].header.sequence, frames);
  }
  EXPECT_EQ(decoder.waiting_bytes(), 0u);
}

void hear_in_portions(std::uint64_t seed) {
  FrameEncoder encoder;
  std::string stream = *encoder.encode(13, 1, "before");
  stream += *encoder.encode(4, 1, body_of(2 * kFull + 5));
  stream += *encoder.encode(13, 1, "after");
  const Heard expected = hear(stream);
  ASSERT_EQ(expected.messages.size(), 3u);
  Prng prng(seed);
  for (int i = 0; i < 20; ++i) {
    FrameDecoder decoder;
    const Heard heard = hear(decoder, stream, 1000 + prng.below(3 * kFull));
    EXPECT_FALSE(heard.fault);
    EXPECT_EQ(heard.messages, expected.messages);
  }
}

TEST(LongMessage, IsTheSameWhereverTheStreamIsCut) { test::for_each_seed({.fixed = {20260201}}, hear_in_portions); }

TEST(LongMessage, TheLargestPassesAndALargerOneIsRefusedWithASentence) {
  FrameEncoder encoder;
  const Result<std::string> too_large = encoder.encode(4, 1, std::string(kMessageBodyBytesMax + 1, 'x'));
  ASSERT_FALSE(too_large.has_value());
  EXPECT_EQ(too_large.error().code, ErrorCode::invalid_input);
  EXPECT_NE(too_large.error().message.find("33554433 bytes"), std::string::npos) << too_large.error().message;
  EXPECT_NE(too_large.error().message.find("register fewer"), std::string::npos) << too_large.error().message;

  // The refusal used up no sequence number.
  const Heard heard = hear(*encoder.encode(4, 1, std::string(kMessageBodyBytesMax, 'x')));
  EXPECT_FALSE(heard.fault);
  ASSERT_EQ(heard.messages.size(), 1u);
  EXPECT_EQ(heard.messages[0].body.size(), kMessageBodyBytesMax);
}

TEST(LongMessage, CutShortItIsWaitedFor) {
  FrameEncoder encoder;
  const std::string stream = *encoder.encode(4, 1, body_of(2 * kFull + 5));
  for (const std::size_t bytes : {kFull, kFull + kFrameHeaderBytes, kFull + kFrameHeaderBytes + 1,
                                  2 * (kFull + kFrameHeaderBytes), stream.size() - 1}) {
    const Heard heard = hear(std::string_view(stream).substr(0, bytes));
    EXPECT_FALSE(heard.fault) << bytes;
    EXPECT_TRUE(heard.messages.empty()) << bytes;
  }
}

TEST(LongMessage, AnotherKindOrAttemptBetweenItsFramesEndsTheConnection) {
  EXPECT_EQ(hear(full_frame(1) + encode_frame(9, 1, 2, "rest")).fault, FrameFault::broken_message);
  EXPECT_EQ(hear(full_frame(1) + encode_frame(4, 2, 2, "rest")).fault, FrameFault::broken_message);
  EXPECT_EQ(hear(full_frame(1) + full_frame(2, 9)).fault, FrameFault::broken_message);
  EXPECT_FALSE(hear(full_frame(1) + encode_frame(4, 1, 2, "rest")).fault);
}

TEST(LongMessage, AFrameLostOrTwiceInsideItEndsTheConnection) {
  EXPECT_EQ(hear(full_frame(1) + encode_frame(4, 1, 3, "rest")).fault, FrameFault::wrong_sequence);
  EXPECT_EQ(hear(full_frame(1) + full_frame(1)).fault, FrameFault::wrong_sequence);
}

TEST(LongMessage, AnEndWithoutBytesEndsTheConnection) {
  EXPECT_EQ(hear(full_frame(1) + encode_frame(4, 1, 2, "")).fault, FrameFault::broken_message);
}

TEST(LongMessage, AFrameThatGoesOnWithoutBeingFullEndsTheConnection) {
  std::string frame = encode_frame(4, 1, 1, std::string(kFull - 1, 'a'));
  frame[11] = static_cast<char>(0x80);
  const std::uint32_t checksum = frame_checksum(std::string_view(frame).substr(0, 28));
  for (std::size_t i = 0; i < 4; ++i) frame[28 + i] = static_cast<char>(checksum >> (8 * i) & 0xff);
  EXPECT_EQ(hear(frame).fault, FrameFault::broken_message);
}

TEST(LongMessage, AnEndlessOneEndsTheConnectionAndLeavesNothingBehind) {
  FrameDecoder decoder;
  std::size_t most = 0;
  std::optional<FrameFault> fault;
  for (std::uint64_t sequence = 1; !fault; ++sequence) {
    ASSERT_LE(sequence, kMessageBodyBytesMax / kFull + 1);
    fault = hear(decoder, full_frame(sequence)).fault;
    most = std::max(most, decoder.waiting_bytes());
  }
  EXPECT_EQ(fault, FrameFault::message_too_large);
  EXPECT_LE(most, kMessageBodyBytesMax);
  EXPECT_EQ(decoder.waiting_bytes(), 0u);
}

TEST(LongMessage, IsRefusedFromAStrangerBeforeItsBodyHasCome) {
  FrameDecoder stranger({.message_bytes_max = kFrameBodyBytesMax});
  const Heard heard = hear(stranger, full_frame(1).substr(0, kFrameHeaderBytes));
  EXPECT_EQ(heard.fault, FrameFault::message_too_large);

  FrameDecoder known({.message_bytes_max = kFrameBodyBytesMax});
  EXPECT_EQ(hear(known, encode_frame(1, 0, 1, "hello")).messages.size(), 1u);
  known.set_message_bytes_max(kMessageBodyBytesMax);
  EXPECT_EQ(hear(known, full_frame(2) + encode_frame(4, 1, 3, "rest")).messages.size(), 1u);
}

void damage_a_message(std::uint64_t seed) {
  FrameEncoder encoder;
  const std::string stream = *encoder.encode(4, 1, body_of(kFull + 100));
  Prng prng(seed);
  for (int i = 0; i < 40; ++i) {
    std::string damaged = stream;
    const std::size_t at =
        prng.below(2) == 0 ? prng.below(damaged.size()) : kFull + kFrameHeaderBytes + prng.below(kFrameHeaderBytes);
    damaged[at] = static_cast<char>(damaged[at] ^ 1 << prng.below(8));
    const Heard heard = hear(damaged);
    EXPECT_TRUE(heard.messages.empty()) << "byte " << at;
  }
}

TEST(LongMessage, DamagedAnywhereItIsNotTakenForOne) { test::for_each_seed({.fixed = {20260202}}, damage_a_message); }

}  // namespace
}  // namespace rekindle
