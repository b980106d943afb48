// Which checkpoints a job may restore from, newest first, and why the others are refused. Pure:
// works on what a scan of the job's folder found (storage/scan.h).
//
// The line of a job is its newest attempt, that attempt's parent, and so on. A checkpoint of
// attempt a counts only if a is on the line and its step is not beyond the point where the next
// attempt of the line left a (PROTOCOL P15): state of an abandoned line is refused even if its step
// is higher. An attempt whose record is lost is taken from its manifests; one of which nothing can
// be read has published nothing and is stepped over, with a note.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "worker-sidecar/checkpoint/attempt.h"
#include "worker-sidecar/checkpoint/manifest.h"
#include "worker-sidecar/checkpoint/names.h"

namespace rekindle {

struct FoundAttempt {
  std::uint64_t attempt = 0;  // from the file's name
  Result<AttemptRecord> record;
};

struct FoundFolder {
  // name of the folder inside the job's folder
  std::string path;
  FolderName name;
  std::optional<Result<SealedManifest>> manifest;  // empty: not published
};

struct FolderScan {
  std::vector<FoundAttempt> attempts;
  std::vector<FoundFolder> folders;
};

struct Candidate {
  std::string path;
  std::uint64_t attempt = 0;
  std::uint64_t step = 0;
  SealedManifest sealed;
};

struct RefusedFolder {
  std::string path;
  // it has a manifest that reads well
  bool complete = false;
  // "attempt 3 left attempt 2 at step 184, this is step 190"
  std::string reason;
  // it has a manifest, which may be unreadable
  bool published = true;
};

struct CandidateOrder {
  // in the order in which a restore tries them
  std::vector<Candidate> usable;
  std::vector<RefusedFolder> refused;
  std::vector<std::string> notes;
  // Something newer than every usable one may be there: storage failed where its manifest or its
  // attempt was to be read. Taking an older one would give it up for good.
  std::optional<Error> unread;
};

CandidateOrder order_candidates(const FolderScan& scan, const JobIdentity& job);

// For jobs that go on only from their own checkpoints: those of an earlier job of the same name are
// refused.
void leave_out_other_jobs(CandidateOrder& order, const std::string& job_uid);

// Whether a job that finds nothing usable may begin from nothing. Not when checkpoints have been
// published and cannot be read: that would look like success and lose everything, so it is left to
// a person (corrupt; the message names the folders).
Status may_start_afresh(const CandidateOrder& order, const std::string& job_folder);

// Highest attempt that was there, 0 for none. A folder without a readable manifest is no word of
// one, and neither is a damaged record far beyond all others: a single file with a high number
// would stop every later claim. The next claim starts one above.
std::uint64_t newest_attempt(const FolderScan& scan);

}  // namespace rekindle
