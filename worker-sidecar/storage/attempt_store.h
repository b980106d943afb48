// attempts/<n>.json of a job's folder: claimed once each, by link of a finished file.
#pragma once

#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/base/instant.h"
#include "worker-sidecar/checkpoint/attempt.h"
#include "worker-sidecar/checkpoint/candidates.h"
#include "worker-sidecar/storage/file_system.h"
#include "worker-sidecar/storage/waiter.h"

namespace rekindle {

// Claims the next free number, which is above every attempt that records or folders in the job's
// folder speak of; record.attempt is not read. The answer is durable and carries the number. A
// claim that loses takes the next one.
Result<AttemptRecord> claim_attempt(FileSystem& file_system, const std::string& job_folder, AttemptRecord record,
                                    const std::string& nonce);

// Whether the record of this number is there, whatever it says. Waits that long for one that
// another machine has just made: a network file system may show it late.
Status await_attempt(FileSystem& file_system, const std::string& job_folder, std::uint64_t number, Duration wait_max,
                     Waiter& waiter);

// In order of their numbers; a record that cannot be decoded is listed with its error. So is one
// for which no room is left: the folder is other pods' as well, so what is read at a time is
// bounded, and the newest come first. The pods of a record are left out.
Result<std::vector<FoundAttempt>> list_attempts(FileSystem& file_system, const std::string& job_folder);

}  // namespace rekindle
