#include "core/cli/command_tree.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace terse {
namespace {

void Visit(const Command& command, std::vector<Command>* all) {
  all->push_back(command);
  for (const CLI::App* sub : SubcommandsOf(*command.app)) {
    Command below{absl::StrCat(command.path, command.path.empty() ? "" : " ", sub->get_name()), command.parents, sub};
    below.parents.push_back(command.app);
    Visit(below, all);
  }
}

bool HasName(const CLI::Option* option) { return option->nonpositional(); }

}  // namespace

std::vector<const CLI::App*> SubcommandsOf(const CLI::App& app) { return app.get_subcommands({}); }

std::vector<Command> CommandsOf(const CLI::App& program) {
  std::vector<Command> all;
  Visit({"", {}, &program}, &all);
  return all;
}

std::vector<const CLI::Option*> OptionsOf(const Command& command) {
  std::vector<const CLI::Option*> options = command.app->get_options(HasName);
  for (auto parent = command.parents.rbegin(); parent != command.parents.rend(); ++parent) {
    for (const CLI::Option* option : (*parent)->get_options(HasName)) {
      const bool of_program_alone = option == (*parent)->get_help_ptr() || option == (*parent)->get_version_ptr();
      const auto has_it = [&](const CLI::Option* other) { return other->get_lnames() == option->get_lnames(); };
      if (!of_program_alone && std::none_of(options.begin(), options.end(), has_it)) options.push_back(option);
    }
  }
  return options;
}

std::vector<std::string> NamesOf(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back(absl::StrCat("-", name));
  for (const std::string& name : option.get_lnames()) names.push_back(absl::StrCat("--", name));
  return names;
}

std::vector<std::string> AllowedValues(const CLI::Option& option) {
  // CLI11 keeps of a check only its function and this text.
  const std::string type = option.get_type_name();
  const size_t begin = type.find('{'), end = type.rfind('}');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return {};
  return absl::StrSplit(type.substr(begin + 1, end - begin - 1), ',');
}

}  // namespace terse
