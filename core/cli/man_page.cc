#include "core/cli/man_page.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "core/cli/command_tree.h"
#include "core/version.h"

namespace terse {
namespace {

// Text that troff prints as it is, also at the beginning of a line.
std::string Escaped(absl::string_view text) {
  return absl::StrCat("\\&", absl::StrReplaceAll(text, {{"\\", "\\e"}, {"-", "\\-"}, {"'", "\\(aq"}, {"`", "\\(ga"}}));
}

std::string ValueText(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return "";
  // A list of words may be broken between them.
  const std::string type = absl::StrReplaceAll(Escaped(option.get_type_name()), {{",", ",\\:"}});
  std::string text = absl::StrCat(" \\fI", type, "\\fR");
  if (!option.get_default_str().empty()) absl::StrAppend(&text, " [", Escaped(option.get_default_str()), "]");
  return text;
}

std::string OptionText(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : NamesOf(option)) names.push_back(absl::StrCat("\\fB", Escaped(name), "\\fR"));
  std::string text = absl::StrCat(".TP\n", absl::StrJoin(names, ", "), ValueText(option), "\n",
                                  Escaped(option.get_description()), "\n");
  if (!option.get_envname().empty()) {
    absl::StrAppend(&text, ".br\nEnvironment: \\fB", Escaped(option.get_envname()), "\\fR\n");
  }
  return text;
}

std::string PositionalText(const CLI::Option& option) {
  return absl::StrCat(".TP\n\\fI", Escaped(option.get_name(/*positional=*/true)), "\\fR\n",
                      Escaped(option.get_description()), "\n");
}

// The command's own; those of its parents stand once, at theirs.
std::string OwnOptions(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : app.get_options()) {
    if (option->nonpositional()) {
      if (option != app.get_help_ptr()) absl::StrAppend(&text, OptionText(*option));
    } else {
      absl::StrAppend(&text, PositionalText(*option));
    }
  }
  return text;
}

std::string Synopsis(const Command& command) {
  std::string text = absl::StrCat("\\fB", Escaped(command.path), "\\fR");
  if (!SubcommandsOf(*command.app).empty()) absl::StrAppend(&text, " \\fICOMMAND\\fR");
  for (const CLI::Option* option : command.app->get_options()) {
    if (option->nonpositional()) continue;
    absl::StrAppend(&text, " \\fI", Escaped(option->get_name(/*positional=*/true)), "\\fR");
  }
  return text;
}

std::string SynopsisOfProgram(const CLI::App& program) {
  if (!SubcommandsOf(program).empty()) {
    return absl::StrCat("\\fB", program.get_name(), "\\fR [\\fIOPTIONS\\fR] \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n");
  }
  // Options that must be given stand here by themselves.
  std::string text = absl::StrCat("\\fB", program.get_name(), "\\fR");
  for (const CLI::Option* option : program.get_options()) {
    if (!option->get_required()) continue;
    if (option->nonpositional()) {
      absl::StrAppend(&text, " \\fB", Escaped(NamesOf(*option).back()), "\\fR", ValueText(*option));
    } else {
      absl::StrAppend(&text, " \\fI", Escaped(option->get_name(/*positional=*/true)), "\\fR");
    }
  }
  return absl::StrCat(text, " [\\fIOPTIONS\\fR]\n");
}

std::string CommandsText(const CLI::App& program) {
  if (SubcommandsOf(program).empty()) return "";
  std::string text = ".SH COMMANDS\n";
  for (const Command& command : CommandsOf(program)) {
    if (command.path.empty()) continue;
    absl::StrAppend(&text, ".SS ", Synopsis(command), "\n", Escaped(command.app->get_description()), ".\n",
                    OwnOptions(*command.app));
  }
  return text;
}

}  // namespace

std::string ManPage(const CLI::App& program, int section) {
  const std::string& name = program.get_name();
  // One line, and no sentence: what `whatis` shows. Lines are not justified, because long lists of words stand in them.
  const std::string description(absl::StripSuffix(program.get_description(), "."));
  std::string text = absl::StrCat(".TH ", absl::StrReplaceAll(absl::AsciiStrToUpper(name), {{"-", "\\-"}}), " ",
                                  section, " \"\" \"Terse ", kVersion, "\" \"Terse\"\n.ad l\n.SH NAME\n",
                                  absl::StrReplaceAll(name, {{"-", "\\-"}}), " \\- ", Escaped(description),
                                  "\n.SH SYNOPSIS\n", SynopsisOfProgram(program), ".SH OPTIONS\n");
  if (!SubcommandsOf(program).empty()) {
    absl::StrAppend(&text, "Every command takes these, before or after its name.\n");
  }
  absl::StrAppend(&text, OwnOptions(program), CommandsText(program));
  if (!program.get_footer().empty()) absl::StrAppend(&text, ".SH EXIT STATUS\n", Escaped(program.get_footer()), "\n");
  return text;
}

}  // namespace terse
