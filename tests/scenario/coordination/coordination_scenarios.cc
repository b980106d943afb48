// Runs tests/scenario/coordination/*.txt: a command, ----, and what it led to, on the real
// machines. Review is a diff of behaviour. --rewrite writes what happens now into the files.
//
// Commands (name=value each; only `job` has defaults):
//   job pods=2 ranks=1 states=no after=park restore=184 parallel=data rebuilds=no unable=
//                                 a running job; restore=0 starts from nothing; parallel: data,
//                                 tensor, pipeline or zero, what its ranks hold (layout_for)
//   place rank= step= phase=      puts a rank there
//   kill rank= | pod=             finish rank=           restart pod=
//   hook pod= seconds=            order name= after=     want rank=
//   collective rank=              terminate pod= seconds=
//   gate rank=                    it comes to a gate, where an order to rebuild is seen
//   load milliseconds=            how long a load to rebuild takes
//   shadow rank= steps=180,190    its shadow holds complete copies of these
//   failwrites rank=              failshadow rank=       link a= b= up=
//   slow milliseconds=            how long a write takes
//   wait milliseconds=            settle                 until nobody holds, leads or waits
//   status

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>

#include "tests/support/coordination_harness.h"
#include "tests/support/source_folder.h"

namespace rekindle::sidecar {
namespace {

bool rewrite = false;

class Scenario {
 public:
  // What the command printed.
  std::string run(const std::string& line) {
    std::istringstream words(line);
    std::string command;
    words >> command;
    values_.clear();
    for (std::string word; words >> word;) {
      const std::size_t equals = word.find('=');
      values_[word.substr(0, equals)] = equals == std::string::npos ? "yes" : word.substr(equals + 1);
    }
    if (command == "job") return start();
    if (!job_) return "no job yet\n";
    if (!perform(command)) return "unknown command\n";
    return printed(command == "status" ? job_->describe() : "");
  }

 private:
  std::string text(const std::string& name, const std::string& otherwise = "") const {
    const auto found = values_.find(name);
    return found == values_.end() ? otherwise : found->second;
  }
  std::uint32_t number(const std::string& name, std::uint32_t otherwise = 0) const {
    return static_cast<std::uint32_t>(std::stoul(text(name, std::to_string(otherwise))));
  }

  std::vector<std::uint64_t> steps() const {
    std::vector<std::uint64_t> list;
    std::istringstream numbers(text("steps"));
    for (std::string one; std::getline(numbers, one, ',');) list.push_back(std::stoull(one));
    return list;
  }

  std::string start() {
    HarnessOptions options{.pods = number("pods", 2), .ranks_per_pod = number("ranks", 1)};
    options.states = text("states", "no") == "yes";
    options.rebuilds = text("rebuilds", "no") == "yes";
    if (values_.contains("unable")) options.unable = {number("unable")};
    options.after_fault = parse_after_breakpoint(text("after", "park")).value_or(AfterBreakpoint::park);
    job_ = std::make_unique<CoordinationHarness>(options);
    for (std::uint32_t rank = 0; rank < job_->config().world_size(); ++rank) {
      if (const auto layout = layout_for(text("parallel", "data"), rank, job_->config().world_size()))
        job_->set_layout_of(rank, *layout);
      else return "unknown way to be parallel\n";
    }
    const std::uint32_t restore = number("restore", 184);
    if (restore == 0) job_->start();
    else job_->start(RestoreCandidate{"a1-s" + std::to_string(restore) + "-x", 1, restore, "hash"});
    return printed("");
  }

  std::string printed(const std::string& more) const {
    std::string out = more;
    for (const std::string& line : job_->take_log()) out += line + "\n";
    for (const std::string& violation : job_->violations()) out += "VIOLATION " + violation + "\n";
    return out.empty() ? "ok\n" : out;
  }

