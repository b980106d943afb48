// Cuts a stream of bytes into lines, as a WATCH sends them: one JSON document a line, chunks end
// anywhere. Each complete line is available at once; the rest is kept. A line above the cap is an
// error instead of a growing buffer.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"

namespace rekindle::op {

class LineSplitter {
 public:
  // etcd holds objects of up to 1.5 MiB by default and 3 MiB are seen; escaping can make text
  // longer.
  static constexpr std::size_t kLineBytesMax = 16u << 20;

  explicit LineSplitter(std::size_t line_bytes_max = kLineBytesMax) : line_bytes_max_(line_bytes_max) {}

  // Takes bytes. Fails (exhausted) once a line is longer than the cap, and from then on; complete
  // lines that came before it are still given by next().
  Status feed(std::string_view bytes);

  // The next complete line without its end ("\n" or "\r\n"); empty lines are skipped. None: feed
  // more.
  std::optional<std::string> next();

  // Bytes of a line that has not ended yet: a stream that closes with some here was cut.
  // For tests: what is kept is bounded.
  std::size_t unfinished_bytes() const { return buffer_.size() - line_begin_; }

 private:
  const std::size_t line_bytes_max_;
  std::string buffer_;
  std::size_t taken_ = 0;       // bytes already given out by next()
  std::size_t line_begin_ = 0;  // where the unfinished line begins
  bool failed_ = false;
};

}  // namespace rekindle::op
