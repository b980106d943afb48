#include "tests/scenario/operator/script.h"

#include <map>
#include <sstream>

namespace rekindle::op::scenario {
namespace {

struct Command {
  std::string verb;
  std::map<std::string, std::string> values;
  std::vector<std::string> policies;  // event:action, in order

  std::string text(const std::string& name, const std::string& otherwise = "") const {
    const auto found = values.find(name);
    return found == values.end() ? otherwise : found->second;
  }
  int number(const std::string& name, int otherwise) const {
    const auto found = values.find(name);
    return found == values.end() ? otherwise : std::stoi(found->second);
  }
};

Command parse_command(const std::string& line) {
  std::istringstream in(line);
  Command command;
  in >> command.verb;
  for (std::string word; in >> word;) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) {
      command.values["word"] = word;
    } else if (word.substr(0, equals) == "policy") {
      command.policies.push_back(word.substr(equals + 1));
    } else {
      command.values[word.substr(0, equals)] = word.substr(equals + 1);
    }
  }
  return command;
}

std::vector<PolicyRule> policies_of(const Command& command) {
  std::vector<PolicyRule> rules;
  for (const std::string& policy : command.policies) {
    const std::size_t colon = policy.find(':');
    rules.push_back({.events = {policy.substr(0, colon)}, .action = policy.substr(colon + 1)});
  }
  return rules;
}

}  // namespace

std::vector<Block> parse_script(const std::string& text) {
  std::vector<Block> blocks;
  std::istringstream in(text);
  Block block;
  bool expecting = false;
  const auto finish = [&] {
    if (!block.command.empty() || !block.comments.empty()) blocks.push_back(block);
    block = {};
    expecting = false;
  };
  for (std::string line; std::getline(in, line);) {
    if (line.empty()) {
      finish();
    } else if (line == "----") {
      expecting = true;
    } else if (expecting) {
      block.expected.push_back(line);
    } else if (line.starts_with('#')) {
      block.comments.push_back(line);
    } else {
      block.command = line;
    }
  }
  finish();
  return blocks;
}

std::string print_script(const std::vector<Block>& blocks) {
  std::string text;
  for (const Block& block : blocks) {
    if (!text.empty()) text += "\n";
    for (const std::string& comment : block.comments) text += comment + "\n";
    if (block.command.empty()) continue;
    text += block.command + "\n----\n";
    for (const std::string& line : block.expected) text += line + "\n";
  }
  return text;
}

std::vector<std::string> run_command(World& world, const std::string& line) {
  const Command command = parse_command(line);
  const std::string& verb = command.verb;
  const std::string pod = command.text("pod");
  if (verb == "job") {
    world.create_job(command.text("name", "digits"), command.number("workers", 2), policies_of(command),
                     command.text("label", "grace"), command.text("protected", "yes") == "yes",
                     command.number("retries", 100));
  } else if (verb == "label") {
    world.label_job(command.text("word"));
  } else if (verb == "evict") {
    world.evict(pod, command.text("reason", "EvictionByEvictionAPI"));
  } else if (verb == "delete") {
    world.delete_pod(pod);
  } else if (verb == "force-delete") {
    world.remove_pod_at_once(pod);
  } else if (verb == "kill") {
    world.kill_container(pod, command.number("exit", 137), command.text("reason", "Error"));
  } else if (verb == "fail-collective") {
    world.fail_collective(command.text("rebuild", "no") == "yes");
  } else if (verb == "kill-rank") {
    world.kill_rank(pod);
  } else if (verb == "count-a-kill") {
    world.count_a_kill();
  } else if (verb == "finish") {
    world.finish_programs();
  } else if (verb == "suspend") {
    world.suspend();
  } else if (verb == "resume") {
    world.resume();
  } else if (verb == "scale") {
    world.scale(command.number("workers", 2));
  } else if (verb == "terminate") {
    world.terminate();
  } else if (verb == "delete-job") {
    world.delete_job();
  } else if (verb == "breakpoint") {
    world.ask_for_breakpoint(command.text("name", "by-hand"), command.text("uid"));
  } else if (verb == "webhook") {
    world.set_webhook(command.text("word") == "up");
  } else if (verb == "saving") {
    const std::string mode = command.text("word");
    world.set_save_mode(mode == "fails" ? SaveMode::fails : mode == "silent" ? SaveMode::silent : SaveMode::works);
  } else if (verb == "quick") {
    world.set_quick(command.text("word") == "on");
  } else if (verb == "marks") {
    world.set_marks(command.text("word") == "on");
  } else if (verb == "crash-loop") {
    world.set_crash_loop(command.text("word") == "on", command.text("before-open", "no") == "yes");
  } else if (verb == "operator") {
    if (command.text("word") == "up") {
      world.start_operator();
    } else {
      world.stop_operator();
    }
  } else if (verb == "settle") {
    for (int i = 0; i < command.number("seconds", 30); ++i) world.tick();
    return world.take_log();
  } else if (verb == "status") {
    return world.status();
  } else if (verb == "records") {
    return world.records();
  } else {
    return {"error: unknown command " + verb};
  }
  return {"ok"};
}

}  // namespace rekindle::op::scenario
