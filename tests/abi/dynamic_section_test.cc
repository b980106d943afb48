// What the shared library asks of the program that loads it and what it offers, read from the file
// itself.
#include <elf.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/source_folder.h"
#include "tests/support/temporary_folder.h"

namespace rekindle {
namespace {

class ElfFile {
 public:
  explicit ElfFile(const std::string& path) : bytes_(read_bytes(path)) {
    const auto header = at<Elf64_Ehdr>(0);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) throw std::runtime_error(path + " is no ELF file");
    for (unsigned i = 0; i < header.e_shnum; ++i)
      sections_.push_back(at<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr)));
  }

  std::set<std::string> needed() const {
    std::set<std::string> names;
    for_each<Elf64_Dyn>(SHT_DYNAMIC, [&](const Elf64_Dyn& entry, const Elf64_Shdr& names_of) {
      if (entry.d_tag == DT_NEEDED) names.insert(text(names_of, entry.d_un.d_val));
    });
    return names;
  }
  std::set<std::string> exported() const {
    std::set<std::string> names;
    for_each<Elf64_Sym>(SHT_DYNSYM, [&](const Elf64_Sym& symbol, const Elf64_Shdr& names_of) {
      if (symbol.st_shndx != SHN_UNDEF && symbol.st_name != 0) names.insert(text(names_of, symbol.st_name));
    });
    return names;
  }
  // Versions that it needs of other libraries, "GLIBC_2.34".
  std::set<std::string> needed_versions() const {
    std::set<std::string> names;
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type != SHT_GNU_verneed) continue;
      std::size_t offset = section.sh_offset;
      for (unsigned i = 0; i < section.sh_info; ++i) {
        const auto library = at<Elf64_Verneed>(offset);
        std::size_t version_offset = offset + library.vn_aux;
        for (unsigned j = 0; j < library.vn_cnt; ++j) {
          const auto version = at<Elf64_Vernaux>(version_offset);
          names.insert(text(sections_.at(section.sh_link), version.vna_name));
          version_offset += version.vna_next;
        }
        offset += library.vn_next;
      }
    }
    return names;
  }

 private:
  template <typename Value>
  Value at(std::size_t offset) const {
    if (offset + sizeof(Value) > bytes_.size()) throw std::runtime_error("the file ends too early");
    Value value;
    std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }
  std::string text(const Elf64_Shdr& table, std::size_t offset) const {
    return bytes_.data() + table.sh_offset + offset;
  }
  template <typename Entry, typename Visit>
  void for_each(unsigned type, Visit visit) const {
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type != type) continue;
      for (std::size_t offset = 0; offset < section.sh_size; offset += sizeof(Entry))
        visit(at<Entry>(section.sh_offset + offset), sections_.at(section.sh_link));
    }
  }

  std::string bytes_;
  std::vector<Elf64_Shdr> sections_;
};

std::set<std::string> listed_symbols() {
  std::istringstream lines(read_bytes(test::source_path("tests/abi/symbols.txt")));
  std::set<std::string> names;
  for (std::string line; std::getline(lines, line);) names.insert(line);
  return names;
}

TEST(Library, ExportsTheListedSymbolsAndNothingElse) {
  EXPECT_EQ(ElfFile(REKINDLE_LIBRARY).exported(), listed_symbols());
}

TEST(Library, NeedsNothingButTheCLibrary) {
  // ld-linux is the C library's loader (thread-local storage).
  const std::set<std::string> allowed = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"};
  for (const std::string& name : ElfFile(REKINDLE_LIBRARY).needed()) EXPECT_TRUE(allowed.contains(name)) << name;
}

TEST(Library, LoadsWithTheCLibraryOfUbuntu2204) {
  constexpr int kNewestMinor = 35;
  for (const std::string& version : ElfFile(REKINDLE_LIBRARY).needed_versions()) {
    ASSERT_TRUE(version.starts_with("GLIBC_2.")) << version;
    EXPECT_LE(std::stoi(version.substr(std::strlen("GLIBC_2."))), kNewestMinor) << version;
  }
}

}  // namespace
}  // namespace rekindle
