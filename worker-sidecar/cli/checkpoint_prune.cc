#include "worker-sidecar/cli/checkpoint_prune.h"

#include <ostream>
#include <vector>

#include "common/base/json_fields.h"
#include "worker-sidecar/checkpoint/retention.h"
#include "worker-sidecar/cli/checkpoint_place.h"
#include "worker-sidecar/cli/table.h"
#include "worker-sidecar/storage/folder.h"

namespace rekindle::cli {

int prune_job(FileSystem& file_system, const PruneQuestion& question, CommandStreams streams) {
  const Result<std::vector<CheckpointPlace>> places = find_places(file_system, question.directory);
  if (!places) return report(streams, places.error());
  if (places->size() != 1 || places->front().checkpoint) {
    return report(streams, {.code = ErrorCode::invalid_input,
                            .message = question.directory + " is not the folder of one job (<namespace>.<job>)"});
  }
  const Result<JobView> view = inspect_job(file_system, places->front().job_folder);
  if (!view) return report(streams, view.error());
  int code = kExitOk;
  Json removed = Json::array();
  // Incomplete folders of the newest attempt stay: the job may be writing one now.
  for (const Removal& removal :
       plan_retention(view->scan, view->job, {.keep = question.keep, .own_attempt = newest_attempt(view->scan)})) {
    if (!question.dry_run) {
      if (Status status = remove_checkpoint_folder(file_system, view->folder, removal.path); !status) {
        code = report(streams, status.error());
        continue;
      }
    }
    removed.push_back({{"checkpoint", removal.path}, {"reason", removal.reason}});
    if (!streams.json)
      streams.out << (question.dry_run ? "would remove " : "removed ") << printable(removal.path) << ": "
                  << printable(removal.reason) << '\n';
  }
  if (streams.json) {
    streams.out << dump_json({{"folder", view->folder}, {"dry_run", question.dry_run}, {"removed", std::move(removed)}})
                << '\n';
  } else if (removed.empty() && code == 0) {
    streams.out << printable(view->folder) << ": nothing to remove\n";
  }
  return code;
}

}  // namespace rekindle::cli
