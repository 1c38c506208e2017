// The part of tersectl's command line that is about whole runs.
#ifndef TERSE_TERSECTL_RUN_GROUP_H_
#define TERSE_TERSECTL_RUN_GROUP_H_

#include <CLI/CLI.hpp>

#include "tersectl/invocation.h"

namespace terse {

// Adds the group `run`, and beside it those of its commands that are spelled without it, too. `program` has the option
// --run; both must outlive the parsing.
void AddRuns(CLI::App& program, Invocation* invocation);

}  // namespace terse

#endif  // TERSE_TERSECTL_RUN_GROUP_H_
