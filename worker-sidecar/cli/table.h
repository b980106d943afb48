// Columns for people: as wide as the widest cell, numbers to the right.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace rekindle::cli {

class Table {
 public:
  enum class Align { left, right };
  struct Column {
    std::string title;
    Align align = Align::left;
  };

  explicit Table(std::vector<Column> columns);

  // As many cells as columns.
  void add(std::vector<std::string> cells);
  void print(std::ostream& out) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// "1.2 MiB", "312 B".
std::string human_bytes(std::uint64_t bytes);

// The text with control characters replaced: names come out of files, and a terminal obeys them.
std::string printable(std::string_view text);

}  // namespace rekindle::cli
