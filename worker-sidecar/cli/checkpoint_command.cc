#include "worker-sidecar/cli/checkpoint_command.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <string>
#include <vector>

#include "common/base/json_fields.h"
#include "worker-sidecar/cli/checkpoint_diff.h"
#include "worker-sidecar/cli/checkpoint_export.h"
#include "worker-sidecar/cli/checkpoint_groups.h"
#include "worker-sidecar/cli/checkpoint_listing.h"
#include "worker-sidecar/cli/checkpoint_prune.h"
#include "worker-sidecar/cli/table.h"
#include "worker-sidecar/groups/group_info.h"

namespace rekindle {
namespace {

constexpr int kUsage = 2;

struct Arguments {
  std::vector<std::string> directories;
  std::string target;
  std::string left;
  std::string right;
  GroupsQuestion groups;
  PruneQuestion prune;
  std::string format = "table";
};

void add_format(CLI::App& verb, Arguments& arguments) {
  verb.add_option("-o,--output", arguments.format, "table or json")->check(CLI::IsMember({"table", "json"}));
}

CLI::App* add_verb(CLI::App& app, Arguments& arguments, const std::string& name, const std::string& what) {
  CLI::App* verb = app.add_subcommand(name, what);
  verb->add_option("DIR", arguments.directories, "A checkpoint, the folder of a job, or the root above jobs")->required();
  add_format(*verb, arguments);
  return verb;
}

CLI::App* add_groups_verb(CLI::App& app, Arguments& arguments) {
  CLI::App* verb = app.add_subcommand("groups", "Say which rank of a MindSpore job restores each group of ranks that hold the same parameters");
  verb->add_option("ROOT", arguments.groups.root, "The folder with device<rank>/group_info.pb or rank_<rank>/group_info.pb")->required();
  verb->add_option("--faulty", arguments.groups.faulty, "The ranks that are lost, for example 1,5; without it none is")
      ->delimiter(',')
      ->allow_extra_args(false)  // else it takes a ROOT behind it, too
      ->check(CLI::Range(0u, kGroupRankMax));
  verb->add_option("--world-size", arguments.groups.world_size, "How many ranks the job has; without it the largest rank in a file is the last")
      ->check(CLI::Range(1u, kGroupRankMax + 1));
  add_format(*verb, arguments);
  return verb;
}

CLI::App* add_diff_verb(CLI::App& app, Arguments& arguments) {
  CLI::App* verb = app.add_subcommand("diff", "Say in which tensors and states two checkpoints differ; exit code 1 when they do");
  verb->add_option("LEFT", arguments.left, "A checkpoint, or the folder of a job: its newest")->required();
  verb->add_option("RIGHT", arguments.right, "The other one")->required();
  add_format(*verb, arguments);
  return verb;
}

CLI::App* add_prune_verb(CLI::App& app, Arguments& arguments) {
  CLI::App* verb = app.add_subcommand("prune", "Remove older checkpoints, those of abandoned attempts, and what was left half made");
  verb->add_option("DIR", arguments.prune.directory, "The folder of a job")->required();
  verb->add_option("--keep", arguments.prune.keep, "How many of the newest usable ones stay")->check(CLI::Range(1u, 1'000'000u))->capture_default_str();
  verb->add_flag("--dry-run", arguments.prune.dry_run, "Only say what would be removed");
  add_format(*verb, arguments);
  return verb;
}

int run_export(const Arguments& arguments, CommandStreams streams) {
  if (arguments.directories.size() != 1) {
    streams.err << "rekindle checkpoint: export takes one DIR\n";
    return kUsage;
  }
  const Result<ExportReport> exported = export_checkpoint(real_file_system(), arguments.directories.front(), arguments.target);
  if (!exported) return report(streams, exported.error());
  if (streams.json) {
    streams.out << dump_json({{"checkpoint", exported->checkpoint}, {"step", exported->step}, {"tensors", exported->tensors}, {"bytes", exported->bytes}, {"file", arguments.target}})
                << '\n';
  } else {
    streams.out << printable(exported->checkpoint) << ": " << exported->tensors << " tensors of step " << exported->step << ", "
                << human_bytes(exported->bytes) << " in " << printable(arguments.target) << '\n';
  }
  return 0;
}

}  // namespace

int run_checkpoint_command(int argc, char** argv) {
  return run_checkpoint_command(argc, const_cast<const char* const*>(argv), std::cout, std::cerr);
}

int run_checkpoint_command(int argc, const char* const* argv, std::ostream& out, std::ostream& err) {
  CLI::App app("Looks at checkpoints: lists, shows, verifies, compares, exports and prunes them; says which ranks can stand in for lost ones.", "rekindle checkpoint");
  app.require_subcommand(1);
  Arguments arguments;
  CLI::App* list = add_verb(app, arguments, "ls", "List checkpoints, the one that a restart would take first, with the reason for each that is refused");
  CLI::App* show = add_verb(app, arguments, "show", "Show what a checkpoint holds (of a job: its newest)");
  CLI::App* verify = add_verb(app, arguments, "verify", "Read every byte and say which range of which file is wrong");
  CLI::App* export_verb = add_verb(app, arguments, "export", "Write all tensors of a checkpoint (of a job: its newest) as one safetensors file");
  export_verb->add_option("--to", arguments.target, "The file to write; it must not exist")->required();
  const CLI::App* diff = add_diff_verb(app, arguments);
  const CLI::App* prune = add_prune_verb(app, arguments);
  CLI::App* groups = add_groups_verb(app, arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Asking for help is no mistake.
    return app.exit(error, out, err) == 0 ? 0 : kUsage;
  }
  const CommandStreams streams{out, err, arguments.format == "json"};
  int code = 0;
  if (list->parsed()) code = list_checkpoints(real_file_system(), arguments.directories, streams);
  if (show->parsed()) code = show_checkpoints(real_file_system(), arguments.directories, streams);
  if (verify->parsed()) code = verify_checkpoints(real_file_system(), arguments.directories, streams);
  if (export_verb->parsed()) code = run_export(arguments, streams);
  if (diff->parsed()) code = diff_checkpoints(real_file_system(), arguments.left, arguments.right, streams);
  if (prune->parsed()) code = prune_job(real_file_system(), arguments.prune, streams);
  if (groups->parsed()) code = show_groups(real_file_system(), arguments.groups, streams);
  out.flush();
  return code;
}

}  // namespace rekindle
