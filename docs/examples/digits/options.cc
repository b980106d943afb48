#include "options.h"

#include <charconv>
#include <cstdlib>
#include <initializer_list>
#include <limits>
#include <string_view>

namespace digits {
namespace {

bool read_number(std::string_view text, std::uint64_t largest, std::uint64_t& value) {
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  return fault == std::errc{} && end == text.data() + text.size() && value <= largest;
}

const char* first_set(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const char* const value = std::getenv(name);
    if (value != nullptr && *value != '\0') return value;
  }
  return nullptr;
}

Status number_from_environment(std::initializer_list<const char*> names, std::uint64_t& value) {
  const char* const text = first_set(names);
  if (text == nullptr || read_number(text, 1'000'000, value)) return {};
  return failure("environment variable " + std::string(*names.begin()) + " is \"" + text + "\", not a number");
}

Status read_place(Options& options) {
  std::uint64_t rank = 0;
  std::uint64_t world_size = 1;
  if (options.spawn > 0) {
    // Ranks of this process are numbered from the place of its pod in the Volcano task.
    if (Status read = number_from_environment({"VC_TASK_INDEX", "VK_TASK_INDEX"}, rank); !read) return read;
    if (Status read = number_from_environment({"VC_WORKER_NUM"}, world_size); !read) return read;
    rank *= static_cast<std::uint64_t>(options.spawn);
    world_size *= static_cast<std::uint64_t>(options.spawn);
  } else {
    if (Status read = number_from_environment({"REKINDLE_RANK", "RANK_ID"}, rank); !read) return read;
    if (Status read = number_from_environment({"REKINDLE_WORLD_SIZE", "RANK_SIZE"}, world_size); !read) return read;
  }
  if (world_size == 0 || rank >= world_size) {
    return failure("rank " + std::to_string(rank) + " does not fit a world of " + std::to_string(world_size) +
                   " ranks");
  }
  options.place.rank = static_cast<int>(rank);
  options.place.world_size = static_cast<int>(world_size);

  if (const char* const host = first_set({"MASTER_ADDR"})) {
    options.place.master_host = host;
  } else if (const char* const hosts = first_set({"VC_WORKER_HOSTS"})) {
    options.place.master_host = std::string_view(hosts).substr(0, std::string_view(hosts).find(','));
  }
  if (const char* const port = first_set({"MASTER_PORT"})) options.place.master_port = port;
  return {};
}

void insert_rank(std::string& path, int rank) {
  if (const std::size_t at = path.find("%r"); at != std::string::npos) path.replace(at, 2, std::to_string(rank));
}

}  // namespace

const char* usage() {
  return "digits --data FILE [options]: trains a small network on handwritten digits, data-parallel, and survives what "
         "rekindle "
         "survives.\n"
         "  --data FILE              digits.csv (README.md says where it comes from)\n"
         "  --output FILE            rank 0 writes the final parameters and moments there (safetensors)\n"
         "  --steps N                updates to make in all (400)\n"
         "  --seed N                 of initial parameters, split and order (7)\n"
         "  --batch N                images a rank takes each step (384)\n"
         "  --log FILE               append a JSON line every --log-every steps (1); - is standard output; may be "
         "given again\n"
         "  --print-every N          rank 0 says how it goes (50)\n"
         "  --checkpoint-every N     ask for a checkpoint every N steps (never)\n"
         "  --connect-seconds N      how long ranks look for each other (30)\n"
         "  --timeout-seconds N      how long a rank waits for the others within a step (120)\n"
         "  --status-page FILE       keep a 64-byte note of what the rank is doing\n"
         "  --spawn N                start N ranks in this container; for jobs without `rekindle run`\n"
         "  --without-rekindle       make no use of the library: nothing is saved, nothing resumes\n"
         "%r in --log and --status-page stands for the rank. Rank and world size come from the environment, as "
         "`rekindle run` and the Rekindle operator set it.\n";
}

Result<Options> read_options(int argument_count, char** arguments) {
  Options options;
  for (int at = 1; at < argument_count; ++at) {
    const std::string_view word = arguments[at];
    const std::size_t equals = word.find('=');
    const std::string_view name = word.substr(0, equals);
    if (name == "--help" || name == "-h") {
      options.help = true;
      return options;
    }
    if (name == "--without-rekindle") {
      options.without_rekindle = true;
      continue;
    }
    const auto wrong = [&](const char* what) { return failure(std::string(name) + " " + what + "; try --help"); };
    std::string* const text = name == "--data"          ? &options.data
                              : name == "--output"      ? &options.output
                              : name == "--log"         ? &options.logs.emplace_back()
                              : name == "--status-page" ? &options.status_page
                                                        : nullptr;
    std::uint64_t connect_seconds = 0;
    std::uint64_t timeout_seconds = 0;
    std::uint64_t spawn = 0;
    std::uint64_t* const number = name == "--steps"              ? &options.steps
                                  : name == "--seed"             ? &options.seed
                                  : name == "--batch"            ? &options.batch
                                  : name == "--log-every"        ? &options.log_every
                                  : name == "--print-every"      ? &options.print_every
                                  : name == "--checkpoint-every" ? &options.checkpoint_every
                                  : name == "--connect-seconds"  ? &connect_seconds
                                  : name == "--timeout-seconds"  ? &timeout_seconds
                                  : name == "--spawn"            ? &spawn
                                                                 : nullptr;
    if (text == nullptr && number == nullptr) return wrong("is not an option");
    if (equals == std::string_view::npos && at + 1 == argument_count) return wrong("needs a value");
    const std::string_view value = equals == std::string_view::npos ? arguments[++at] : word.substr(equals + 1);
    if (text != nullptr) {
      *text = value;
      continue;
    }
    if (!read_number(value, name == "--seed" ? std::numeric_limits<std::uint64_t>::max() : 1'000'000'000, *number)) {
      return wrong("needs a whole number");
    }
    if (name == "--connect-seconds") options.place.connect_patience = std::chrono::seconds(connect_seconds);
    if (name == "--timeout-seconds") options.place.patience = std::chrono::seconds(timeout_seconds);
    if (name == "--spawn") options.spawn = static_cast<int>(spawn);
    if (name == "--spawn" && (spawn == 0 || spawn > 1024)) return wrong("needs a number from 1 to 1024");
    if (name == "--batch" && (*number == 0 || *number > 65'536)) return wrong("needs a number from 1 to 65536");
  }
  if (options.data.empty()) return failure("--data is missing; try --help");
  if (Status read = read_place(options); !read) return failure(read.error());
  for (std::string& log : options.logs) insert_rank(log, options.place.rank);
  insert_rank(options.status_page, options.place.rank);
  return options;
}

}  // namespace digits
