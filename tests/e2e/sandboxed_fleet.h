// Fleets whose clients train in the sandbox, and those that do not, for comparison.
#ifndef TERSE_TESTS_E2E_SANDBOXED_FLEET_H_
#define TERSE_TESTS_E2E_SANDBOXED_FLEET_H_

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/e2e/fleet_processes.h"

namespace terse {

// The bytes of the newest checkpoint of the coordinator's only run, once that has ended: clients may go before the last
// evaluation and checkpoint, with which a run ends.
inline std::string LastCheckpoint(const FleetProcesses& fleet) {
  EXPECT_TRUE(WaitUntil(
      [&] { return QueryNumber(fleet.database(), "SELECT count(*) FROM events WHERE kind = 'run_ended'") == 1; },
      absl::Seconds(120)));
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(fleet.run_state() + "/checkpoints")) {
    paths.push_back(entry.path());
  }
  EXPECT_FALSE(paths.empty());
  if (paths.empty()) return "";
  std::ifstream file(*std::max_element(paths.begin(), paths.end()), std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

}  // namespace terse

#endif  // TERSE_TESTS_E2E_SANDBOXED_FLEET_H_
