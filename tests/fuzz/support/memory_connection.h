// A Connection whose other side has said everything already: it gives so many bytes at a time, and
// then ends.
#pragma once

#include <algorithm>
#include <cstring>

#include "common/net/connection.h"
#include "tests/fuzz/support/fuzzing.h"

namespace rekindle {

class MemoryConnection final : public Connection {
 public:
  MemoryConnection(std::string_view said, std::size_t portion) : left_(said), portion_(portion) {}

  Result<std::size_t> read_some(char* buffer, std::size_t size, Instant, int) override {
    const std::size_t count = std::min({size, portion_, left_.size()});
    std::memcpy(buffer, left_.data(), count);
    left_.remove_prefix(count);
    return count;
  }
  Status write_all(std::string_view, Duration, Instant, int) override { return {}; }
  bool has_buffered() const override { return false; }
  int descriptor() const override { return -1; }

 private:
  std::string_view left_;
  std::size_t portion_;
};

}  // namespace rekindle
