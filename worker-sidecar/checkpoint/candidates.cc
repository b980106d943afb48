#include "worker-sidecar/checkpoint/candidates.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "common/base/format.h"
#include "worker-sidecar/checkpoint/restore_policy.h"

namespace rekindle {
namespace {

// Attempts count up one by one. A damaged record so far beyond the others was never one of them.
constexpr std::uint64_t kDamagedGapMax = 100;

// What is known about where an attempt came from.
struct Origin {
  std::optional<ParentPoint> parent;
};

std::map<std::uint64_t, Origin> gather_origins(const FolderScan& scan, std::vector<std::string>& notes) {
  std::map<std::uint64_t, Origin> origins;
  for (const FoundAttempt& found : scan.attempts) {
    if (found.record && found.record->attempt == found.attempt) {
      origins[found.attempt] = {found.record->parent};
    } else {
      notes.push_back(format(
          "the record of attempt {} cannot be used: {}", found.attempt,
          found.record ? format("it speaks of attempt {}", found.record->attempt) : found.record.error().message));
    }
  }
  for (const FoundFolder& folder : scan.folders) {
    if (!folder.manifest || !*folder.manifest) continue;
    const Manifest& manifest = (*folder.manifest)->manifest;
    if (origins.emplace(manifest.attempt, Origin{manifest.parent}).second) {
      notes.push_back(format("attempt {} has no record; its checkpoints say where it came from", manifest.attempt));
    }
  }
  return origins;
}

// For each attempt of the line the last step that counts, and the attempt that left it there (0:
// none).
struct LinePoint {
  std::uint64_t last_step = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t left_by = 0;
};

std::map<std::uint64_t, LinePoint> trace_line(const std::map<std::uint64_t, Origin>& origins) {
  std::map<std::uint64_t, LinePoint> line;
  if (origins.empty()) return line;
  std::uint64_t attempt = origins.rbegin()->first;
  LinePoint point;
  while (true) {
    line.emplace(attempt, point);
    const auto origin = origins.find(attempt);
    // decode_parent has made sure that parents are earlier, so this ends.
    if (origin == origins.end() || !origin->second.parent || origin->second.parent->attempt >= attempt) return line;
    point = {origin->second.parent->step, attempt};
    attempt = origin->second.parent->attempt;
  }
}

// Why a folder with a readable manifest does not count, or an empty text.
std::string find_refusal(const FoundFolder& folder, const Manifest& manifest, const JobIdentity& job,
                         const std::map<std::uint64_t, LinePoint>& line) {
  if (manifest.attempt != folder.name.attempt || manifest.step != folder.name.step) {
    return format("its manifest is of attempt {}, step {}: the folder was renamed or the manifest copied",
                  manifest.attempt, manifest.step);
  }
  if (Status status = check_job(manifest, job); !status) return status.error().message;
  const auto point = line.find(manifest.attempt);
  if (point == line.end())
    return format("attempt {} was abandoned: the newest attempt does not descend from it", manifest.attempt);
  if (manifest.step > point->second.last_step) {
    return format("attempt {} left attempt {} at step {}, this is step {}", point->second.left_by, manifest.attempt,
                  point->second.last_step, manifest.step);
  }
  return {};
}

// The first thing that could not be read although nothing says that it is damaged, and that would
// come before all of `usable`.
std::optional<Error> find_unread(const FolderScan& scan, const std::vector<Candidate>& usable,
                                 const std::map<std::uint64_t, LinePoint>& line) {
  const std::uint64_t newest = line.empty() ? 0 : line.rbegin()->first;
  for (const FoundAttempt& found : scan.attempts) {
    if (found.record || is_damage(found.record.error().code)) continue;
    if (usable.empty() || found.attempt > usable.front().attempt) return found.record.error();
  }
  for (const FoundFolder& folder : scan.folders) {
    if (!folder.manifest || *folder.manifest || is_damage(folder.manifest->error().code)) continue;
    const auto point = line.find(folder.name.attempt);
    const bool abandoned =
        point == line.end() ? folder.name.attempt < newest : folder.name.step > point->second.last_step;
    if (abandoned) continue;
    if (usable.empty() ||
        std::tuple(folder.name.step, folder.name.attempt) > std::tuple(usable.front().step, usable.front().attempt)) {
      Error error = folder.manifest->error();
      error.message += why_no_older(folder.path);
      return error;
    }
  }
  return std::nullopt;
}

}  // namespace

CandidateOrder order_candidates(const FolderScan& scan, const JobIdentity& job) {
  CandidateOrder order;
  const std::map<std::uint64_t, LinePoint> line = trace_line(gather_origins(scan, order.notes));
  for (const FoundFolder& folder : scan.folders) {
    if (!folder.manifest) {
      order.refused.push_back({folder.path, false, "it has no manifest: the save did not finish", false});
    } else if (!*folder.manifest) {
      order.refused.push_back({folder.path, false, folder.manifest->error().message});
    } else if (std::string reason = find_refusal(folder, (*folder.manifest)->manifest, job, line); !reason.empty()) {
      order.refused.push_back({folder.path, true, std::move(reason)});
    } else {
      order.usable.push_back({folder.path, folder.name.attempt, folder.name.step, **folder.manifest});
    }
  }
  // Along a line steps only grow with the attempts. Two plans may have published one step: the
  // later term first, then by name.
  std::ranges::sort(order.usable, [](const Candidate& left, const Candidate& right) {
    return std::tuple(right.step, right.attempt, right.sealed.manifest.term, left.path) <
           std::tuple(left.step, left.attempt, left.sealed.manifest.term, right.path);
  });
  order.unread = find_unread(scan, order.usable, line);
  return order;
}

void leave_out_other_jobs(CandidateOrder& order, const std::string& job_uid) {
  std::erase_if(order.usable, [&](const Candidate& candidate) {
    const std::string& made_by = candidate.sealed.manifest.job.uid;
    if (made_by == job_uid) return false;
    order.refused.push_back(
        {.path = candidate.path,
         .complete = true,
         .reason = format("it was made by an earlier job of this name (uid {}), and this one resumes from its own only",
                          made_by)});
    return true;
  });
}

Status may_start_afresh(const CandidateOrder& order, const std::string& job_folder) {
  if (!order.usable.empty()) return {};
  std::string broken;
  for (const RefusedFolder& refused : order.refused) {
    if (refused.published && !refused.complete)
      broken += format("{}{}: {}", broken.empty() ? "" : "; ", refused.path, refused.reason);
  }
  if (broken.empty()) return {};
  return fail(ErrorCode::corrupt, format("no checkpoint in {} can be used ({}). Training is not begun anew over them: "
                                         "repair them from a copy, or move the folder away to start from the beginning",
                                         job_folder, broken));
}

std::uint64_t newest_attempt(const FolderScan& scan) {
  std::uint64_t newest = 0;
  for (const FoundFolder& folder : scan.folders) {
    const bool counts = folder.manifest && (*folder.manifest || !is_damage(folder.manifest->error().code));
    if (counts) newest = std::max(newest, folder.name.attempt);
  }
  std::vector<std::uint64_t> damaged;
  for (const FoundAttempt& found : scan.attempts) {
    if (found.record || !is_damage(found.record.error().code)) newest = std::max(newest, found.attempt);
    else damaged.push_back(found.attempt);
  }
  std::ranges::sort(damaged);
  for (const std::uint64_t attempt : damaged) {
    if (attempt <= newest + kDamagedGapMax) newest = std::max(newest, attempt);
  }
  return newest;
}

}  // namespace rekindle
