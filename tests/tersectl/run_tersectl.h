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

// `columns`: the width of the terminal; 0: the output is no terminal.
inline CtlOutcome Invoke(const std::vector<std::string>& arguments, size_t columns = 0) {
  std::vector<const char*> argv = {"tersectl"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  std::ostringstream out, err;
  Terminal terminal = {&out, &err};
  terminal.columns = columns;
  const int code = RunTersectl(static_cast<int>(argv.size()), argv.data(), terminal);
  return {code, out.str(), err.str()};
}

// The same against the coordinator at `address`, which the options begin with: so that `arguments` may end in whatever
// a test wants.
inline CtlOutcome InvokeAt(const std::string& address, std::vector<std::string> arguments, size_t columns = 0) {
  arguments.insert(arguments.begin(), {"--admin", address});
  return Invoke(arguments, columns);
}

inline std::string Slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

}  // namespace terse

#endif  // TERSE_TESTS_TERSECTL_RUN_TERSECTL_H_
