#include "worker-sidecar/cli/table.h"

#include <gtest/gtest.h>

#include <sstream>

namespace rekindle::cli {
namespace {

TEST(Table, ColumnsAreAsWideAsTheirWidestCell) {
  Table table({{"NAME"}, {"BYTES", Table::Align::right}, {"STATE"}});
  table.add({"w1", "7", "fine"});
  table.add({"a longer name", "12345678", ""});
  std::ostringstream out;
  table.print(out);
  EXPECT_EQ(out.str(),
            "NAME               BYTES   STATE\n"
            "w1                     7   fine\n"
            "a longer name   12345678\n");
}

TEST(Table, NamesFromFilesCannotCommandTheTerminal) {
  Table table({{"NAME"}});
  table.add({"\x1b[2Jgone\n"});
  std::ostringstream out;
  table.print(out);
  EXPECT_EQ(out.str(), "NAME\n?[2Jgone?\n");
}

TEST(HumanBytes, ReadsWell) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(1536), "1.5 KiB");
  EXPECT_EQ(human_bytes(std::uint64_t{3} << 30), "3.0 GiB");
}

}  // namespace
}  // namespace rekindle::cli
