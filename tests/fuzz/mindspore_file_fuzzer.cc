// MindSpore's checkpoint file, as somebody hands it over: content lies inside the file, is never
// read while it is indexed. What is read at once, and all together, stays small beside the file.
#include <set>

#include "tests/fuzz/support/fuzzing.h"
#include "worker-sidecar/mindspore/checkpoint_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace rekindle;
  const std::string_view file = text_of(data, bytes);
  std::uint64_t read_bytes = 0;
  const Result<MindSporeFile> index =
      index_mindspore_file(file.size(), [&](std::uint64_t offset, std::size_t wanted) -> Result<std::string> {
        RK_ASSERT(offset <= file.size() && wanted <= file.size() - offset);
        read_bytes += wanted;
        return std::string(file.substr(offset, wanted));
      });
  RK_ASSERT(read_bytes <= 64 * file.size() + 4096);
  if (!index) {
    expect_sentence(index.error());
    return 0;
  }
  RK_ASSERT(index->message_bytes <= file.size() && index->entries.size() <= file.size());
  std::set<std::string> names;
  std::uint64_t content = 0;
  for (const MindSporeEntry& entry : index->entries) {
    RK_ASSERT(names.insert(entry.name).second);
    for (const ContentRange& range : entry.content) {
      RK_ASSERT(range.begin_byte <= index->message_bytes && range.bytes <= index->message_bytes - range.begin_byte);
      content += range.bytes;
    }
  }
  RK_ASSERT(content <= file.size());  // no byte belongs to two
  return 0;
}
