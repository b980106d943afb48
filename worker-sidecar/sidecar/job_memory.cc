#include "worker-sidecar/sidecar/job_memory.h"

#include <cstdio>
#include <fstream>

#include "worker-sidecar/checkpoint/hash.h"

namespace rekindle::sidecar {
namespace {

std::string path_in(const std::string& run_folder) { return run_folder + "/job-layout"; }

}  // namespace

void remember_job(const std::string& run_folder, const RememberJob& job) {
  const std::string path = path_in(run_folder);
  const std::string temporary = path + ".new";
  {
    std::ofstream file(temporary, std::ios::trunc);
    file << job.attempt << ' ' << job.job_layout_hash << '\n';
    if (!file.flush()) return;
  }
  // A reader sees the earlier one or the new one, never half of it.
  [[maybe_unused]] const int renamed = std::rename(temporary.c_str(), path.c_str());
}

std::optional<JobRemembered> remembered_job(const std::string& run_folder) {
  std::ifstream file(path_in(run_folder));
  JobRemembered job;
  if (!(file >> job.attempt >> job.job_layout_hash) || job.attempt == 0 || !is_hash_text(job.job_layout_hash))
    return std::nullopt;
  return job;
}

}  // namespace rekindle::sidecar
