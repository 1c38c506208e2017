// A data directory of one test and the settings that it is read with.
#ifndef TERSE_TESTS_LEARNING_DATASET_FIXTURE_H_
#define TERSE_TESTS_LEARNING_DATASET_FIXTURE_H_

#include <string>

#include "gtest/gtest.h"
#include "learning/datasets/dataset_table.h"
#include "tests/learning/temp_folder.h"

namespace terse {

class DatasetFixture : public ::testing::Test {
 protected:
  explicit DatasetFixture(const std::string& name) { spec_.name = name; }

  absl::StatusOr<Dataset> Load() const { return LoadDataset(spec_, folder_.path()); }
  // The message of a refusal; fails the test unless it is INVALID_ARGUMENT.
  std::string Refusal() const {
    const absl::Status status = Load().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  }

  TempFolder folder_;
  DataSpec spec_;
};

}  // namespace terse

#endif  // TERSE_TESTS_LEARNING_DATASET_FIXTURE_H_
