#include "worker-sidecar/cli/checkpoint_command.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <string>
#include <vector>

#include "common/base/json_fields.h"
#include "worker-sidecar/cli/checkpoint_export.h"
#include "worker-sidecar/cli/checkpoint_listing.h"
#include "worker-sidecar/cli/table.h"

namespace rekindle {
namespace {

constexpr int kUsage = 2;

struct Arguments {
  std::vector<std::string> directories;
  std::string target;
  std::string format = "table";
};

CLI::App* add_verb(CLI::App& app, Arguments& arguments, const std::string& name, const std::string& what) {
  CLI::App* verb = app.add_subcommand(name, what);
  verb->add_option("DIR", arguments.directories, "A checkpoint, the folder of a job, or the root above jobs")->required();
  verb->add_option("-o,--output", arguments.format, "table or json")->check(CLI::IsMember({"table", "json"}));
  return verb;
}

int run_export(const Arguments& arguments, CommandStreams streams) {
  if (arguments.directories.size() != 1) {
    streams.err << "rekindle checkpoint: export takes one DIR\n";
    return kUsage;
  }
  const Result<ExportReport> report = export_checkpoint(real_file_system(), arguments.directories.front(), arguments.target);
  if (!report) {
    streams.err << "rekindle checkpoint: " << printable(report.error().message) << '\n';
    return 1;
  }
  if (streams.json) {
    streams.out << dump_json({{"checkpoint", report->checkpoint}, {"step", report->step}, {"tensors", report->tensors}, {"bytes", report->bytes}, {"file", arguments.target}})
                << '\n';
  } else {
    streams.out << printable(report->checkpoint) << ": " << report->tensors << " tensors of step " << report->step << ", "
                << human_bytes(report->bytes) << " in " << printable(arguments.target) << '\n';
  }
  return 0;
}

}  // namespace

int run_checkpoint_command(int argc, char** argv) {
  return run_checkpoint_command(argc, const_cast<const char* const*>(argv), std::cout, std::cerr);
}

int run_checkpoint_command(int argc, const char* const* argv, std::ostream& out, std::ostream& err) {
  CLI::App app("Looks at checkpoints: lists, shows, verifies and exports them.", "rekindle checkpoint");
  app.require_subcommand(1);
  Arguments arguments;
  CLI::App* list = add_verb(app, arguments, "ls", "List checkpoints, the one that a restart would take first, with the reason for each that is refused");
  CLI::App* show = add_verb(app, arguments, "show", "Show what a checkpoint holds (of a job: its newest)");
  CLI::App* verify = add_verb(app, arguments, "verify", "Read every byte and say which range of which file is wrong");
  CLI::App* export_verb = add_verb(app, arguments, "export", "Write all tensors of a checkpoint (of a job: its newest) as one safetensors file");
  export_verb->add_option("--to", arguments.target, "The file to write; it must not exist")->required();
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
  out.flush();
  return code;
}

}  // namespace rekindle
