// From class and stage to response: a total table, checked at compile time.
// docs/operating/faults.md is printed from it.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "operator/faults/fault.h"

namespace rekindle::op {

struct ResponseCell {
  Response response = Response::ignore;
  std::string_view why;  // empty: this cell was forgotten, which does not compile
};

using ResponseTable = std::array<std::array<ResponseCell, kJobStages>, kFaultClasses>;

namespace response_detail {

inline constexpr ResponseCell kVolcanoRecreates{Response::ignore, "nothing to save yet; Volcano makes the pod anew"};
inline constexpr ResponseCell kReplace{Response::replace_pod,
                                       "the others still wait in rk_open; only pods that failed are replaced"};
inline constexpr ResponseCell kRestart{Response::restart_job,
                                       "the ranks depend on each other: save, then restart them all"};
inline constexpr ResponseCell kVolcanos{Response::join, "recorded; Volcano is replacing the pods already"};
inline constexpr ResponseCell kSuspended{Response::ignore, "someone suspended the job"};
inline constexpr ResponseCell kEnding{Response::ignore, "the job is ending"};

}  // namespace response_detail

inline constexpr ResponseTable kResponses = [] {
  using namespace response_detail;
  ResponseTable table{};
  const auto row = [&](FaultClass fault_class, ResponseCell starting) {
    table[static_cast<std::size_t>(fault_class)] = {starting, kRestart, kVolcanos, kSuspended, kEnding};
  };
  row(FaultClass::pod_evicted, kVolcanoRecreates);
  row(FaultClass::pod_deleted, kVolcanoRecreates);
  row(FaultClass::out_of_memory, kReplace);
  row(FaultClass::container_died, kReplace);
  row(FaultClass::pod_failed, kReplace);
  row(FaultClass::pod_gone, kVolcanoRecreates);
  row(FaultClass::rank_died, kReplace);
  row(FaultClass::rank_reported, {Response::ignore, "no attempt has begun; the sidecar tells its ranks"});
  return table;
}();

constexpr const ResponseCell& respond(FaultClass fault_class, JobStage stage) {
  return kResponses[static_cast<std::size_t>(fault_class)][static_cast<std::size_t>(stage)];
}

static_assert(
    [] {
      for (const auto& row : kResponses) {
        for (const ResponseCell& cell : row) {
          if (cell.why.empty()) return false;
        }
      }
      return true;
    }(),
    "every class needs a response in every stage");

// The table as Markdown, for docs/operating/faults.md.
// For tests: the page and the table are compared.
std::string response_table_markdown();

}  // namespace rekindle::op
