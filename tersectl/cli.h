// The command line of tersectl; docs/CLI.md is its manual.
#ifndef TERSE_TERSECTL_CLI_H_
#define TERSE_TERSECTL_CLI_H_

#include "tersectl/commands.h"
#include "tersectl/exit_codes.h"

namespace terse {

// Parses, runs one command and returns the exit code. Errors go to `terminal.err`.
int RunTersectl(int argc, const char* const* argv, const Terminal& terminal);

}  // namespace terse

#endif  // TERSE_TERSECTL_CLI_H_
