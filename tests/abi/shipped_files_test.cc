// What goes into an image or onto somebody's machine was built hardened (cmake/hardening.cmake),
// and says nothing about the machine that built it. Read from the files themselves, before they are
// stripped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/abi/elf_file.h"
#include "tests/support/source_folder.h"

namespace rekindle {
namespace {

// What is wrong with the file, in the words of the tools that show it.
std::vector<std::string> weaknesses(const ElfFile& file) {
  std::vector<std::string> found;
  const auto need = [&](bool holds, const char* what) {
    if (!holds) found.push_back(what);
  };
  need(file.position_independent(), "no position-independent code");
  need(file.segment(PT_GNU_RELRO).has_value(), "no RELRO");
  need((file.dynamic(DT_FLAGS) & DF_BIND_NOW) != 0 || (file.dynamic(DT_FLAGS_1) & DF_1_NOW) != 0, "no BIND_NOW");
  const std::optional<Elf64_Phdr> stack = file.segment(PT_GNU_STACK);
  need(stack && (stack->p_flags & PF_X) == 0, "an executable stack");
  const std::set<std::string> symbols = file.symbols();
  need(symbols.contains("__stack_chk_fail"), "no stack protector");
  // Every one of them prints or copies into a buffer whose size is known.
  need(symbols.contains("__snprintf_chk") && symbols.contains("__memcpy_chk"), "no fortified calls");
  // The static programs have these names from the C library as well: what counts is how our own
  // sources were compiled.
  const std::vector<std::string> calls = file.compiler_calls();
  need(!calls.empty(), "no note of how it was compiled");
  for (const std::string& call : calls) {
    need(call.find("-fstack-protector-strong") != std::string::npos, "a source without stack protector");
    need(call.find("-fstack-clash-protection") != std::string::npos, "a source without stack clash protection");
    need(call.find(" -O2") != std::string::npos, "a source that is not optimised as it ships");
  }
  need(file.bytes().find(test::source_path("")) == std::string::npos, "the path of the machine that built it");
  return found;
}

class ShippedFile : public testing::TestWithParam<const char*> {};

TEST_P(ShippedFile, IsHardenedAndNamesNoFolderOfTheMachineThatBuiltIt) {
  const ElfFile file(test::source_path(std::string("build/release/") + GetParam()));
  EXPECT_THAT(weaknesses(file), testing::IsEmpty());
  // Assertions are on.
  EXPECT_NE(file.bytes().find("rekindle: bug: %s does not hold at %s:%d"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Programs, ShippedFile,
                         testing::Values("bin/rekindle-operator", "bin/rekindle-sidecar", "bin/rekindle-hook",
                                         "bin/rekindle", "lib/librekindle.so"),
                         [](const auto& each) {
                           std::string name = each.param;
                           for (char& letter : name) {
                             if (letter == '/' || letter == '-' || letter == '.') letter = '_';
                           }
                           return name;
                         });

TEST(ShippedFiles, ATestProgramWouldBeRefused) {
  const std::vector<std::string> found = weaknesses(ElfFile("/proc/self/exe"));
  EXPECT_THAT(found, testing::IsSupersetOf({"no BIND_NOW", "no fortified calls", "a source without stack protector",
                                            "a source without stack clash protection",
                                            "a source that is not optimised as it ships",
                                            "the path of the machine that built it"}));
}

}  // namespace
}  // namespace rekindle
