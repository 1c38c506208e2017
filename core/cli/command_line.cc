#include "core/cli/command_line.h"

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/cli/command_tree.h"
#include "core/cli/man_page.h"
#include "core/closest_word.h"

namespace terse {
namespace {

// Thrown through CLI11's parser by the command `help`.
struct HelpWanted {
  std::vector<std::string> words;
};

// Likewise, by the flag --man.
struct ManWanted {
  int section;
};

std::string FullName(const CLI::App& program, const Command& command) {
  return absl::StrCat(program.get_name(), command.path.empty() ? "" : " ", command.path);
}

// The command below `command` that has this name; nullptr when there is none.
const CLI::App* FindBelow(const Command& command, const std::string& name) {
  for (const CLI::App* sub : SubcommandsOf(*command.app)) {
    if (sub->get_name() == name) return sub;
  }
  return nullptr;
}

void Enter(const CLI::App* sub, Command* command) {
  command->parents.push_back(command->app);
  absl::StrAppend(&command->path, command->path.empty() ? "" : " ", sub->get_name());
  command->app = sub;
}

// The command that was parsed, as far as the parser came.
Command ChosenCommand(const CLI::App& program) {
  Command command{"", {}, &program};
  while (true) {
    const std::vector<CLI::App*> below = command.app->get_subcommands();
    const auto chosen =
        std::find_if(below.begin(), below.end(), [](const CLI::App* sub) { return !sub->get_name().empty(); });
    if (chosen == below.end()) return command;
    Enter(*chosen, &command);
  }
}

std::string NoCommand(const Command& command, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* sub : SubcommandsOf(*command.app)) names.push_back(sub->get_name());
  return absl::StrCat("there is no command '", command.path, command.path.empty() ? "" : " ", word, "'; ",
                      DidYouMean(word, names));
}

std::string NoOption(const Command& command, absl::string_view word) {
  const absl::string_view name = word.substr(0, word.find('='));
  std::vector<std::string> names;
  for (const CLI::Option* option : OptionsOf(command)) {
    for (const std::string& known : option->get_lnames()) names.push_back(known);
  }
  // Dashes say nothing about likeness.
  const std::string closest = ClosestWord(absl::StripPrefix(name, "--"), names);
  return absl::StrCat("there is no option ", name, "; ",
                      closest.empty() ? "" : absl::StrCat("did you mean '--", closest, "'? "));
}

std::string UnknownWord(const CLI::App& program, const Command& command, const std::string& word) {
  if (word.size() > 1 && word[0] == '-') return NoOption(command, word);
  if (!SubcommandsOf(*command.app).empty()) return NoCommand(command, word);
  return absl::StrCat("`", FullName(program, command), "` takes no further word, and got '", word, "'; ");
}

// The error of CLI11 in words, without a remedy.
std::string ReasonOf(const CLI::ParseError& error) {
  const std::string text = error.what();
  const std::string name = text.substr(0, text.find(": "));
  absl::string_view rest = text;
  if (error.get_name() == "ArgumentMismatch" && absl::StrContains(text, "missing")) {
    return absl::StrCat(name, " needs a value");
  }
  if (error.get_name() == "ArgumentMismatch" && absl::StrContains(text, "At Most")) {
    return absl::StrCat(name, " is given too often");
  }
  if (error.get_name() == "ArgumentMismatch" && absl::ConsumeSuffix(&rest, " was given a disallowed flag override")) {
    return absl::StrCat(rest, " takes no value");
  }
  if (error.get_name() == "ConversionError" && absl::ConsumePrefix(&rest, "Could not convert: ")) {
    return absl::StrCat("the value cannot be used: ", rest);
  }
  return text;
}

// A check's own words have their remedy already.
std::string UsageError(const CLI::ParseError& error, const CLI::App& program) {
  if (error.get_name() == "ValidationError") return error.what();
  const Command command = ChosenCommand(program);
  const std::string see = absl::StrCat("see `", FullName(program, command), " --help`");
  for (const std::string& word : program.remaining(/*recurse=*/true)) {
    if (word != "--") return absl::StrCat(UnknownWord(program, command, word), see);
  }
  return absl::StrCat(ReasonOf(error), "; ", see);
}

bool NeedsCommand(const Command& command) {
  return command.app->get_require_subcommand_min() > 0 && command.app->get_subcommands().empty();
}

std::string HelpText(const CLI::App& program, const Command& command) {
  return command.app->get_formatter()->make_help(command.app, FullName(program, command), CLI::AppFormatMode::Normal);
}

int PrintHelpOf(const CLI::App& program, const std::vector<std::string>& words, std::ostream& out, std::ostream& err) {
  Command command{"", {}, &program};
  for (const std::string& word : words) {
    const CLI::App* const sub = FindBelow(command, word);
    if (sub == nullptr) {
      err << program.get_name() << ": " << NoCommand(command, word) << "see `" << FullName(program, command)
          << " --help`\n";
      return kExitWrongUsage;
    }
    Enter(sub, &command);
  }
  out << HelpText(program, command);
  return 0;
}

int AnswerError(const CLI::ParseError& error, const CLI::App& program, std::ostream& out, std::ostream& err) {
  const bool is_success = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success);
  if (is_success) return program.exit(error, out, err);
  const Command command = ChosenCommand(program);
  if (error.get_name() == "RequiredError" && NeedsCommand(command) && program.remaining(/*recurse=*/true).empty()) {
    err << HelpText(program, command);
  } else {
    err << program.get_name() << ": " << UsageError(error, program) << "\n";
  }
  return kExitWrongUsage;
}

}  // namespace

absl::optional<int> ReadCommandLine(CLI::App& program, int argc, const char* const* argv, std::ostream& out,
                                    std::ostream& err) {
  try {
    program.parse(argc, argv);
  } catch (const HelpWanted& wanted) {
    return PrintHelpOf(program, wanted.words, out, err);
  } catch (const ManWanted& wanted) {
    out << ManPage(program, wanted.section);
    return 0;
  } catch (const CLI::ParseError& error) {
    return AnswerError(error, program, out, err);
  }
  return absl::nullopt;
}

absl::optional<int> ReadCommandLine(CLI::App& program, int argc, const char* const* argv) {
  return ReadCommandLine(program, argc, argv, std::cout, std::cerr);
}

void AddManFlag(CLI::App& program, int section) {
  program.add_flag_callback(
      "--man", [section] { throw ManWanted{section}; }, "print the manual page, for troff: `man -l` reads it");
}

void AddHelpCommand(CLI::App& program) {
  const auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* const help = program.add_subcommand("help", "How the program or one of its commands is used");
  help->add_option("COMMAND", *words, "The command, as in `help pki issue`");
  help->callback([words] { throw HelpWanted{*words}; });
}

}  // namespace terse
