// What the shared library asks of the program that loads it and what it offers, read from the file
// itself: of the one that tests use, and of the one that ships.
#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string>

#include "common/base/format.h"
#include "tests/abi/elf_file.h"
#include "tests/support/source_folder.h"
#include "tests/support/temporary_folder.h"

namespace rekindle {
namespace {

std::set<std::string> listed_symbols() {
  std::istringstream lines(read_bytes(test::source_path("tests/abi/symbols.txt")));
  std::set<std::string> names;
  for (std::string line; std::getline(lines, line);) names.insert(line);
  return names;
}

class Library : public testing::TestWithParam<const char*> {
 protected:
  ElfFile file() const { return ElfFile(test::source_path(format("build/{}/lib/librekindle.so", GetParam()))); }
};

TEST_P(Library, ExportsTheListedSymbolsAndNothingElse) { EXPECT_EQ(file().exported(), listed_symbols()); }

TEST_P(Library, NeedsNothingButTheCLibrary) {
  // ld-linux is the C library's loader (thread-local storage).
  const std::set<std::string> allowed = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"};
  for (const std::string& name : file().needed()) EXPECT_TRUE(allowed.contains(name)) << name;
}

// A session has a thread, which dlclose would leave without its code.
TEST_P(Library, IsNotTakenOutOfAProcess) { EXPECT_NE(file().dynamic(DT_FLAGS_1) & DF_1_NODELETE, 0u); }

TEST_P(Library, LoadsWithTheCLibraryOfUbuntu2204) {
  constexpr int kNewestMinor = 35;
  for (const std::string& version : file().needed_versions()) {
    ASSERT_TRUE(version.starts_with("GLIBC_2.")) << version;
    EXPECT_LE(std::stoi(version.substr(std::strlen("GLIBC_2."))), kNewestMinor) << version;
  }
}

INSTANTIATE_TEST_SUITE_P(Built, Library, testing::Values("dev", "release"),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace rekindle
