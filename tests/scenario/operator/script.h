// A scenario as text: commands, a line of dashes, what must come out. Blank line between blocks, #
// for comments.
#pragma once

#include <string>
#include <vector>

#include "tests/scenario/operator/world.h"

namespace rekindle::op::scenario {

struct Block {
  std::vector<std::string> comments;
  std::string command;
  std::vector<std::string> expected;
};

std::vector<Block> parse_script(const std::string& text);
std::string print_script(const std::vector<Block>& blocks);

// Carries out one command and gives what came out. A command that is not understood gives "error:
// ...".
std::vector<std::string> run_command(World& world, const std::string& command);

}  // namespace rekindle::op::scenario
