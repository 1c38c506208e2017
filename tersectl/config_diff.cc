#include "tersectl/config_diff.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "proto/run_config_reference.h"

namespace terse {
namespace {

using Json = nlohmann::ordered_json;

Json ValueAt(const Json& config, const std::string& key) {
  const Json::json_pointer place(absl::StrCat("/", absl::StrReplaceAll(key, {{".", "/"}})));
  return config.contains(place) ? config.at(place) : Json();
}

}  // namespace

std::vector<std::string> ComparedKeys() {
  std::vector<std::string> keys;
  for (RunConfigKey& key : RunConfigKeys()) {
    if (key.key != "name") keys.push_back(std::move(key.key));
  }
  return keys;
}

std::vector<SettingDifference> DifferentSettings(const std::vector<Json>& configs) {
  std::vector<SettingDifference> differences;
  for (std::string& key : ComparedKeys()) {
    SettingDifference row;
    for (const Json& config : configs) row.values.push_back(ValueAt(config, key));
    const auto is_other = [&row](const Json& value) { return value != row.values.front(); };
    if (std::none_of(row.values.begin(), row.values.end(), is_other)) continue;
    row.key = std::move(key);
    differences.push_back(std::move(row));
  }
  return differences;
}

}  // namespace terse
