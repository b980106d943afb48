// Processes that come and go at a rank's place.
#include <gtest/gtest.h>
#include <unistd.h>

#include <asio/io_context.hpp>
#include <filesystem>

#include "tests/support/temporary_folder.h"
#include "worker-sidecar/sidecar/rank_table.h"

namespace rekindle::sidecar {
namespace {

class RankChanges : public testing::Test {
 protected:
  void admit(LinkId link) { ASSERT_TRUE(table.admit(0, ::getpid(), 4096, link, {})); }

  asio::io_context loop;
  TemporaryFolder folder;
  std::vector<std::uint32_t> died;
  RankTable table{loop, folder.path(), 1, [this](std::uint32_t rank, RankStatus) { died.push_back(rank); }};
};

// It sent no descriptor of its process, and has not made its robust futex known yet.
TEST_F(RankChanges, TheEndOfAConnectionIsADeathWhereNothingElseWatchesTheProcess) {
  admit(LinkId{1});
  table.link_ended(LinkId{1});
  EXPECT_EQ(died, std::vector<std::uint32_t>{0});
  EXPECT_FALSE(table.alive(0));
}

// It takes memory of the pod, and nobody reads it any more.
TEST_F(RankChanges, TheShadowOfADeadProcessGoesWhenTheNextOneComes) {
  admit(LinkId{1});
  table.set_registered(0, {.layout = {{whole_tensor("weights", Dtype::i32, {6, 2})}}, .states = {}});
  const auto made = table.make_shadow(0, {.serial = 1, .shadow_every_steps = 1, .pieces = {{"weights", 0, 6}}});
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_TRUE(std::filesystem::exists(folder.at("rank-0.shadow")));
  table.process_ended(0);
  admit(LinkId{2});
  EXPECT_FALSE(std::filesystem::exists(folder.at("rank-0.shadow")));
}

// Who asks for the words must not take a process that is back for one of which all is known.
TEST_F(RankChanges, TheWordOfAProcessThatIsBackIsToldAgain) {
  admit(LinkId{1});
  ASSERT_EQ(table.changed_words().size(), 1u);
  ASSERT_TRUE(table.changed_words().empty());
  ASSERT_TRUE(table.readmit(0, ::getpid(), LinkId{2}, {}));
  EXPECT_EQ(table.changed_words().size(), 1u);
}

}  // namespace
}  // namespace rekindle::sidecar
