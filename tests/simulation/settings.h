// Numbers that the environment may change: how long a randomised test searches.
#ifndef TERSE_TESTS_SIMULATION_SETTINGS_H_
#define TERSE_TESTS_SIMULATION_SETTINGS_H_

#include <cstdint>
#include <cstdlib>

#include "absl/strings/numbers.h"

namespace terse {

// The value of environment variable `name`, or `otherwise` when it is not set to a number.
inline int64_t SettingFromEnvironment(const char* name, int64_t otherwise) {
  int64_t value = 0;
  const char* text = std::getenv(name);
  return text != nullptr && absl::SimpleAtoi(text, &value) ? value : otherwise;
}

}  // namespace terse

#endif  // TERSE_TESTS_SIMULATION_SETTINGS_H_
