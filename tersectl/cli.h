// The command line of tersectl; docs/CLI.md is its manual.
#ifndef TERSE_TERSECTL_CLI_H_
#define TERSE_TERSECTL_CLI_H_

#include "tersectl/commands.h"

namespace terse {

// Exit codes.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;       // the coordinator refused, a file could not be written, runs differ, ...
inline constexpr int kExitUsage = 2;        // the command line is wrong; `run diff`: what it names cannot be read
inline constexpr int kExitUnreachable = 3;  // no coordinator answers at the address
inline constexpr int kExitInvalidRun = 4;   // `validate`, `run create`, `run diff`: the run file breaks a rule

// Parses, runs one command and returns the exit code. Errors go to `terminal.err`.
int RunTersectl(int argc, const char* const* argv, const Terminal& terminal);

}  // namespace terse

#endif  // TERSE_TERSECTL_CLI_H_
