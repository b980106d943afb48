#include "worker-sidecar/cli/checkpoint_verify.h"

#include <algorithm>
#include <map>
#include <ostream>
#include <set>
#include <utility>

#include "common/base/format.h"
#include "common/base/json_fields.h"
#include "worker-sidecar/cli/each_place.h"
#include "worker-sidecar/cli/table.h"
#include "worker-sidecar/storage/files.h"
#include "worker-sidecar/storage/verifier.h"

namespace rekindle::cli {
namespace {

// What a damaged checkpoint still has.
struct Remains {
  std::vector<std::string> damaged_tensors;
  std::vector<std::uint32_t> damaged_states;  // ranks whose small state is hit
  std::size_t tensors = 0;
  std::vector<std::string> whole_files;
  // A file that is hit, and other checkpoints of the job whose manifests say that they have the
  // very same one.
  std::vector<std::pair<std::string, std::vector<std::string>>> copies;
};

Remains find_remains(const Verification& result, const JobView& view) {
  Remains remains;
  if (!result.sealed) return remains;
  const Manifest& manifest = result.sealed->manifest;
  remains.tensors = manifest.tensors.size();
  std::map<std::string_view, std::set<std::string_view>> hit;  // keys by file
  for (const Finding& finding : result.findings)
    hit[finding.file].insert(finding.tensors.begin(), finding.tensors.end());
  const auto is_hit = [&](const std::string& file, const std::string& key) {
    const auto found = hit.find(file);
    return found != hit.end() && found->second.contains(key);
  };
  // What has no bytes has none that could be wrong.
  const auto is_damaged = [&](const ManifestPiece& piece) {
    return piece.begin_byte < piece.end_byte && is_hit(piece.file, piece.key);
  };
  for (const ManifestTensor& tensor : manifest.tensors) {
    if (std::ranges::any_of(tensor.pieces, is_damaged)) remains.damaged_tensors.push_back(tensor.name);
  }
  std::set<std::uint32_t> ranks;
  for (const ManifestState& state : manifest.states) {
    if (is_hit(state.file, state.key)) ranks.insert(state.rank);
  }
  remains.damaged_states.assign(ranks.begin(), ranks.end());
  for (const ManifestFile& file : manifest.files) {
    if (!hit.contains(file.name)) {
      remains.whole_files.push_back(file.name);
      continue;
    }
    std::vector<std::string> copies;
    for (const FoundFolder& folder : view.scan.folders) {
      if (folder.path == result.folder || !folder.manifest || !*folder.manifest) continue;
      for (const ManifestFile& other : (*folder.manifest)->manifest.files) {
        if (other.hash == file.hash && other.bytes == file.bytes)
          copies.push_back(format("{}/{}", folder.path, other.name));
      }
    }
    remains.copies.emplace_back(file.name, std::move(copies));
  }
  return remains;
}

Json to_json(const Verification& result, const Remains& remains) {
  Json findings = Json::array();
  for (const Finding& finding : result.findings) {
    findings.push_back({{"file", finding.file},
                        {"begin_byte", finding.begin_byte},
                        {"end_byte", finding.end_byte},
                        {"message", finding.message},
                        {"tensors", finding.tensors}});
  }
  Json item = {{"checkpoint", result.folder},
               {"fine", result.fine()},
               {"bytes_read", result.bytes_read},
               {"findings", std::move(findings)}};
  if (result.fine()) return item;
  Json copies = Json::object();
  for (const auto& [file, places] : remains.copies) copies[file] = places;
  item["remains"] = {{"tensors", remains.tensors},
                     {"damaged_tensors", remains.damaged_tensors},
                     {"ranks_with_damaged_state", remains.damaged_states},
                     {"whole_files", remains.whole_files},
                     {"copies", std::move(copies)}};
  return item;
}

void print_remains(std::ostream& out, const Remains& remains) {
  if (remains.tensors == 0 && remains.whole_files.empty()) return;
  out << "  whole: " << remains.tensors - remains.damaged_tensors.size() << " of " << remains.tensors << " tensors, "
      << remains.whole_files.size() << " of " << remains.whole_files.size() + remains.copies.size() << " files\n";
  for (const std::uint32_t rank : remains.damaged_states)
    out << "  the small state of rank " << rank << " is damaged\n";
  for (const auto& [file, places] : remains.copies) {
    if (places.empty()) out << "  no other checkpoint of the job has a copy of " << printable(file) << '\n';
    for (const std::string& place : places)
      out << "  " << printable(place) << " is said to be the same file as " << printable(file) << '\n';
  }
}

void print_verification(std::ostream& out, const Verification& result, const Remains& remains) {
  out << printable(result.folder) << ": ";
  if (result.fine()) {
    out << "fine, " << human_bytes(result.bytes_read) << " read\n";
    return;
  }
  out << result.findings.size() << (result.findings.size() == 1 ? " fault\n" : " faults\n");
  for (const Finding& finding : result.findings) {
    out << "  " << printable(finding.file);
    if (finding.end_byte > finding.begin_byte) out << " bytes " << finding.begin_byte << " to " << finding.end_byte;
    out << ": " << printable(finding.message) << '\n';
    for (const std::string& tensor : finding.tensors) out << "    holds " << printable(tensor) << '\n';
  }
  print_remains(out, remains);
}

// The checkpoints that `verify` reads in one place: the one named, or all of the job that claim to
// be complete.
std::vector<std::string> to_verify(const CheckpointPlace& place, const JobView& view) {
  if (place.checkpoint) return {*place.checkpoint};
  std::vector<std::string> names;
  for (const FoundFolder& folder : view.scan.folders) {
    if (folder.manifest) names.push_back(folder.path);
  }
  return names;
}

// Verifies checkpoints of one job, each once.
class JobVerifier {
 public:
  JobVerifier(FileSystem& file_system, const JobView& view, Progress& progress)
      : file_system_(file_system), view_(view), progress_(progress) {}

