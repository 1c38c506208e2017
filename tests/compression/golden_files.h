// Helpers that the tests of golden files share.
#ifndef TERSE_TESTS_COMPRESSION_GOLDEN_FILES_H_
#define TERSE_TESTS_COMPRESSION_GOLDEN_FILES_H_

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <utility>

#include "absl/strings/str_split.h"
#include "core/run_config.h"

namespace terse {

inline std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// One setting of a codec line, such as "density=0.01".
inline void ReadSetting(const std::string& setting, CodecSpec* spec) {
  const std::pair<std::string, std::string> pair = absl::StrSplit(setting, absl::MaxSplits('=', 1));
  const std::map<std::string, std::function<void(const std::string&)>> readers = {
      {"name", [spec](const std::string& value) { spec->name = value; }},
      {"mean_precision", [spec](const std::string& value) { spec->mean_precision = value; }},
      {"counts", [spec](const std::string& value) { spec->counts = value; }},
      {"positions", [spec](const std::string& value) { spec->positions = value; }},
      {"grouping", [spec](const std::string& value) { spec->grouping = value; }},
      {"code", [spec](const std::string& value) { spec->code = value; }},
      {"density", [spec](const std::string& value) { spec->density = std::stod(value); }},
      {"threshold", [spec](const std::string& value) { spec->threshold = std::stod(value); }},
      {"samples", [spec](const std::string& value) { spec->samples = std::stod(value); }},
      {"clip", [spec](const std::string& value) { spec->clip = std::stod(value); }},
      {"bits", [spec](const std::string& value) { spec->bits = std::stoll(value); }},
      {"bucket", [spec](const std::string& value) { spec->bucket = std::stoll(value); }},
      {"merge_below", [spec](const std::string& value) { spec->merge_below = std::stoll(value); }},
  };
  const auto reader = readers.find(pair.first);
  ASSERT_NE(reader, readers.end()) << setting;
  reader->second(pair.second);
}

}  // namespace terse

#endif  // TERSE_TESTS_COMPRESSION_GOLDEN_FILES_H_
