// A kubeconfig, which others may have written: it is read or refused with a sentence, and what is
// read has a server that can be dialled and never the password of one who is not checked.
#include <sys/mman.h>
#include <unistd.h>

#include "operator/io/kubeconfig.h"
#include "tests/fuzz/support/cost.h"

namespace rekindle {
namespace {

// A file in memory, since the reader takes paths.
Result<op::KubeconfigFacts> read(std::string_view text) {
  const int file = memfd_create("kubeconfig", MFD_CLOEXEC);
  RK_ASSERT(file >= 0 && write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  Result<op::KubeconfigFacts> facts = op::read_kubeconfig({"/proc/self/fd/" + std::to_string(file)});
  close(file);
  return facts;
}

void check(std::string_view text) {
  const Result<op::KubeconfigFacts> facts = read(text);
  if (!facts) return expect_sentence(facts.error());
  RK_ASSERT(!facts->context.empty() && !facts->server.host.empty() && facts->server.port != 0);
  RK_ASSERT(!facts->server.tls || !facts->authorities_pem.empty());
  RK_ASSERT(!facts->own || (!facts->own->certificate_pem.empty() && !facts->own->private_key_pem.empty()));
}

}  // namespace
}  // namespace rekindle

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  using namespace rekindle;
  const std::string head =
      "current-context: a\ncontexts: [{name: a, context: {cluster: a}}]\nclusters: [{name: a, cluster: {server: "
      "\"http://a\"}}]\n";
  // yaml-cpp keeps a node of several hundred bytes for each value.
  constexpr CostBound kBound{.microseconds_per_kib = 5000, .bytes_per_byte = 1024};
  const auto is_read = [&](std::string_view name, const std::string& text) {
    expect_cost(text.size(), [&] { check(text); }, kBound, name);
  };
  constexpr std::size_t kBytes = 256 << 10;
  is_read("a long text", repeated(head + "more: ", "text ", "\n", kBytes));
  is_read("a long list", repeated(head + "more: [1", ", 1", "]\n", kBytes));
  is_read("a block list", repeated(head + "more:\n", "- 1\n", "", kBytes));
  is_read("a list in a list", repeated(head + "more: ", "[", "\n", kBytes));
  is_read("a map in a map", repeated(head + "more: ", "{a: ", "\n", kBytes));
  is_read("a block in a block", repeated(head, "- ", "\n", kBytes));
  is_read("anchors", repeated(head + "a0: &a [x]\nmore: [*a", ", *a", "]\n", kBytes));
  is_read("contexts", repeated(head + "users:\n", "- {name: b, user: {token: c}}\n", "", kBytes));
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace rekindle;
  expect_cost(bytes, [&] { check(text_of(data, bytes)); }, {.bytes_per_byte = 1024});
  return 0;
}
