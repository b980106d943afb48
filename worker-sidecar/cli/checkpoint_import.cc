#include "worker-sidecar/cli/checkpoint_import.h"

#include <algorithm>
#include <cerrno>
#include <ostream>
#include <utility>

#include "common/base/format.h"
#include "common/base/json_fields.h"
#include "worker-sidecar/checkpoint/candidates.h"
#include "worker-sidecar/checkpoint/names.h"
#include "worker-sidecar/checkpoint/written.h"
#include "worker-sidecar/cli/foreign_tensors.h"
#include "worker-sidecar/cli/table.h"
#include "worker-sidecar/storage/attempt_store.h"
#include "worker-sidecar/storage/checkpoint_root.h"
#include "worker-sidecar/storage/file_writer.h"
#include "worker-sidecar/storage/files.h"
#include "worker-sidecar/storage/folder.h"
#include "worker-sidecar/storage/publisher.h"
#include "worker-sidecar/storage/scan.h"
#include "worker-sidecar/storage/verifier.h"

namespace rekindle::cli {
namespace {

Result<JobIdentity> parse_job(const std::string& text) {
  // A namespace has no dot in it, the name of a job may.
  const std::size_t dot = text.find('.');
  if (dot == std::string::npos) return fail(ErrorCode::invalid_input, format("--job {} is not NAMESPACE.NAME", text));
  JobIdentity job{.namespace_name = text.substr(0, dot), .name = text.substr(dot + 1), .uid = ""};
  if (const Result<std::string> name = job_folder_name(job.namespace_name, job.name); !name)
    return std::unexpected(name.error());
  return job;
}

// The job's folder; taken away again when it was made for the import and nothing came of it.
class ImportFolder {
 public:
  static Result<ImportFolder> inspect(FileSystem& file_system, const std::string& root, const JobIdentity& job) {
    const Result<std::string> name = job_folder_name(job.namespace_name, job.name);
    if (!name) return std::unexpected(name.error());
    ImportFolder folder(file_system, root, *name);
    FileInfo info;
    const int result = file_system.stat(folder.path_, info);
    if (result < 0 && result != -ENOENT) return storage_failure(-result, "looking at", folder.path_);
    folder.is_new_ = result == -ENOENT;
    return folder;
  }
  ~ImportFolder() {
    if (!is_new_) return;
    // One that another process has put something into stays.
    if (!remove_beneath(*file_system_, root_, join_path(name_, kAttemptsFolder), FileKind::folder)) return;
    static_cast<void>(remove_beneath(*file_system_, root_, join_path(name_, kJobFileName), FileKind::file));
    static_cast<void>(remove_beneath(*file_system_, root_, name_, FileKind::folder));
  }
  ImportFolder(ImportFolder&& other) noexcept
      : file_system_(other.file_system_),
        root_(std::move(other.root_)),
        name_(std::move(other.name_)),
        path_(std::move(other.path_)),
        is_new_(std::exchange(other.is_new_, false)) {}

  const std::string& path() const { return path_; }
  void keep() { is_new_ = false; }

 private:
  ImportFolder(FileSystem& file_system, std::string root, std::string name)
      : file_system_(&file_system), root_(std::move(root)), name_(std::move(name)), path_(join_path(root_, name_)) {}

  FileSystem* file_system_;
  std::string root_;
  std::string name_;
  std::string path_;
  bool is_new_ = false;
};

struct Imported {
  std::string checkpoint;
  std::uint64_t attempt = 0;
  std::uint64_t bytes = 0;
};

class Importer {
 public:
  Importer(FileSystem& file_system, const ForeignTensors& foreign, std::string job_folder, Manifest manifest,
           std::string nonce, Progress& progress)
      : file_system_(file_system),
        foreign_(foreign),
        job_folder_(std::move(job_folder)),
        manifest_(std::move(manifest)),
        nonce_(std::move(nonce)),
        progress_(progress) {}