  const Verification& verify(const std::string& name) {
    const auto known = results_.find(name);
    if (known != results_.end()) return known->second;
    std::optional<JobIdentity> expected;
    if (!view_.job.name.empty()) expected = view_.job;
    progress_.begin("verifying " + name);
    const auto on_bytes = [&](std::uint64_t done, std::uint64_t all) { progress_.report(done, all); };
    return results_.emplace(name, verify_checkpoint(file_system_, view_.folder, name, expected, on_bytes))
        .first->second;
  }

  // What a restart would restore: the first that verifies, in the order in which a restore tries
  // them.
  const Candidate* find_restorable() {
    for (const Candidate& candidate : view_.order.usable) {
      if (verify(candidate.path).fine()) return &candidate;
    }
    return nullptr;
  }

 private:
  FileSystem& file_system_;
  const JobView& view_;
  Progress& progress_;
  std::map<std::string, Verification> results_;
};

// `ls` reads no data: it knows why a checkpoint does not count, not what is damaged.
std::string why_nothing(const CheckpointPlace& place, const JobView& view) {
  if (view.order.usable.empty()) return format("`rekindle checkpoint ls {}` says why", view.folder);
  if (place.checkpoint)
    return format("every usable one is damaged; `rekindle checkpoint verify {}` says where", view.folder);
  return "every usable one is damaged, as said above";
}

}  // namespace

int verify_checkpoints(FileSystem& file_system, const std::vector<std::string>& directories, CommandStreams streams) {
  Json results = Json::array();
  Json restorable = Json::array();
  const int code =
      for_each_place(file_system, directories, streams, [&](const CheckpointPlace& place, const JobView& view) {
        int worst = kExitOk;
        JobVerifier verifier(file_system, view, streams.progress);
        const std::vector<std::string> names = to_verify(place, view);
        if (names.empty() && !streams.json) streams.out << printable(view.folder) << ": no complete checkpoints\n";
        for (const std::string& name : names) {
          const Verification& result = verifier.verify(name);
          const Remains remains = result.fine() ? Remains() : find_remains(result, view);
          if (!result.fine()) worst = kExitProblemsFound;
          if (streams.json) {
            Json item = to_json(result, remains);
            item["folder"] = view.folder;
            results.push_back(std::move(item));
          } else {
            print_verification(streams.out, result, remains);
          }
        }
        // One that was named and is fine is its own answer; for the rest others may have to be
        // read, too.
        if (place.checkpoint && worst == kExitOk) return worst;
        const Candidate* best = verifier.find_restorable();
        if (streams.json) {
          restorable.push_back({{"folder", view.folder},
                                {"checkpoint", best != nullptr ? Json(best->path) : Json()},
                                {"step", best != nullptr ? Json(best->step) : Json()}});
        } else if (best != nullptr) {
          streams.out << "a restart of " << printable(display_name(view.job)) << " restores " << printable(best->path)
                      << ", step " << best->step << '\n';
        } else if (!names.empty()) {
          streams.out << "nothing of " << printable(display_name(view.job))
                      << " can be restored: " << why_nothing(place, view) << '\n';
        }
        return worst;
      });
  if (streams.json)
    streams.out << dump_json({{"checkpoints", std::move(results)}, {"restorable", std::move(restorable)}}) << '\n';
  return code;
}

}  // namespace rekindle::cli
