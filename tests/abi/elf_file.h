// A program or a shared library, as its file tells about it.
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace rekindle {

class ElfFile {
 public:
  explicit ElfFile(const std::string& path) : bytes_(read_bytes(path)) {
    header_ = at<Elf64_Ehdr>(0);
    if (std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0) throw std::runtime_error(path + " is no ELF file");
    for (unsigned i = 0; i < header_.e_shnum; ++i)
      sections_.push_back(at<Elf64_Shdr>(header_.e_shoff + i * sizeof(Elf64_Shdr)));
    for (unsigned i = 0; i < header_.e_phnum; ++i)
      segments_.push_back(at<Elf64_Phdr>(header_.e_phoff + i * sizeof(Elf64_Phdr)));
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

  const std::string& bytes() const { return bytes_; }
  // Whether it runs wherever it is loaded: programs (static ones as well) and libraries.
  bool position_independent() const { return header_.e_type == ET_DYN; }
  std::optional<Elf64_Phdr> segment(unsigned type) const {
    for (const Elf64_Phdr& segment : segments_) {
      if (segment.p_type == type) return segment;
    }
    return std::nullopt;
  }
  // The value of an entry of the dynamic section; 0 without one.
  std::uint64_t dynamic(std::int64_t tag) const {
    std::uint64_t value = 0;
    for_each<Elf64_Dyn>(SHT_DYNAMIC, [&](const Elf64_Dyn& entry, const Elf64_Shdr&) {
      if (entry.d_tag == tag) value = entry.d_un.d_val;
    });
    return value;
  }
  // Every name that it defines or uses, of a file that is not stripped.
  std::set<std::string> symbols() const {
    std::set<std::string> names;
    for_each<Elf64_Sym>(SHT_SYMTAB, [&](const Elf64_Sym& symbol, const Elf64_Shdr& names_of) {
      names.insert(without_version(text(names_of, symbol.st_name)));
    });
    return names;
  }
  // How the compiler was called for each of our sources, as it notes it in the file itself.
  std::vector<std::string> compiler_calls() const {
    constexpr std::string_view kOurs = "GNU C++23 ";
    std::vector<std::string> calls;
    for (std::size_t at = bytes_.find(kOurs); at != std::string::npos; at = bytes_.find(kOurs, at + 1))
      calls.emplace_back(bytes_.c_str() + at);
    return calls;
  }

 private:
  static std::string without_version(const std::string& name) { return name.substr(0, name.find('@')); }

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
  Elf64_Ehdr header_;
  std::vector<Elf64_Phdr> segments_;
  std::vector<Elf64_Shdr> sections_;
};

}  // namespace rekindle
