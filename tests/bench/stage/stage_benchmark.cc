// What the copies that let training go on cost beside a plain copy of the same bytes between warm
// memory: a snapshot of a rank's share, as a periodic checkpoint stops training for, and a step
// with a shadow (256 bytes of small state, open gates, one copy). Pairs run one after the other,
// the order alternates; one line of JSON a pair.
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "worker-sidecar/runtime/src/control_mapping.h"
#include "worker-sidecar/runtime/src/shadow_keeper.h"

namespace rekindle::runtime {
namespace {

constexpr std::uint64_t kAttempt = 1;
constexpr std::uint64_t kMebibyte = 1u << 20;

double milliseconds_of(const auto& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

// Memory as the shadow's: of its own, touched.
std::byte* warm_memory(std::size_t bytes) {
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("stage_benchmark: no memory");
    std::exit(1);
  }
  std::memset(memory, 1, bytes);
  return static_cast<std::byte*>(memory);
}

// A rank with a model of matrices and small vectors, like a transformer's.
class Rank {
 public:
  explicit Rank(std::uint64_t mebibytes) {
    small_state_.attach(*block_);
    gates_.attach(*block_);
    const std::uint64_t matrix = std::min<std::uint64_t>(mebibytes, 16) * kMebibyte;
    for (std::uint64_t made = 0; made < mebibytes * kMebibyte; made += matrix) {
      add("matrix" + std::to_string(sizes_.size()), matrix);
      add("bias" + std::to_string(sizes_.size()), 16384);
    }
    if (!registry_.add_state("sampler", state_, sizeof state_, small_state_.room())) std::exit(1);
    small_state_.set_values(registry_.captured_values());
    keeper_.set_report([](const SnapshottedMessage&, const std::shared_ptr<const ShadowMapping>&) {});
  }

  void keep(bool snapshots) {
    const Layout layout = registry_.layout();
    std::vector<PiecePlan> pieces;
    for (const TensorDescription& tensor : layout.tensors) pieces.push_back({tensor.name, 0, row_count(tensor)});
    Result<ShadowPlan> plan = plan_shadow(
        {.snapshots = snapshots, .shadow_every_steps = snapshots ? 0u : 1u, .state_bytes = block_->slot_bytes}, layout,
        pieces);
    Outcome<ShadowMapping> mapping = ShadowMapping::make_private(*std::move(plan));
    if (!mapping) {
      std::fprintf(stderr, "stage_benchmark: %s\n", mapping.error().message.c_str());
      std::exit(1);
    }
    keeper_.offer(std::make_shared<ShadowMapping>(*std::move(mapping)));
    keeper_.at_gate(0, gates_.word(), kAttempt);
    for (int i = 0; i < 3; ++i) snapshots ? snapshot() : step();  // every slot has been written
  }

  void snapshot() {
    commit();
    keeper_.at_gate(gates_.word().step, gates_.word(), kAttempt);
  }
  // Everything that the library does in a step.
  void step() {
    gates_.pass_step_gate(RankPhase::computing);
    gates_.pass_update_gate();
    commit();
    if (keeper_.due_at_commit(gates_.word().step)) keeper_.at_commit(gates_.word(), kAttempt);
    gates_.pass_step_gate(RankPhase::between);
  }

  std::uint64_t bytes() const { return bytes_; }
  void copy_to(std::byte* to) const {
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      std::memcpy(to, tensors_[i], sizes_[i]);
      to += sizes_[i];
    }
  }

 private:
  void add(const std::string& name, std::uint64_t bytes) {
    tensors_.push_back(warm_memory(bytes));
    sizes_.push_back(bytes);
    bytes_ += bytes;
    const rk_tensor tensor{.struct_size = sizeof(rk_tensor),
                           .name = name.c_str(),
                           .data = tensors_.back(),
                           .dtype = RK_F32,
                           .rank = 1,
                           .shape = {static_cast<std::int64_t>(bytes / 4)}};
    if (!registry_.add_tensor(tensor, small_state_.room())) std::exit(1);
  }
  void commit() {
    const std::uint8_t slot = gates_.word().slot ^ 1u;
    small_state_.capture(slot, gates_.word().step + 1, kAttempt);
    gates_.publish({gates_.word().step + 1, RankPhase::between, slot});
  }

  ControlMapping block_ = *ControlMapping::make_private(0, 1, 4096);
  Gates gates_;
  SmallState small_state_;
  Registry registry_{4096};
  ShadowKeeper keeper_{registry_, small_state_};
  std::vector<std::byte*> tensors_;
  std::vector<std::uint64_t> sizes_;
  std::uint64_t bytes_ = 0;
  unsigned char state_[256] = {};
};

int run(std::uint64_t mebibytes, int pairs, bool snapshots) {
  Rank rank(mebibytes);
  rank.keep(snapshots);
  std::byte* const plain = warm_memory(rank.bytes());
  rank.copy_to(plain);
  for (int pair = 0; pair < pairs; ++pair) {
    double ours = 0;
    double memcpy_milliseconds = 0;
    const auto measure_ours = [&] { ours = milliseconds_of([&] { snapshots ? rank.snapshot() : rank.step(); }); };
    const auto measure_plain = [&] { memcpy_milliseconds = milliseconds_of([&] { rank.copy_to(plain); }); };
    if (pair % 2 == 0) measure_ours();
    measure_plain();
    if (pair % 2 == 1) measure_ours();
    std::printf("{\"ours_milliseconds\": %.4f, \"memcpy_milliseconds\": %.4f, \"bytes\": %llu}\n", ours,
                memcpy_milliseconds, static_cast<unsigned long long>(rank.bytes()));
  }
  return 0;
}

}  // namespace
}  // namespace rekindle::runtime

// stage_benchmark snapshot|shadow MEBIBYTES PAIRS
int main(int argc, char** argv) {
  const std::string what = argc == 4 ? argv[1] : "";
  if (what != "snapshot" && what != "shadow") {
    std::fprintf(stderr, "Usage: stage_benchmark snapshot|shadow MEBIBYTES PAIRS\n");
    return 2;
  }
  return rekindle::runtime::run(std::strtoull(argv[2], nullptr, 10), std::atoi(argv[3]), what == "snapshot");
}
