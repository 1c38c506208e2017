#include "proto/run_config_reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/testing/paths.h"

namespace terse {
namespace {

using ::testing::HasSubstr;

TEST(RunConfigReference, ListsEveryKey) {
  const std::string text = RunConfigReference(RunConfigKeys());
  EXPECT_THAT(text, HasSubstr("train.local_steps                  integer          required        1 to 1000000\n"));
  EXPECT_THAT(text,
              HasSubstr("codec.mean_precision               string           'fp32'          'fp32' or 'bf16'\n"));
  EXPECT_THAT(text,
              HasSubstr("train.optimizer.epsilon            number           1e-8            above 0, at most 1\n"));
  EXPECT_THAT(text, HasSubstr("clients.allow                      array of strings []\n"));
  for (const char* key :
       {"checkpoints.keep", "rounds.selection", "rounds.fraction", "rounds.over_selection", "rounds.grace_seconds",
        "rounds.weighting", "clients.set_aside_after", "clients.set_aside_seconds", "limits.seconds", "limits.accuracy",
        "limits.loss", "limits.iterations"}) {
    EXPECT_THAT(text, HasSubstr(absl::StrCat("\n", key, " "))) << key;
  }
}

TEST(RunConfigReference, EveryKeyHasADescription) {
  for (const RunConfigKey& key : RunConfigKeys()) EXPECT_NE(key.description, "") << key.key;
}

TEST(RunConfigReference, FindsAKeyOrATable) {
  EXPECT_EQ(FindRunConfigKeys("train.optimizer.beta1")->size(), 1u);
  EXPECT_EQ(FindRunConfigKeys("[checkpoints]")->size(), 2u);
  EXPECT_GT(FindRunConfigKeys("train")->size(), FindRunConfigKeys("train.optimizer")->size());
  const absl::Status unknown = FindRunConfigKeys("trai").status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("tables: model, data, train, codec"));
}

// Every key stands in a document, with the words of the proto file.
TEST(RunConfigReference, TheDocumentIsUpToDate) {
  std::ifstream file(InSource("docs/RUN_FILE.md"));
  const std::string document{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  EXPECT_TRUE(document == RunConfigMarkdown())
      << "docs/RUN_FILE.md is old; write it with: tersectl config --markdown > docs/RUN_FILE.md";
  for (const RunConfigKey& key : RunConfigKeys()) EXPECT_THAT(document, HasSubstr(absl::StrCat("| `", key.key, "` |")));
}

}  // namespace
}  // namespace terse
