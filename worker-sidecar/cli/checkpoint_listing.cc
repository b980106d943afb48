#include "worker-sidecar/cli/checkpoint_listing.h"

#include <map>
#include <ostream>
#include <utility>

#include "common/base/format.h"
#include "common/base/json_fields.h"
#include "worker-sidecar/checkpoint/coverage.h"
#include "worker-sidecar/cli/checkpoint_place.h"
#include "worker-sidecar/cli/each_place.h"
#include "worker-sidecar/cli/table.h"
#include "worker-sidecar/storage/publisher.h"

namespace rekindle::cli {
namespace {

// Ranks that lived when it was made / ranks of the job, as the Breakpoint's column has them.
std::string describe_ranks(const Manifest& manifest) {
  return format("{}/{}", manifest.live_ranks, manifest.world_size);
}

// "next" for the one that a restart would take, "usable", "incomplete" or "refused".
struct Judged {
  const FoundFolder* folder = nullptr;
  std::string state;
  std::string reason;
};

// In the order of a restore, then what is refused.
std::vector<Judged> judge(const JobView& view) {
  std::map<std::string_view, const FoundFolder*> folders;
  for (const FoundFolder& folder : view.scan.folders) folders.emplace(folder.path, &folder);
  std::vector<Judged> judged;
  for (const Candidate& candidate : view.order.usable) {
    judged.push_back({folders.at(candidate.path), judged.empty() ? "next" : "usable", ""});
  }
  for (const RefusedFolder& refused : view.order.refused) {
    const FoundFolder* folder = folders.at(refused.path);
    judged.push_back({folder, folder->manifest ? "refused" : "incomplete", refused.reason});
  }
  return judged;
}

Json to_json(const Judged& judged) {
  Json item = {{"checkpoint", judged.folder->path},
               {"attempt", judged.folder->name.attempt},
               {"step", judged.folder->name.step},
               {"state", judged.state},
               {"reason", judged.reason}};
  if (judged.folder->manifest && *judged.folder->manifest) {
    const SealedManifest& sealed = **judged.folder->manifest;
    item["kind"] = to_string(sealed.manifest.kind);
    item["world_size"] = sealed.manifest.world_size;
    item["live_ranks"] = sealed.manifest.live_ranks;
    item["tensors"] = sealed.manifest.tensors.size();
    item["bytes"] = file_bytes(sealed.manifest);
    item["time"] = sealed.manifest.time;
    item["hash"] = sealed.hash;
  }
  return item;
}

void add_row(Table& table, const Judged& judged) {
  std::vector<std::string> cells{judged.folder->path, std::to_string(judged.folder->name.step),
                                 std::to_string(judged.folder->name.attempt)};
  if (judged.folder->manifest && *judged.folder->manifest) {
    const Manifest& manifest = (*judged.folder->manifest)->manifest;
    cells.insert(cells.end(),
                 {std::string(to_string(manifest.kind)), describe_ranks(manifest),
                  std::to_string(manifest.tensors.size()), human_bytes(file_bytes(manifest)), manifest.time});
  } else {
    cells.insert(cells.end(), {"-", "-", "-", "-", "-"});
  }
  cells.push_back(judged.reason.empty() ? judged.state : format("{}: {}", judged.state, judged.reason));
  table.add(std::move(cells));
}

void print_manifest(std::ostream& out, const std::string& path, const SealedManifest& sealed) {
  const Manifest& manifest = sealed.manifest;
  const auto line = [&](const char* name, const std::string& value) {
    out << "  " << name << printable(value) << '\n';
  };
  out << printable(path) << '\n';
  line("job          ", format("{} (uid {})", display_name(manifest.job), manifest.job.uid));
  line("step         ", format("{} of attempt {}", manifest.step, manifest.attempt));
  line("kind         ", format("{}, {}{}", to_string(manifest.kind), manifest.trigger.cause,
                               manifest.trigger.detail.empty() ? "" : format(" ({})", manifest.trigger.detail)));
  line("time         ", manifest.time);
  line("continues    ", manifest.parent ? manifest.parent->path : std::string("nothing"));
  line("ranks        ", describe_ranks(manifest) + " lived when it was made");
  line("bytes        ", format("{} in {} files", human_bytes(file_bytes(manifest)), manifest.files.size()));
  line("hash         ", sealed.hash);
  for (const std::uint32_t rank : manifest.inexact_ranks)
    line("inexact      ", format("the small state of rank {} was lost with its node", rank));
  out << '\n';
  Table tensors({{"TENSOR"}, {"TYPE"}, {"SHAPE"}, {"BYTES", Table::Align::right}, {"PIECES", Table::Align::right}});
  for (const ManifestTensor& tensor : manifest.tensors) {
    std::uint64_t bytes = 0;
    for (const ManifestPiece& piece : tensor.pieces) bytes += piece.end_byte - piece.begin_byte;
    tensors.add({tensor.name, std::string(to_string(tensor.dtype)), describe_shape(tensor.global_shape),
                 human_bytes(bytes), std::to_string(tensor.pieces.size())});
  }
  tensors.print(out);
  if (!manifest.states.empty()) {
    out << '\n';
    Table states({{"STATE"}, {"RANK", Table::Align::right}, {"BYTES", Table::Align::right}});
    for (const ManifestState& state : manifest.states)
      states.add({state.name, std::to_string(state.rank), human_bytes(state.bytes)});
    states.print(out);
  }
  out << '\n';
  Table files({{"FILE"}, {"BYTES", Table::Align::right}, {"HASH"}});
  for (const ManifestFile& file : manifest.files) files.add({file.name, std::to_string(file.bytes), file.hash});
  files.print(out);
}

}  // namespace

int list_checkpoints(FileSystem& file_system, const std::vector<std::string>& directories, CommandStreams streams) {
  Json jobs = Json::array();
  bool first = true;
  const int code =
      for_each_place(file_system, directories, streams, [&](const CheckpointPlace& place, const JobView& view) {
        Json checkpoints = Json::array();
        Table table({{"CHECKPOINT"},
                     {"STEP", Table::Align::right},
                     {"ATTEMPT", Table::Align::right},
                     {"KIND"},
                     {"RANKS", Table::Align::right},
                     {"TENSORS", Table::Align::right},
                     {"BYTES", Table::Align::right},
                     {"TIME"},
                     {"STATE"}});
        std::vector<std::string> notes = view.order.notes;
        for (const std::string& name : view.strangers)
          notes.push_back(format("\"{}\" is no name that a checkpoint has, and is left alone", name));
        for (const Judged& judged : judge(view)) {
          if (place.checkpoint && judged.folder->path != *place.checkpoint) continue;
          checkpoints.push_back(to_json(judged));
          add_row(table, judged);
        }
        if (streams.json) {
          jobs.push_back({{"folder", view.folder},
                          {"namespace", view.job.namespace_name},
                          {"job", view.job.name},
                          {"checkpoints", std::move(checkpoints)},
                          {"notes", notes}});
          return 0;
        }
        streams.out << (first ? "" : "\n") << printable(display_name(view.job)) << " in " << printable(view.folder)
                    << '\n';
        first = false;
        if (checkpoints.empty()) {
          streams.out << "no checkpoints yet\n";
        } else {
          table.print(streams.out);
        }
        for (const std::string& note : notes) streams.out << "note: " << printable(note) << '\n';
        return 0;
      });
  if (streams.json) streams.out << dump_json({{"jobs", std::move(jobs)}}) << '\n';
  return code;
}

int show_checkpoints(FileSystem& file_system, const std::vector<std::string>& directories, CommandStreams streams) {
  Json shown = Json::array();
  const int code =
      for_each_place(file_system, directories, streams, [&](const CheckpointPlace& place, const JobView& view) {
        const Result<std::string> name = pick_checkpoint(place, view);
        if (!name) return report(streams, name.error());
        const Result<SealedManifest> sealed = read_manifest(file_system, place.job_folder, *name);
        if (!sealed) return report(streams, sealed.error());
        if (streams.json) {
          const Result<Json> manifest =
              parse_json(encode_manifest(sealed->manifest).text, "manifest", kManifestBytesMax);
          shown.push_back({{"folder", view.folder},
                           {"checkpoint", *name},
                           {"hash", sealed->hash},
                           {"manifest", manifest ? (*manifest)["manifest"] : Json()}});
        } else {
          print_manifest(streams.out, format("{}/{}", view.folder, *name), *sealed);
        }
        return 0;
      });
  if (streams.json) streams.out << dump_json({{"checkpoints", std::move(shown)}}) << '\n';
  return code;
}

}  // namespace rekindle::cli
