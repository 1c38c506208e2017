// tersectl in the test's own process.
#ifndef TERSE_TESTS_TERSECTL_RUN_TERSECTL_H_
#define TERSE_TESTS_TERSECTL_RUN_TERSECTL_H_

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "tersectl/cli.h"

namespace terse {

struct CtlOutcome {
  int code = 0;
  std::string out, err;
};

inline CtlOutcome Invoke(const std::vector<std::string>& arguments) {
  std::vector<const char*> argv = {"tersectl"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  std::ostringstream out, err;
  const int code = RunTersectl(static_cast<int>(argv.size()), argv.data(), {&out, &err, false});
  return {code, out.str(), err.str()};
}

inline std::string Slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

}  // namespace terse

#endif  // TERSE_TESTS_TERSECTL_RUN_TERSECTL_H_
