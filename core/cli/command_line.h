// How every program reads its command line and says what is wrong with it.
#ifndef TERSE_CORE_CLI_COMMAND_LINE_H_
#define TERSE_CORE_CLI_COMMAND_LINE_H_

#include <CLI/CLI.hpp>
#include <ostream>

#include "absl/types/optional.h"

namespace terse {

// The exit code of every program whose command line is wrong.
inline constexpr int kExitWrongUsage = 2;

// Parses argv into what `program`, which has a name, was told of. Returns the exit code when the program should end:
//   0                 --help, --version, --man and `help` were answered on `out`
//   kExitWrongUsage   the command line is wrong; `err` has one line "PROGRAM: reason; remedy". A program or group that
//                     needs a command and got no word at all shows its help there instead
// nullopt: the program goes on.
absl::optional<int> ReadCommandLine(CLI::App& program, int argc, const char* const* argv, std::ostream& out,
                                    std::ostream& err);
// On standard output and standard error.
absl::optional<int> ReadCommandLine(CLI::App& program, int argc, const char* const* argv);

// Adds the flag --man, which ReadCommandLine answers with the manual page of that section (core/cli/man_page.h), to a
// program without commands. Last: the page has the options in the order in which they were added.
void AddManFlag(CLI::App& program, int section);

// Adds the command `help [COMMAND...]`, which ReadCommandLine answers, to a program with commands.
void AddHelpCommand(CLI::App& program);

}  // namespace terse

#endif  // TERSE_CORE_CLI_COMMAND_LINE_H_