  bool perform(const std::string& command) {
    if (command == "place")
      job_->place(number("rank"), number("step"), parse_enum<RankPhase>(text("phase")).value_or(RankPhase::starting));
    else if (command == "kill" && values_.contains("pod")) job_->kill_pod(number("pod"));
    else if (command == "kill") job_->kill_rank(number("rank"));
    else if (command == "finish") job_->finish_rank(number("rank"));
    else if (command == "restart") job_->restart_sidecar(number("pod"));
    else if (command == "hook") job_->hook(number("pod"), number("seconds", 30));
    else if (command == "order")
      job_->order(text("name"), parse_after_breakpoint(text("after")).value_or(AfterBreakpoint::park), 30);
    else if (command == "want") job_->want_checkpoint(number("rank"));
    else if (command == "collective") job_->fail_collective(number("rank"));
    else if (command == "gate") job_->reach_gate(number("rank"));
    else if (command == "load") job_->set_load_time(std::chrono::milliseconds(number("milliseconds")));
    else if (command == "terminate") job_->terminate(number("pod"), number("seconds", 30));
    else if (command == "failwrites")
      job_->fail_writes_of(number("rank"), {ErrorCode::io, "input/output error", Retry::no});
    else if (command == "failshadow")
      job_->fail_shadows_of(number("rank"), {ErrorCode::io, "input/output error", Retry::no});
    else if (command == "shadow") job_->set_shadows(number("rank"), steps());
    else if (command == "link") job_->set_link(number("a"), number("b"), text("up") == "yes");
    else if (command == "slow") job_->set_write_time(std::chrono::milliseconds(number("milliseconds")));
    else if (command == "wait") job_->run_for(std::chrono::milliseconds(number("milliseconds")));
    else if (command == "settle") settle();
    else return command == "status";
    return true;
  }

  void settle() {
    job_->run_until([this] { return job_->quiet(); }, std::chrono::seconds(60));
    // nobody stops the containers: parked ranks are told to end after stop_wait
    job_->run_for(std::chrono::milliseconds(2500));
  }

  std::unique_ptr<CoordinationHarness> job_;
  std::map<std::string, std::string> values_;
};

// Comment lines stay; each block is a command, ----, expected lines, an empty line.
std::string played(const std::string& script) {
  std::istringstream lines(script);
  std::string out, line;
  Scenario scenario;
  while (std::getline(lines, line)) {
    if (line.empty() || line[0] == '#') {
      out += line + "\n";
      continue;
    }
    const std::string command = line;
    if (std::getline(lines, line) && line == "----") {
      while (std::getline(lines, line) && !line.empty()) {
      }
    }
    out += command + "\n----\n" + scenario.run(command) + "\n";
  }
  while (out.size() > 1 && out.ends_with("\n\n")) out.pop_back();
  return out;
}

std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::filesystem::path> scenario_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(test::source_path("tests/scenario/coordination"))) {
    if (entry.path().extension() == ".txt" && entry.path().filename() != "CMakeLists.txt")
      files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

class CoordinationScenario : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(CoordinationScenario, HappensAsWritten) {
  const std::string written = read_text(GetParam());
  const std::string happened = played(written);
  EXPECT_EQ(happened.find("VIOLATION"), std::string::npos) << happened;
  if (rewrite) {
    std::ofstream(GetParam()) << happened;
    return;
  }
  EXPECT_EQ(happened, written) << "if this is meant, run coordination_scenarios --rewrite and review the diff";
}

INSTANTIATE_TEST_SUITE_P(Files, CoordinationScenario, ::testing::ValuesIn(scenario_files()), [](const auto& each) {
  std::string name = each.param.stem().string();
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(CoordinationScenarios, AreThere) { EXPECT_GE(scenario_files().size(), 10u); }

}  // namespace
}  // namespace rekindle::sidecar

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i)
    rekindle::sidecar::rewrite = rekindle::sidecar::rewrite || std::string_view(argv[i]) == "--rewrite";
  return RUN_ALL_TESTS();
}
