#include "common/base/base64.h"

#include <gtest/gtest.h>

namespace rekindle {
namespace {

TEST(Base64, KnownTextsOfTheStandard) {
  EXPECT_EQ(base64_encode(""), "");
  EXPECT_EQ(base64_encode("f"), "Zg==");
  EXPECT_EQ(base64_encode("fo"), "Zm8=");
  EXPECT_EQ(base64_encode("foo"), "Zm9v");
  EXPECT_EQ(base64_encode("foobar"), "Zm9vYmFy");
}

TEST(Base64, EveryByteComesBack) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes.push_back(static_cast<char>(i));
  for (std::size_t length = 0; length <= bytes.size(); ++length) {
    const std::string part = bytes.substr(0, length);
    EXPECT_EQ(base64_decode(base64_encode(part)), part);
  }
}

TEST(Base64, LineBreaksAreSkipped) { EXPECT_EQ(base64_decode("Zm9v\nYmFy\n"), "foobar"); }

TEST(Base64, WrongTextsAreRefused) {
  for (const char* text : {"Z", "Zg", "Zg=", "Zg===", "Zm9v!", "=Zm9", "Zg==Zg=="}) {
    EXPECT_FALSE(base64_decode(text)) << text;
  }
}

}  // namespace
}  // namespace rekindle
