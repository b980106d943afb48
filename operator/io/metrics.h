// What the operator counts, under the names that dashboards of other operators already query. Any
// thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace rekindle::op {

class Metrics {
 public:
  Metrics();
  ~Metrics();

  void reconciled(std::string_view result);  // success, requeue_after, error
  void queue(std::size_t depth);
  void admitted(std::string_view webhook, bool allowed);
  void requests(std::uint64_t answered, std::uint64_t errors, std::uint64_t retries);  // totals
  void sidecars_waiting(std::size_t count);
  void protected_jobs(std::size_t count);
  void watch_trouble(std::string_view kind);

  // Prometheus' text format.
  std::string text() const;

 private:
  struct Families;
  std::unique_ptr<Families> families_;
};

}  // namespace rekindle::op
