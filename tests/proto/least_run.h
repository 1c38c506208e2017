// The smallest run file, for tests of what one more setting does.
#ifndef TERSE_TESTS_PROTO_LEAST_RUN_H_
#define TERSE_TESTS_PROTO_LEAST_RUN_H_

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "proto/run_config_loader.h"

namespace terse {

// The least that a run file may say. Line numbers below count in it.
inline constexpr char kLeast[] =
    "name = 'r'\n"           // 1
    "[train]\n"              // 2
    "local_steps = 10\n"     // 3
    "[train.optimizer]\n"    // 4
    "learning_rate = 0.5\n"  // 5
    "[codec]\n"              // 6
    "name = 'sbc'\n"         // 7
    "[rounds]\n"             // 8
    "count = 3\n";           // 9

inline v1::RunConfig Least() { return *ParseRunConfig(kLeast, "x.toml"); }

// The least file with `from` replaced; the message of the error that this gives.
inline std::string ErrorOf(absl::string_view from, absl::string_view to) {
  const std::string text = absl::StrReplaceAll(kLeast, {{from, to}});
  EXPECT_NE(text, kLeast);
  const auto config = ParseRunConfig(text, "x.toml");
  EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument) << config.status();
  return std::string(config.status().message());
}

}  // namespace terse

#endif  // TERSE_TESTS_PROTO_LEAST_RUN_H_
