// What a rank reports about itself: a line of JSON a step, and a page that says what it is doing
// right now.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "result.h"

namespace digits {

struct StepReport {
  std::uint64_t attempt = 0;
  std::uint64_t step = 0;
  int rank = 0;
  double loss = 0.0;
  // time on a CPU, not on the wall
  double compute_milliseconds = 0.0;
  double reduce_milliseconds = 0.0;  // on the wall
};

// Appends whole lines to each of its files, each by one write, so that a kill leaves no half of one
// behind unless the disk is full.
class Journal {
 public:
  Journal() = default;
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;
  ~Journal();

  // One more file; - is standard output.
  Status open(const std::string& path);
  void write(const StepReport& report);

 private:
  std::vector<int> descriptors_;
};

enum class Doing : std::uint32_t {
  starting = 0,
  between = 1,
  computing = 2,
  reducing = 3,
  updating = 4,
  finishing = 5
};

// A shared mapping of 64 bytes: u32 what (Doing), u32 rank, u64 step it works on. The drill reads
// it after it has killed a rank, to say where the kill landed; the memory outlives the process. Not
// used for resilience.
class StatusPage {
 public:
  StatusPage() = default;
  StatusPage(const StatusPage&) = delete;
  StatusPage& operator=(const StatusPage&) = delete;
  ~StatusPage();

  Status open(const std::string& path, int rank);

  void set(Doing doing, std::uint64_t step) {
    layout_->step.store(step, std::memory_order_relaxed);
    layout_->doing.store(static_cast<std::uint32_t>(doing), std::memory_order_relaxed);
  }

 private:
  struct Layout {
    std::atomic<std::uint32_t> doing;
    std::uint32_t rank;
    std::atomic<std::uint64_t> step;
    std::uint8_t rest[48];
  };
  static_assert(sizeof(Layout) == 64);

  Layout unshared_{};
  Layout* layout_ = &unshared_;
};

}  // namespace digits
