#include "worker-sidecar/checkpoint/names.h"

#include <gtest/gtest.h>

namespace rekindle {
namespace {

TEST(FolderName, GoesThereAndBack) {
  const FolderName name{2, 184, "7fk2q"};
  EXPECT_EQ(checkpoint_folder_name(name), "a2-s184-7fk2q");
  EXPECT_EQ(parse_folder_name("a2-s184-7fk2q"), name);
  const FolderName highest{kAttemptMax, kStepMax, "x"};
  EXPECT_EQ(parse_folder_name(checkpoint_folder_name(highest)), highest);
}

TEST(FolderName, OnlyTheExactSpellingIsOne) {
  for (const char* text : {"", "a", "a2", "a2-s184", "a2-s184-", "a02-s184-x", "a2-s+1-x", "a2-s184-X", "a2-s184-../x",
                           "b2-s184-x", "a-s1-x", "a99999999999999999999-s1-x", "a1000000000-s1-x",
                           "a18446744073709551615-s1-x", "a1-s281474976710656-x", "a2-s184-x.tmp"}) {
    EXPECT_EQ(parse_folder_name(text), std::nullopt) << text;
  }
}

TEST(AttemptFileName, GoesThereAndBack) {
  EXPECT_EQ(parse_attempt_file_name(attempt_file_name(12)), 12u);
  for (const char* text :
       {"0.json", "01.json", "1.json~", ".1.json-x", "x.json", "1", "1000000000.json", "4294967295.json"})
    EXPECT_EQ(parse_attempt_file_name(text), std::nullopt) << text;
}

TEST(PieceKey, NamesRowsOnlyWhenATensorIsCut) {
  EXPECT_EQ(piece_key("w", 0, 5, 5), "w");
  EXPECT_EQ(piece_key("w", 0, 3, 5), "w[0:3]");
  EXPECT_EQ(piece_key("w", 0, 0, 0), "w");
  EXPECT_EQ(state_key(3, "sampler"), "state/3/sampler");
}

TEST(SafeFileName, NeverLeadsOutOfTheFolder) {
  EXPECT_TRUE(is_safe_file_name("rank-0.safetensors"));
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string("../x"), std::string("a/b"), std::string("/x"),
        std::string(".hidden"), std::string("a\0b", 3), std::string(256, 'a')}) {
    EXPECT_FALSE(is_safe_file_name(name)) << name;
  }
}

TEST(JobFolderName, RefusesWhatCannotBeAFolder) {
  EXPECT_EQ(job_folder_name("team-a", "digits").value(), "team-a.digits");
  EXPECT_FALSE(job_folder_name("", "digits"));
  EXPECT_FALSE(job_folder_name("team-a", "../digits"));
  EXPECT_FALSE(job_folder_name("team.a", "digits"));
  EXPECT_FALSE(job_folder_name(std::string(200, 'a'), std::string(100, 'b')));
}

}  // namespace
}  // namespace rekindle
