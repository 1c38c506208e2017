// Completion for shells, made of the command line itself: what the parser knows is what is completed.
#ifndef TERSE_TERSECTL_COMPLETION_H_
#define TERSE_TERSECTL_COMPLETION_H_

#include <CLI/CLI.hpp>
#include <string>

namespace terse {

// The type of options and positionals that are the name of a run (CLI::Option::type_name).
inline constexpr char kRunType[] = "RUN";

// A script that `bash` sources: it completes commands, options, the words that OneOf allows, names of runs and, where
// nothing else is meant, files. It asks the program itself for the runs, with the address and the TLS folder that were
// typed, and offers none when no coordinator answers within a second.
std::string BashCompletion(const CLI::App& app);
// The same for zsh, which runs bash's with its own bashcompinit.
std::string ZshCompletion(const CLI::App& app);

}  // namespace terse

#endif  // TERSE_TERSECTL_COMPLETION_H_
