#include "operator/faults/response_table.h"

#include <algorithm>
#include <vector>

#include "common/base/format.h"

namespace rekindle::op {

std::string response_table_markdown() {
  std::string text = "| fault |";
  std::string border = "|---|";
  for (std::size_t column = 0; column < kJobStages; ++column) {
    text += format(" {} |", to_string(static_cast<JobStage>(column)));
    border += "---|";
  }
  text += format("\n{}\n", border);
  std::vector<ResponseCell> reasons;
  for (std::size_t row = 0; row < kFaultClasses; ++row) {
    text += format("| {} |", to_string(static_cast<FaultClass>(row)));
    for (const ResponseCell& cell : kResponses[row]) {
      auto reason = std::ranges::find(reasons, cell.why, &ResponseCell::why);
      if (reason == reasons.end()) reason = reasons.insert(reasons.end(), cell);
      text += format(" {} ({}) |", to_string(cell.response), reason - reasons.begin() + 1);
    }
    text += "\n";
  }
  text += "\n";
  for (std::size_t i = 0; i < reasons.size(); ++i) text += format("{}. {}\n", i + 1, reasons[i].why);
  return text;
}

}  // namespace rekindle::op
