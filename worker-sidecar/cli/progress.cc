#include "worker-sidecar/cli/progress.h"

#include <ostream>
#include <utility>

#include "worker-sidecar/cli/table.h"

namespace rekindle::cli {
namespace {

constexpr Duration kBetweenLines = std::chrono::seconds(1);

}  // namespace

Progress::Progress(std::ostream& err, bool shown, std::function<Instant()> now)
    : err_(err), shown_(shown), now_(std::move(now)) {}

void Progress::begin(std::string what) {
  if (!shown_) return;
  what_ = std::move(what);
  printed_ = now_();
}

void Progress::report(std::uint64_t done_bytes, std::uint64_t all_bytes) {
  if (!shown_) return;
  const Instant now = now_();
  if (now - printed_ < kBetweenLines) return;
  printed_ = now;
  err_ << printable(what_) << ": " << human_bytes(done_bytes) << " of " << human_bytes(all_bytes);
  if (all_bytes > 0)
    err_ << ", " << static_cast<unsigned>(100.0 * static_cast<double>(done_bytes) / static_cast<double>(all_bytes))
         << " %";
  err_ << std::endl;
}

}  // namespace rekindle::cli