  // Error conflict: the job has begun meanwhile. Nothing is left then, and the job may publish: a
  // number above its own would take that from it.
  Result<Imported> run() {
    const Result<FolderScan> scan = scan_job_folder(file_system_, job_folder_);
    if (!scan) return std::unexpected(scan.error());
    manifest_.attempt = newest_attempt(*scan) + 1;
    const Result<std::string> name =
        create_checkpoint_folder(file_system_, job_folder_, {manifest_.attempt, manifest_.step, nonce_});
    if (!name) return std::unexpected(name.error());
    Result<Imported> imported = fill(*name);
    // Why the import failed is what matters; what is left of it is a checkpoint for no reader.
    if (!imported) static_cast<void>(remove_checkpoint_folder(file_system_, job_folder_, *name));
    return imported;
  }

 private:
  // The record is claimed last: published and without a record, the checkpoint already counts (its
  // manifest says that it continues nothing), while a record without a checkpoint would cut the job
  // off from all that it has. So it may end anywhere.
  Result<Imported> fill(const std::string& name) {
    if (Status status = write_data(name); !status) return std::unexpected(status.error());
    if (const Result<std::string> hash = publish_manifest(file_system_, job_folder_, name, manifest_, nonce_); !hash)
      return std::unexpected(hash.error());
    progress_.begin("verifying " + name);
    const Verification verification =
        verify_checkpoint(file_system_, job_folder_, name, manifest_.job,
                          [&](std::uint64_t done, std::uint64_t all) { progress_.report(done, all); });
    if (!verification.fine()) {
      const Finding& finding = verification.findings.front();
      return fail(ErrorCode::corrupt,
                  format("what was written reads back differently ({}: {}): the storage is not reliable", finding.file,
                         finding.message));
    }
    if (Status status = claim(name); !status) return std::unexpected(status.error());
    return Imported{name, manifest_.attempt, file_bytes(manifest_)};
  }

  Status write_data(const std::string& name) {
    Layout layout;
    std::vector<DataEntry> entries;
    for (const ForeignTensor& tensor : foreign_.tensors) {
      layout.tensors.push_back(whole_tensor(tensor.name, tensor.dtype, tensor.shape));
      entries.push_back({tensor.name, tensor.dtype, tensor.shape});
    }
    const std::string file = rank_file_name(0);
    Result<DataFileWriter> writer = DataFileWriter::create(file_system_, join_path(job_folder_, name), file, entries);
    if (!writer) return std::unexpected(writer.error());
    progress_.begin("importing " + name);
    std::uint64_t done = 0;
    for (const std::size_t i : writer->layout().source) {
      const ForeignTensor& tensor = foreign_.tensors[i];
      const Status status =
          stream_ranges(file_system_, tensor.path, tensor.content, [&](const char* data, std::size_t bytes) {
            progress_.report(done += bytes, writer->layout().file_bytes);
            return writer->append(data, bytes);
          });
      if (!status) return status;
    }
    const Result<WrittenDataFile> written = writer->finish();
    if (!written) return std::unexpected(written.error());
    WrittenFile report{file, written->bytes, written->hash, written->chunks, {}};
    for (std::size_t i = 0; i < layout.tensors.size(); ++i) {
      report.entries.push_back({.key = entries[i].key,
                                .tensor = layout.tensors[i].name,
                                .begin_row = 0,
                                .end_row = row_count(layout.tensors[i]),
                                .begin_byte = written->entries[i].begin_byte,
                                .end_byte = written->entries[i].end_byte});
    }
    return add_tensors(manifest_, {{.layout = &layout, .written = std::move(report)}});
  }

  Status claim(const std::string& checkpoint) {
    const AttemptRecord record{
        .attempt = manifest_.attempt, .parent = {}, .job_uid = "", .pods = {}, .time = manifest_.time};
    const std::string text = encode_attempt(record);
    const std::string folder = join_path(job_folder_, kAttemptsFolder);
    const std::string name = attempt_file_name(record.attempt);
    const Status status = publish_file(file_system_, folder, name, text, nonce_);
    if (!status && status.error().code == ErrorCode::already_exists) return begun_meanwhile(record.attempt);
    const Status kept = status ? check_newest(checkpoint) : status;
    if (kept) return {};
    // It may be there also after a failure, not surely for ever; without its checkpoint it must not
    // stay.
    const std::string path = join_path(folder, name);
    if (const Result<std::string> there = read_whole_file(file_system_, path, text.size()); there && *there == text)
      static_cast<void>(remove_beneath(file_system_, job_folder_, join_path(kAttemptsFolder, name), FileKind::file));
    return kept;
  }

