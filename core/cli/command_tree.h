// The commands and options of a command line, for what is made of them: completion, the manual page and suggestions.
#ifndef TERSE_CORE_CLI_COMMAND_TREE_H_
#define TERSE_CORE_CLI_COMMAND_TREE_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace terse {

// Pointers live as long as the program's CLI::App.
struct Command {
  std::string path;                      // "pki issue"; empty: the program itself
  std::vector<const CLI::App*> parents;  // from the program on
  const CLI::App* app = nullptr;
};

// The program and every command below it, each before its own subcommands.
std::vector<Command> CommandsOf(const CLI::App& program);
std::vector<const CLI::App*> SubcommandsOf(const CLI::App& app);
// The command's own options that have a name, then those of its parents, which may be given after it too. Without
// --help of a parent.
std::vector<const CLI::Option*> OptionsOf(const Command& command);
// "-f", "--follow".
std::vector<std::string> NamesOf(const CLI::Option& option);
// The values that OneOf (core/cli/checks.h) allows; none where anything may stand.
std::vector<std::string> AllowedValues(const CLI::Option& option);

}  // namespace terse

#endif  // TERSE_CORE_CLI_COMMAND_TREE_H_
