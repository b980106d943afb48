// group_info_writer FILE RANK...: a group_info.pb by our writer, for MindSpore's reader to read.
#include <cstdlib>
#include <fstream>

#include "worker-sidecar/mindspore/group_info.h"

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  rekindle::RankGroup ranks;
  for (int i = 2; i < argc; ++i) ranks.push_back(static_cast<std::uint32_t>(std::strtoul(argv[i], nullptr, 10)));
  std::ofstream file(argv[1], std::ios::binary);
  file << rekindle::encode_group_info(ranks);
  return file.flush() ? 0 : 1;
}
