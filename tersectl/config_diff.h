// In which settings runs differ.
#ifndef TERSE_TERSECTL_CONFIG_DIFF_H_
#define TERSE_TERSECTL_CONFIG_DIFF_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace terse {

struct SettingDifference {
  std::string key;                             // "train.local_steps"
  std::vector<nlohmann::ordered_json> values;  // one for each run
};

// The keys of run files but `name`, which tells a run from others and sets nothing.
std::vector<std::string> ComparedKeys();

// Those of ComparedKeys of which not all `configs` have the same value, in the order of the keys. Each config is
// ToJson of a v1::RunConfig with all defaults filled in; one that lacks a key, as of another release, has null there.
std::vector<SettingDifference> DifferentSettings(const std::vector<nlohmann::ordered_json>& configs);

}  // namespace terse

#endif  // TERSE_TERSECTL_CONFIG_DIFF_H_
