// What the user requests: command line and environment, read once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "allreduce.h"
#include "result.h"

namespace digits {

struct Options {
  // rank, world size, where rank 0 listens
  MeetingPlace place;
  std::string data;  // digits.csv
  // where rank 0 writes the final state; empty: nowhere
  std::string output;
  // a JSON line a step in each
  std::vector<std::string> logs;
  // empty: none; journal.h has what is in it
  std::string status_page;
  std::uint64_t seed = 7;
  std::uint64_t steps = 400;
  // images a rank takes each step
  std::uint64_t batch = 384;
  std::uint64_t log_every = 1;
  std::uint64_t print_every = 50;
  // steps; 0: only when something ends
  std::uint64_t checkpoint_every = 0;
  // start that many ranks as processes instead of being one
  int spawn = 0;
  bool without_rekindle = false;
  bool help = false;
};

// Environment: REKINDLE_RANK and REKINDLE_WORLD_SIZE, else RANK_ID and RANK_SIZE; MASTER_ADDR, else
// the first of VC_WORKER_HOSTS, else 127.0.0.1; MASTER_PORT. With --spawn N the world is
// VC_WORKER_NUM (else 1) times N and the first rank VC_TASK_INDEX times N.
Result<Options> read_options(int argument_count, char** arguments);

const char* usage();

}  // namespace digits
