#include "core/closest_word.h"

#include <gtest/gtest.h>

namespace terse {
namespace {

const std::vector<std::string> kCommands = {"runs", "run", "status", "pause", "resume", "rounds", "watch"};

TEST(EditDistance, CountsEveryKindOfChangeOnce) {
  EXPECT_EQ(EditDistance("", ""), 0u);
  EXPECT_EQ(EditDistance("", "abc"), 3u);
  EXPECT_EQ(EditDistance("abc", ""), 3u);
  EXPECT_EQ(EditDistance("status", "status"), 0u);
  EXPECT_EQ(EditDistance("statsu", "status"), 1u) << "neighbours that were swapped";
  EXPECT_EQ(EditDistance("stats", "status"), 1u);
  EXPECT_EQ(EditDistance("statuss", "status"), 1u);
  EXPECT_EQ(EditDistance("stotus", "status"), 1u);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3u);
  EXPECT_EQ(EditDistance("ca", "abc"), 3u) << "no part is changed twice";
}

TEST(ClosestWord, IsAThirdOfTheWordAwayAtMost) {
  EXPECT_EQ(ClosestWord("statsu", kCommands), "status");
  EXPECT_EQ(ClosestWord("stauts", kCommands), "status");
  EXPECT_EQ(ClosestWord("ruond", kCommands), "") << "two changes of five letters";
  EXPECT_EQ(ClosestWord("roudns", kCommands), "rounds");
  EXPECT_EQ(ClosestWord("rum", kCommands), "run");
  EXPECT_EQ(ClosestWord("rn", kCommands), "") << "two letters are like too much";
  EXPECT_EQ(ClosestWord("frobnicate", kCommands), "");
  EXPECT_EQ(ClosestWord("", kCommands), "");
  EXPECT_EQ(ClosestWord("status", {}), "");
}

TEST(ClosestWord, TakesTheFirstOfThoseThatAreAsClose) {
  EXPECT_EQ(ClosestWord("abcx", {"abcd", "abce"}), "abcd");
  EXPECT_EQ(ClosestWord("abcdex", {"abcdyy", "abcdef"}), "abcdef") << "and the closer one before it";
}

TEST(ClosestWord, KnowsInitials) {
  EXPECT_EQ(ClosestWord("lr", {"local_steps", "learning_rate", "loss"}), "learning_rate");
  EXPECT_EQ(ClosestWord("lr", {"lz", "l", "layers"}), "");
  EXPECT_TRUE(IsInitialsOf("lr", "learning_rate"));
  EXPECT_FALSE(IsInitialsOf("sl", "set-aside-limit"));
  EXPECT_TRUE(IsInitialsOf("sal", "set-aside-limit"));
  EXPECT_FALSE(IsInitialsOf("l", "loss")) << "one word has no initials";
  EXPECT_FALSE(IsInitialsOf("", "_"));
}

TEST(ClosestWord, KnowsBeginnings) {
  EXPECT_EQ(ClosestWord("run", {"state", "runway", "run-file"}), "run-file");
  EXPECT_EQ(ClosestWord("run", {"run-file", "ruin"}), "ruin") << "one letter away is closer";
  EXPECT_EQ(ClosestWord("run", {"runway"}), "");
  EXPECT_EQ(ClosestWord("", {"-file"}), "");
}

TEST(DidYouMean, AsksOrSaysNothing) {
  EXPECT_EQ(DidYouMean("statsu", kCommands), "did you mean 'status'? ");
  EXPECT_EQ(DidYouMean("frobnicate", kCommands), "");
}

}  // namespace
}  // namespace terse
