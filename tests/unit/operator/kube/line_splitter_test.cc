#include "operator/kube/line_splitter.h"

#include <gtest/gtest.h>

#include <vector>

#include "common/base/format.h"

namespace rekindle::op {
namespace {

std::vector<std::string> drain(LineSplitter& splitter) {
  std::vector<std::string> lines;
  while (std::optional<std::string> line = splitter.next()) lines.push_back(std::move(*line));
  return lines;
}

TEST(LineSplitter, GivesTheSameLinesWhereverTheBytesAreCut) {
  const std::string stream = "{\"a\":1}\n{\"b\":\"\\n\"}\r\n\n{\"c\":3}\nunfinished";
  const std::vector<std::string> expected = {"{\"a\":1}", "{\"b\":\"\\n\"}", "{\"c\":3}"};
  for (std::size_t first = 0; first <= stream.size(); ++first) {
    for (std::size_t second = first; second <= stream.size(); ++second) {
      LineSplitter splitter;
      std::vector<std::string> lines;
      const std::vector<std::string> parts = {stream.substr(0, first), stream.substr(first, second - first),
                                              stream.substr(second)};
      for (const std::string& part : parts) {
        ASSERT_TRUE(splitter.feed(part));
        for (std::string& line : drain(splitter)) lines.push_back(std::move(line));
      }
      ASSERT_EQ(lines, expected) << "cut at " << first << " and " << second;
      ASSERT_EQ(splitter.unfinished_bytes(), 10u);
    }
  }
}

TEST(LineSplitter, GivesCompleteLinesWhileTheLastIsUnfinished) {
  LineSplitter splitter;
  ASSERT_TRUE(splitter.feed("one\ntwo\nthr"));
  EXPECT_EQ(drain(splitter), (std::vector<std::string>{"one", "two"}));
  ASSERT_TRUE(splitter.feed("ee\n"));
  EXPECT_EQ(drain(splitter), (std::vector<std::string>{"three"}));
  EXPECT_EQ(splitter.unfinished_bytes(), 0u);
}

TEST(LineSplitter, KeepsLinesThatNobodyTookYet) {
  LineSplitter splitter;
  ASSERT_TRUE(splitter.feed("one\n"));
  ASSERT_TRUE(splitter.feed("two\n"));
  EXPECT_EQ(drain(splitter), (std::vector<std::string>{"one", "two"}));
}

TEST(LineSplitter, RefusesALineAboveTheCapHoweverItArrives) {
  const std::string stream = format("good\n{}\nnever\n", std::string(11, 'x'));
  for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
    LineSplitter splitter(10);
    const bool first = splitter.feed(stream.substr(0, cut)).has_value();
    const bool second = splitter.feed(stream.substr(cut)).has_value();
    ASSERT_FALSE(first && second) << "cut at " << cut;
    ASSERT_EQ(drain(splitter), (std::vector<std::string>{"good"})) << "cut at " << cut;
  }
}

TEST(LineSplitter, TakesALineOfExactlyTheCap) {
  LineSplitter splitter(10);
  EXPECT_TRUE(splitter.feed(std::string(10, 'x') + "\n"));
  EXPECT_EQ(drain(splitter).size(), 1u);
}

TEST(LineSplitter, StaysFailedAndHoldsNoMemory) {
  LineSplitter splitter(10);
  EXPECT_FALSE(splitter.feed(std::string(1000, 'x')));
  EXPECT_FALSE(splitter.feed("\nshort\n"));
  EXPECT_EQ(splitter.unfinished_bytes(), 0u);
  EXPECT_EQ(splitter.next(), std::nullopt);
}

}  // namespace
}  // namespace rekindle::op
