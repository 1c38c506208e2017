// The only source whose compilation knows folders: every other object is the same in every clone, and comes from the
// compiler's cache.
#include "tests/testing/paths.h"

namespace terse {

std::string InSource(const std::string& path) { return TERSE_SOURCE "/" + path; }
std::string InBuild(const std::string& path) { return TERSE_BUILD "/" + path; }
std::string Program(const std::string& name) { return InBuild("bin/" + name); }

}  // namespace terse
