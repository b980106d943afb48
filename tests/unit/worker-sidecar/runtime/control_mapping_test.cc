#include "worker-sidecar/runtime/src/control_mapping.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>

#include "tests/support/scripted_sidecar.h"

namespace rekindle::runtime {
namespace {

using testing::ControlMemory;
using ::testing::HasSubstr;

std::string message_of(const Outcome<ControlMapping>& mapping) { return mapping ? "" : mapping.error().message; }

TEST(ControlMapping, ARightBlockIsMapped) {
  const ControlMemory control({.rank = 2, .world_size = 4});
  const auto mapping = ControlMapping::map(control.descriptor(), 2, 4);
  ASSERT_TRUE(mapping) << mapping.error().message;
  (*mapping)->word.store(77);
  EXPECT_EQ(control->word.load(), 77u);
}

TEST(ControlMapping, WrongMagicIsRefused) {
  const ControlMemory control;
  control->magic = 1;
  const auto mapping = ControlMapping::map(control.descriptor(), 0, 1);
  ASSERT_FALSE(mapping);
  EXPECT_EQ(mapping.error().status, RK_ERROR_VERSION);
  EXPECT_THAT(message_of(mapping), HasSubstr("RKCTRL01"));
}

TEST(ControlMapping, AnotherVersionIsRefusedWithBothNumbers) {
  const ControlMemory control;
  control->version = 9;
  const auto mapping = ControlMapping::map(control.descriptor(), 0, 1);
  ASSERT_FALSE(mapping);
  EXPECT_EQ(mapping.error().status, RK_ERROR_VERSION);
  EXPECT_THAT(message_of(mapping), HasSubstr("version 9, this library knows version 1"));
}

TEST(ControlMapping, ABlockOfAnotherRankIsRefused) {
  const ControlMemory control({.rank = 1, .world_size = 4});
  EXPECT_THAT(message_of(ControlMapping::map(control.descriptor(), 2, 4)),
              HasSubstr("rank 1 of 4, this process is rank 2 of 4"));
}

TEST(ControlMapping, AFileThatWasCutShortIsRefused) {
  const ControlMemory control;
  ASSERT_EQ(::ftruncate(control.descriptor(), static_cast<off_t>(control.bytes() - 4096)), 0);
  EXPECT_THAT(message_of(ControlMapping::map(control.descriptor(), 0, 1)), HasSubstr("do not fit together"));
  ASSERT_EQ(::ftruncate(control.descriptor(), 100), 0);
  EXPECT_THAT(message_of(ControlMapping::map(control.descriptor(), 0, 1)), HasSubstr("has 100 bytes"));
}

TEST(ControlMapping, SlotsThatDoNotFitAreRefused) {
  const std::vector<std::function<void(ControlBlock&)>> breaks = {
      [](ControlBlock& block) { block.slot_bytes = 0; },          [](ControlBlock& block) { block.slot_bytes += 1; },
      [](ControlBlock& block) { block.slot_bytes = 0xfffff000; }, [](ControlBlock& block) { block.slot_offset = 0; },
      [](ControlBlock& block) { block.slot_offset += 4096; },     [](ControlBlock& block) { block.total_bytes -= 1; },
  };
  for (const auto& break_one : breaks) {
    const ControlMemory control;
    break_one(*control);
    EXPECT_THAT(message_of(ControlMapping::map(control.descriptor(), 0, 1)), HasSubstr("do not fit together"));
  }
}

TEST(ControlMapping, AForkedChildHasNoPartInIt) {
  const ControlMemory control;
  const auto mapping = ControlMapping::map(control.descriptor(), 0, 1);
  ASSERT_TRUE(mapping);
  const pid_t child = ::fork();
  if (child == 0) {
    unsigned char resident = 0;
    // ENOMEM: nothing is mapped there.
    ::_exit(::mincore(&**mapping, 1, &resident) == -1 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(ControlMapping, APrivateBlockHasRoomForWhatWasAsked) {
  const auto mapping = ControlMapping::make_private(0, 1, 70'000);
  ASSERT_TRUE(mapping);
  EXPECT_GE((*mapping)->slot_bytes, 70'000 + sizeof(SlotHeader));
  EXPECT_EQ((*mapping)->hold.load(), 0u);
  EXPECT_EQ(ControlMapping::make_private(0, 1, UINT32_MAX - 100).error().status, RK_ERROR_ARGUMENT);
}

}  // namespace
}  // namespace rekindle::runtime