  // A start that listed checkpoints before this one was published goes on from what it found then.
  // One that listed them later has taken it.
  Status check_newest(const std::string& checkpoint) {
    const Result<std::vector<FoundAttempt>> attempts = list_attempts(file_system_, job_folder_);
    if (!attempts) return std::unexpected(attempts.error());
    for (const FoundAttempt& found : *attempts) {
      if (found.attempt <= manifest_.attempt) continue;
      const bool continues = found.record && found.record->parent && found.record->parent->path == checkpoint;
      if (!continues) return begun_meanwhile(found.attempt);
      break;
    }
    return {};
  }

  static std::unexpected<Error> begun_meanwhile(std::uint64_t attempt) {
    return fail(ErrorCode::conflict,
                format("attempt {} of the job began meanwhile. Import while the job does not run", attempt));
  }

  FileSystem& file_system_;
  const ForeignTensors& foreign_;
  const std::string job_folder_;
  Manifest manifest_;
  const std::string nonce_;
  Progress& progress_;
};

Result<Imported> import_files(FileSystem& file_system, const ForeignTensors& foreign, const ImportQuestion& question,
                              const Manifest& manifest, const ImportStamp& stamp, Progress& progress) {
  Result<ImportFolder> folder = ImportFolder::inspect(file_system, question.root, manifest.job);
  if (!folder) return std::unexpected(folder.error());
  const Result<JobFolder> opened =
      open_job_folder(file_system, {.root = question.root, .job = manifest.job, .nonce = stamp.nonce});
  if (!opened) return std::unexpected(opened.error());
  Result<Imported> imported = Importer(file_system, foreign, folder->path(), manifest, stamp.nonce, progress).run();
  if (imported) folder->keep();
  return imported;
}

}  // namespace

int import_checkpoint(FileSystem& file_system, const ImportQuestion& question, const ImportStamp& stamp,
                      CommandStreams streams) {
  const auto refuse = [&](const Error& error) { return report(streams, with_context(error, "nothing was imported")); };
  Result<JobIdentity> job = parse_job(question.job);
  if (!job) return refuse(job.error());
  const Result<ForeignTensors> foreign = index_foreign_files(file_system, question.files, streams.progress);
  if (!foreign) return refuse(foreign.error());
  const std::optional<std::uint64_t> step = question.step ? question.step : foreign->step;
  if (!step || *step == 0) {
    return refuse({.code = ErrorCode::invalid_input,
                   .message = "the files do not say after which step they were saved: give --step, from 1"});
  }
  // No small state comes with the files, so it does not matter for how many ranks the checkpoint
  // is.
  const Manifest manifest{.kind = CheckpointKind::periodic,
                          .job = std::move(*job),
                          .step = *step,
                          .world_size = 1,
                          .live_ranks = 1,
                          .trigger = {.cause = "import", .detail = question.files.front()},
                          .time = stamp.time};
  const Result<Imported> imported = import_files(file_system, *foreign, question, manifest, stamp, streams.progress);
  if (!imported) return refuse(imported.error());
  if (streams.json) {
    streams.out << dump_json({{"checkpoint", imported->checkpoint},
                              {"attempt", imported->attempt},
                              {"step", *step},
                              {"tensors", foreign->tensors.size()},
                              {"bytes", imported->bytes},
                              {"left_out", foreign->left_out}})
                << '\n';
    return kExitOk;
  }
  streams.out << printable(question.job) << ": " << printable(imported->checkpoint) << " holds "
              << foreign->tensors.size() << " tensors, " << human_bytes(imported->bytes)
              << ", verified; the next start of the job goes on after step " << *step << '\n';
  for (const std::string& name : foreign->left_out)
    streams.out << "left out: " << printable(name) << ", which is no tensor of the model\n";
  return kExitOk;
}

}  // namespace rekindle::cli
