#include "worker-sidecar/cli/checkpoint_command.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/system/clock.h"
#include "worker-sidecar/cli/checkpoint_diff.h"
#include "worker-sidecar/cli/checkpoint_export.h"
#include "worker-sidecar/cli/checkpoint_groups.h"
#include "worker-sidecar/cli/checkpoint_import.h"
#include "worker-sidecar/cli/checkpoint_listing.h"
#include "worker-sidecar/cli/checkpoint_prune.h"
#include "worker-sidecar/cli/checkpoint_verify.h"
#include "worker-sidecar/mindspore/group_info.h"
#include "worker-sidecar/storage/nonce.h"

namespace rekindle::cli {
namespace {

struct Arguments {
  std::vector<std::string> directories;
  std::string left;
  std::string right;
  ExportQuestion to_export;
  ImportQuestion to_import;
  GroupsQuestion groups;
  PruneQuestion prune;
  std::string format = "table";
  bool progress = false;
};

// One of the names of an enum's values.
template <NamedEnum Choice>
void add_choice(CLI::App& verb, const std::string& name, Choice& chosen, const std::string& what) {
  std::set<std::string> names;
  for (const EnumName<Choice>& named : enum_names(chosen)) names.emplace(named.name);
  verb.add_option_function<std::string>(
          name, [&chosen](const std::string& text) { chosen = *parse_enum<Choice>(text); }, what)
      ->check(CLI::IsMember(std::move(names)));
}

CLI::App* add_verb(CLI::App& app, Arguments& arguments, const std::string& name, const std::string& what) {
  CLI::App* verb = app.add_subcommand(name, what);
  verb->add_option("-o,--output", arguments.format, "table or json")->check(CLI::IsMember({"table", "json"}));
  verb->add_flag("--progress", arguments.progress,
                 "Say on standard error how far long work has come, also when that is no terminal");
  return verb;
}

CLI::App* add_inspecting_verb(CLI::App& app, Arguments& arguments, const std::string& name, const std::string& what) {
  CLI::App* verb = add_verb(app, arguments, name, what);
  verb->add_option("DIR", arguments.directories, "A checkpoint, the folder of a job, or the root above jobs")
      ->required();
  return verb;
}

CLI::App* add_diff_verb(CLI::App& app, Arguments& arguments) {
  CLI::App* verb = add_verb(app, arguments, "diff",
                            "Say in which tensors and states two checkpoints differ; exit code 1 when they do");
  verb->add_option("LEFT", arguments.left, "A checkpoint, or the folder of a job: its newest")->required();
  verb->add_option("RIGHT", arguments.right, "The other one")->required();
  return verb;
}

CLI::App* add_export_verb(CLI::App& app, Arguments& arguments) {
  ExportQuestion& question = arguments.to_export;
  CLI::App* verb = add_verb(
      app, arguments, "export",
      "Write all tensors of a checkpoint (of a job: its newest) as a safetensors file, or as MindSpore's files");
  verb->add_option("DIR", question.directory, "A checkpoint, or the folder of a job: its newest")->required();
  verb->add_option("TO", question.target,
                   "safetensors: the file to write, which must not exist; mindspore: the folder to write into")
      ->required();
  add_choice(*verb, "--format", question.format, "safetensors (the default) or mindspore");
  add_choice(*verb, "--layout", question.mindspore.layout,
             "mindspore: merged (one file, the default), ranks (rank_<r>/PREFIX-...) or tft "
             "(tft_saved_checkpoints-step_<n>/...)");
  verb->add_option("--prefix", question.mindspore.prefix,
                   "mindspore: how the names of files begin; without it with the job's name");
  verb->add_option("--epoch", question.mindspore.epoch,
                   "mindspore: the epoch in the names, where the checkpoint does not say it");
  verb->add_option("--steps-per-epoch", question.mindspore.steps_per_epoch,
                   "mindspore: names then have the step within the epoch, as MindSpore's own")
      ->check(CLI::PositiveNumber);
  verb->add_option(
          "--sharded", question.mindspore.sharded,
          "mindspore, ranks and tft: NAME=DIMENSION of a tensor of which ranks hold equal parts; NAME may end in *")
      ->allow_extra_args(false);
  return verb;
}

CLI::App* add_import_verb(CLI::App& app, Arguments& arguments) {
  ImportQuestion& question = arguments.to_import;
  CLI::App* verb = add_verb(app, arguments, "import",
                            "Make a checkpoint out of files that others wrote; the next start of the job restores it");
  verb->add_option("FILE", question.files,
                   "safetensors files, a model.safetensors.index.json, or MindSpore's .ckpt files")
      ->required();
  verb->add_option("--root", question.root, "The folder above the folders of jobs")->required();
  verb->add_option("--job", question.job, "NAMESPACE.NAME of the job")->required();
  verb->add_option("--step", question.step, "After which step they were saved; MindSpore's files may say it themselves")
      ->check(CLI::PositiveNumber);
  return verb;
}

CLI::App* add_prune_verb(CLI::App& app, Arguments& arguments) {
  CLI::App* verb = add_verb(app, arguments, "prune",
                            "Remove older checkpoints, those of abandoned attempts, and what was left half made");
  verb->add_option("DIR", arguments.prune.directory, "The folder of a job")->required();
  verb->add_option("--keep", arguments.prune.keep, "How many of the newest usable ones stay")
      ->check(CLI::Range(1u, 1'000'000u))
      ->capture_default_str();
  verb->add_flag("--dry-run", arguments.prune.dry_run, "Only say what would be removed");
  return verb;
}

CLI::App* add_groups_verb(CLI::App& app, Arguments& arguments) {
  GroupsQuestion& question = arguments.groups;
  CLI::App* verb =
      add_verb(app, arguments, "groups",
               "Say which rank of a MindSpore job restores each group of ranks that hold the same parameters");
  verb->add_option("ROOT", question.root, "The folder with device<rank>/group_info.pb or rank_<rank>/group_info.pb")
      ->required();
  verb->add_option("--faulty", question.faulty, "The ranks that are lost, for example 1,5; without it none is")
      ->delimiter(',')
      ->allow_extra_args(false)  // else it takes a ROOT behind it, too
      ->check(CLI::Range(0u, kGroupRankMax));
  verb->add_option("--world-size", question.world_size,
                   "How many ranks the job has; without it the largest rank in a file is the last")
      ->check(CLI::Range(1u, kGroupRankMax + 1));
  verb->add_option("--checkpoints", question.checkpoints,
                   "The folder with rank_<rank>/*_breakpoint.ckpt: the chosen ones are checked to be of one step, and "
                   "copies to be equal");
  verb->add_option("--prefix", question.prefix, "How the names of those files begin; without it any");
  verb->add_flag("--rebuild", question.rebuild,
                 "Give each lost rank, and each without a file, a copy of the file chosen for its group");
  return verb;
}

}  // namespace

int run_checkpoint_command(int argc, char** argv) {
  const CommandHost host{.out = std::cout,
                         .err = std::cerr,
                         .err_is_terminal = ::isatty(STDERR_FILENO) == 1,
                         .now = monotonic_now,
                         .wall_time = [] { return to_micro_text(wall_now()); },
                         .draw_nonce = draw_nonce};
  return run_checkpoint_command(argc, const_cast<const char* const*>(argv), host);
}

int run_checkpoint_command(int argc, const char* const* argv, const CommandHost& host) {
  CLI::App app(
      "Looks at checkpoints: lists, shows, verifies, compares, exports, imports and prunes them; says which ranks can "
      "stand in for lost ones.\n"
      "Exit codes: 0 fine, 1 something that was read is wrong or differs, 2 it could not be done.",
      "rekindle checkpoint");
  app.require_subcommand(1);
  Arguments arguments;
  const CLI::App* list = add_inspecting_verb(
      app, arguments, "ls",
      "List checkpoints, the one that a restart would take first, with the reason for each that is refused");
  const CLI::App* show =
      add_inspecting_verb(app, arguments, "show", "Show what a checkpoint holds (of a job: its newest)");
  const CLI::App* verify = add_inspecting_verb(
      app, arguments, "verify",
      "Read every byte; say which range of which file is wrong, what lies there, and what can still be restored");
  const CLI::App* diff = add_diff_verb(app, arguments);
  const CLI::App* export_verb = add_export_verb(app, arguments);
  const CLI::App* import_verb = add_import_verb(app, arguments);
  const CLI::App* prune = add_prune_verb(app, arguments);
  const CLI::App* groups = add_groups_verb(app, arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // A request for help is no mistake.
    return app.exit(error, host.out, host.err) == 0 ? kExitOk : kExitFailed;
  }
  Progress progress(host.err, arguments.progress || host.err_is_terminal, host.now);
  const CommandStreams streams{host.out, host.err, arguments.format == "json", progress};
  FileSystem& files = real_file_system();
  int code = kExitOk;
  if (list->parsed()) code = list_checkpoints(files, arguments.directories, streams);
  if (show->parsed()) code = show_checkpoints(files, arguments.directories, streams);
  if (verify->parsed()) code = verify_checkpoints(files, arguments.directories, streams);
  if (diff->parsed()) code = diff_checkpoints(files, arguments.left, arguments.right, streams);
  if (export_verb->parsed()) code = export_checkpoint(files, arguments.to_export, host.draw_nonce(), streams);
  if (import_verb->parsed())
    code =
        import_checkpoint(files, arguments.to_import, {.time = host.wall_time(), .nonce = host.draw_nonce()}, streams);
  if (prune->parsed()) code = prune_job(files, arguments.prune, streams);
  if (groups->parsed()) code = show_groups(files, arguments.groups, host.draw_nonce(), streams);
  host.out.flush();
  return code;
}

}  // namespace rekindle::cli
