// What can be seen of the world.
#include <set>
#include <string>
#include <vector>

#include "operator/model/names.h"
#include "tests/scenario/operator/world.h"

namespace rekindle::op::scenario {

std::vector<std::string> World::status() const {
  std::vector<std::string> lines;
  if (job_ == nullptr) {
    lines.push_back("no job");
  } else {
    lines.push_back("job " + job_->name + " " + std::string(to_string(job_->phase)) +
                    " retries=" + std::to_string(job_->retry_count) +
                    (job_->last_step.empty() ? "" : " last_checkpoint=" + job_->last_step));
  }
  for (const auto& [name, pod] : pods_) {
    const auto process = processes_.find(pod.uid);
    std::string line = "pod " + name + " " + std::string(to_string(pod.phase)) + (is_deleting(pod) ? " deleting" : "") +
                       (pod.gated ? " gated" : "");
    if (process != processes_.end() && process->second.started) {
      line += " " + std::string(to_string(process->second.report.phase)) +
              " attempt=" + std::to_string(process->second.report.attempt);
    }
    lines.push_back(line);
  }
  for (const auto& [name, each] : breakpoints_) {
    lines.push_back("breakpoint " + name + " " + std::string(to_string(each.spec.trigger)) + " " +
                    std::string(to_string(each.status.state)) + " step=" + std::to_string(each.status.step) +
                    " first_step=" + std::to_string(each.status.first_step) + ": " + each.status.message);
  }
  return lines;
}

std::vector<std::string> World::records() const {
  std::vector<std::string> lines;
  for (const auto& [name, each] : breakpoints_) {
    const BreakpointStatus& status = each.status;
    const auto time = [](const std::optional<std::uint64_t>& milliseconds) {
      return milliseconds ? human_milliseconds(*milliseconds) : "unknown";
    };
    lines.push_back("breakpoint " + name + " attempt=" + std::to_string(status.attempt) +
                    " step=" + std::to_string(status.step) + " ranks=" + std::to_string(status.ranks_saved) + "/" +
                    std::to_string(status.ranks_expected) + " bytes=" + std::to_string(status.bytes) +
                    " path=" + status.path + " hash=" + status.manifest_hash +
                    " agreed=" + time(status.agreed_milliseconds) + " durable=" + time(status.durable_milliseconds));
  }
  return lines;
}

std::string World::outcome() const {
  std::string text = job_ == nullptr
                         ? "no job"
                         : std::string(to_string(job_->phase)) + " retries=" + std::to_string(job_->retry_count);
  std::multiset<std::string> parts;
  for (const auto& [name, pod] : pods_) {
    const auto process = processes_.find(pod.uid);
    parts.insert("pod " + name + " " + std::string(to_string(pod.phase)) +
                 " attempt=" + std::to_string(process == processes_.end() ? 0 : process->second.report.attempt));
  }
  for (const auto& [name, each] : breakpoints_) {
    // Steps move with the time that things take; what has to hold is that none was lost.
    const BreakpointStatus& status = each.status;
    const Condition* durable = find_condition(status, names::kDurable);
    std::string part = "breakpoint " + std::string(to_string(each.spec.trigger)) + " " +
                       std::string(to_string(status.state)) +
                       " durable=" + (durable == nullptr ? "?" : durable->status);
    if (status.state == BreakpointState::restored && durable != nullptr && durable->status == "True") {
      part += " steps_lost=" + std::to_string(status.step + 1 - status.first_step);
      part += " ranks=" + std::to_string(status.ranks_saved) + "/" + std::to_string(status.ranks_expected) +
              " bytes=" + std::to_string(status.bytes) +
              " agreed=" + std::to_string(status.agreed_milliseconds.value_or(0)) +
              (status.manifest_hash.empty() ? " no hash" : "");
    }
    parts.insert(part);
  }
  for (const std::string& part : parts) text += "\n" + part;
  return text;
}

std::string World::cluster() const {
  std::string text = job_ == nullptr ? "no job" : std::string(to_string(job_->phase));
  for (const auto& [name, pod] : pods_) {
    const auto process = processes_.find(pod.uid);
    text += "\npod " + name + " " + std::string(to_string(pod.phase));
    if (process != processes_.end() && process->second.started)
      text += " " + std::string(to_string(process->second.report.phase));
  }
  for (const auto& [name, each] : breakpoints_) {
    if (!is_final(each.status.state)) text += "\nopen breakpoint " + name;
  }
  return text;
}

std::string World::fault_found() const { return fault_found_; }

}  // namespace rekindle::op::scenario
