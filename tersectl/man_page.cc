#include "tersectl/man_page.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
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
  std::string text = absl::StrCat(" \\fI", Escaped(option.get_type_name()), "\\fR");
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

}  // namespace

std::string ManPage(const CLI::App& app) {
  const std::string& name = app.get_name();
  std::string text =
      absl::StrCat(".TH ", absl::AsciiStrToUpper(name), " 1 \"\" \"Terse ", kVersion, "\" \"Terse\"\n", ".SH NAME\n",
                   name, " \\- ", Escaped(app.get_description()), "\n", ".SH SYNOPSIS\n\\fB", name,
                   "\\fR [\\fIOPTIONS\\fR] \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n", ".SH OPTIONS\n",
                   "Every command takes these, before or after its name.\n", OwnOptions(app), ".SH COMMANDS\n");
  for (const Command& command : CommandsOf(app)) {
    if (command.path.empty()) continue;
    absl::StrAppend(&text, ".SS ", Synopsis(command), "\n", Escaped(command.app->get_description()), ".\n",
                    OwnOptions(*command.app));
  }
  return absl::StrCat(text, ".SH EXIT STATUS\n", Escaped(app.get_footer()), "\n");
}

}  // namespace terse
