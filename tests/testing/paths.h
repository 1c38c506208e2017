// Where the tree that a test belongs to is, and what was built of it.
#ifndef TERSE_TESTS_TESTING_PATHS_H_
#define TERSE_TESTS_TESTING_PATHS_H_

#include <string>

namespace terse {

// Returns the absolute path of `path`, relative to the top of the sources: "tests/golden/aggregation.txt".
std::string InSource(const std::string& path);

// Returns the absolute path of `path`, relative to the folder of this build.
std::string InBuild(const std::string& path);

// Returns the absolute path of a program of this build: "tersectl".
std::string Program(const std::string& name);

}  // namespace terse

#endif  // TERSE_TESTS_TESTING_PATHS_H_
