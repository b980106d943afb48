#include "worker-sidecar/protocol/frame.h"

#include <gtest/gtest.h>

#include <vector>

#include "common/base/prng.h"
#include "tests/support/random_seed.h"

namespace rekindle {
namespace {

std::string hex_of(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    text += kDigits[static_cast<unsigned char>(c) >> 4];
    text += kDigits[static_cast<unsigned char>(c) & 0xf];
  }
  return text;
}

std::string flip_bit(std::string bytes, std::size_t bit) {
  bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << (bit % 8));
  return bytes;
}

std::string set_byte(std::string bytes, std::size_t offset, unsigned char value) {
  bytes[offset] = static_cast<char>(value);
  return bytes;
}

std::string fix_header_checksum(std::string bytes) {
  const std::uint32_t checksum = frame_checksum(std::string_view(bytes).substr(0, 28));
  for (std::size_t i = 0; i < 4; ++i) bytes[28 + i] = static_cast<char>(checksum >> (8 * i) & 0xff);
  return bytes;
}

FrameFault fault_of(std::string_view bytes) {
  FrameDecoder decoder;
  decoder.feed(bytes);
  const auto frame = decoder.next();
  EXPECT_FALSE(frame.has_value());
  return frame.has_value() ? FrameFault::no_kind : frame.error();
}

std::vector<Frame> frames_of(FrameDecoder& decoder) {
  std::vector<Frame> frames;
  for (;;) {
    auto frame = decoder.next();
    EXPECT_TRUE(frame.has_value()) << to_string(frame.error());
    if (!frame.has_value() || !frame->has_value()) return frames;
    frames.push_back(std::move(**frame));
  }
}

std::string some_body(Prng& prng, std::size_t most) {
  std::string body(prng.below(most), '\0');
  for (char& c : body) c = static_cast<char>(prng.below(256));
  return body;
}

TEST(Frame, HasExactlyTheseBytes) {
  const std::string bytes = encode_frame(13, 2, 5, R"({"exit_code":0})");
  EXPECT_EQ(hex_of(bytes.substr(0, 24)),
            "524b4631"
            "0001"
            "0d00"
            "0f000000"
            "02000000"
            "0500000000000000");
  EXPECT_EQ(hex_of(bytes.substr(24, 8)),
            "0460b8a7"
            "e129eb90");
  EXPECT_EQ(bytes.substr(32), R"({"exit_code":0})");
}

void send_and_receive(std::uint64_t seed) {
  Prng prng(seed);
  FrameEncoder encoder;
  FrameDecoder decoder;
  for (std::uint64_t i = 1; i <= 300; ++i) {
    const auto kind = static_cast<std::uint16_t>(1 + prng.below(65535));
    const auto attempt = static_cast<std::uint32_t>(prng.next());
    const std::string body = some_body(prng, 500);
    decoder.feed(*encoder.encode(kind, attempt, body));
    const std::vector<Frame> frames = frames_of(decoder);
    ASSERT_EQ(frames.size(), 1u);
    EXPECT_EQ(frames[0].header.kind, kind);
    EXPECT_EQ(frames[0].header.attempt, attempt);
    EXPECT_EQ(frames[0].header.sequence, i);
    EXPECT_EQ(frames[0].body, body);
  }
  EXPECT_EQ(decoder.waiting_bytes(), 0u);
}

TEST(Frame, ComesBackAsItWasSent) { test::for_each_seed({.fixed = {20260101}}, send_and_receive); }

TEST(Frame, IsTheSameWhereverTheStreamIsSplit) {
  FrameEncoder encoder;
  std::string stream = *encoder.encode(1, 0, "first");
  stream += *encoder.encode(2, 0, "");
  stream += *encoder.encode(3, 7, "the third");
  FrameDecoder whole;
  whole.feed(stream);
  const std::vector<Frame> expected = frames_of(whole);
  ASSERT_EQ(expected.size(), 3u);
  for (std::size_t split = 0; split <= stream.size(); ++split) {
    FrameDecoder decoder;
    decoder.feed(std::string_view(stream).substr(0, split));
    std::vector<Frame> frames = frames_of(decoder);
    decoder.feed(std::string_view(stream).substr(split));
    for (Frame& frame : frames_of(decoder)) frames.push_back(std::move(frame));
    EXPECT_EQ(frames, expected) << "split at " << split;
  }
}

