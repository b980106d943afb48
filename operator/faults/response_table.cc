#include "operator/faults/response_table.h"

namespace rekindle {

std::string response_table_markdown() {
  std::string text = "| fault | stage | response | why |\n|---|---|---|---|\n";
  for (std::size_t row = 0; row < kFaultClasses; ++row) {
    for (std::size_t column = 0; column < kJobStages; ++column) {
      const ResponseCell& cell = kResponses[row][column];
      text += "| " + std::string(to_string(static_cast<FaultClass>(row))) + " | " +
              std::string(to_string(static_cast<JobStage>(column))) + " | " + std::string(to_string(cell.response)) + " | " +
              std::string(cell.why) + " |\n";
    }
  }
  return text;
}

}  // namespace rekindle
