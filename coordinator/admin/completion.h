// Completion for shells, made of the command line itself: what the parser knows is what is completed.
#ifndef TERSE_COORDINATOR_ADMIN_COMPLETION_H_
#define TERSE_COORDINATOR_ADMIN_COMPLETION_H_

#include <CLI/CLI.hpp>
#include <string>

namespace terse {

// A script that `bash` sources: it completes commands, options and, where nothing else is meant, files.
std::string BashCompletion(const CLI::App& app);
// The same for zsh, which runs bash's with its own bashcompinit.
std::string ZshCompletion(const CLI::App& app);

}  // namespace terse

#endif  // TERSE_COORDINATOR_ADMIN_COMPLETION_H_