TEST(Frame, IsRefusedWithAnySingleBitFlipped) {
  const std::string bytes = encode_frame(8, 3, 1, "a body of some bytes");
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    FrameDecoder decoder;
    decoder.feed(flip_bit(bytes, bit));
    EXPECT_FALSE(decoder.next().has_value()) << "bit " << bit;
  }
}

TEST(Frame, AsksForMoreAtEveryLengthThatIsTooShort) {
  const std::string bytes = encode_frame(8, 3, 1, "a body of some bytes");
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    FrameDecoder decoder;
    decoder.feed(std::string_view(bytes).substr(0, length));
    const auto frame = decoder.next();
    ASSERT_TRUE(frame.has_value()) << "length " << length;
    EXPECT_FALSE(frame->has_value()) << "length " << length;
  }
}

TEST(Frame, NamesTheFirstThingThatIsWrong) {
  const std::string bytes = encode_frame(8, 3, 1, "body");
  EXPECT_EQ(fault_of("GET / HTTP/1.1\r\n"), FrameFault::wrong_magic);
  EXPECT_EQ(fault_of(set_byte(bytes, 12, 9)), FrameFault::wrong_header_checksum);
  EXPECT_EQ(fault_of(fix_header_checksum(set_byte(bytes, 5, 2))), FrameFault::unsupported_version);
  EXPECT_EQ(fault_of(fix_header_checksum(set_byte(bytes, 6, 0))), FrameFault::no_kind);
  EXPECT_EQ(fault_of(fix_header_checksum(set_byte(bytes, 10, 0x11))), FrameFault::body_too_large);
  EXPECT_EQ(fault_of(fix_header_checksum(set_byte(bytes, 16, 2))), FrameFault::wrong_sequence);
  EXPECT_EQ(fault_of(fix_header_checksum(set_byte(bytes, 16, 0))), FrameFault::wrong_sequence);
  EXPECT_EQ(fault_of(set_byte(bytes, 33, 'x')), FrameFault::wrong_body_checksum);
}

TEST(Frame, OfAnotherMinorVersionIsUnderstood) {
  FrameDecoder decoder;
  decoder.feed(fix_header_checksum(set_byte(encode_frame(8, 3, 1, "body"), 4, 9)));
  ASSERT_EQ(frames_of(decoder).size(), 1u);
}

TEST(Frame, ARepeatedOneEndsTheConnection) {
  const std::string bytes = encode_frame(8, 3, 1, "body");
  FrameDecoder decoder;
  decoder.feed(bytes + bytes);
  ASSERT_TRUE(decoder.next().has_value());
  EXPECT_EQ(decoder.next().error(), FrameFault::wrong_sequence);
  decoder.feed(encode_frame(8, 3, 2, "body"));
  EXPECT_EQ(decoder.next().error(), FrameFault::wrong_sequence) << "a fault stays";
  EXPECT_EQ(decoder.waiting_bytes(), 0u);
}

TEST(Frame, AStrangerIsToldAfterItsFirstByte) { EXPECT_EQ(fault_of("\x16"), FrameFault::wrong_magic); }

TEST(Frame, TheLargestBodyPasses) {
  const std::string body(kFrameBodyBytesMax, 'x');
  FrameDecoder decoder;
  decoder.feed(encode_frame(8, 3, 1, body));
  const std::vector<Frame> frames = frames_of(decoder);
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].body.size(), kFrameBodyBytesMax);
}

}  // namespace
}  // namespace rekindle
