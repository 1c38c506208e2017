#include "coordinator/admin/completion.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coordinator/admin/command_tree.h"

namespace terse {
namespace {

std::string FunctionName(const CLI::App& app) { return absl::StrCat("_", app.get_name()); }

// One branch for each command: the words that may follow it, and its options that take a value, after which a file is
// offered.
std::string Branches(const CLI::App& app) {
  std::string text;
  for (const Command& command : CommandsOf(app)) {
    std::vector<std::string> words, with_value;
    for (const CLI::App* sub : SubcommandsOf(*command.app)) words.push_back(sub->get_name());
    for (const CLI::Option* option : OptionsOf(command)) {
      for (const std::string& name : NamesOf(*option)) {
        words.push_back(name);
        if (option->get_items_expected_max() > 0) with_value.push_back(name);
      }
    }
    absl::StrAppend(&text, "    '", command.path, "') words='", absl::StrJoin(words, " "), "' valued=' ",
                    absl::StrJoin(with_value, " "), " ' ;;\n");
  }
  return text;
}

}  // namespace

std::string BashCompletion(const CLI::App& app) {
  const std::string function = FunctionName(app);
  return absl::StrCat("# ", app.get_name(), " completion bash; source it, or install it as ",
                      "share/bash-completion/completions/", app.get_name(), "\n", function,
                      "_words() {\n  case \"$1\" in\n", Branches(app), "    *) return 1 ;;\n  esac\n}\n", function,
                      R"(() {
  local word path='' words='' valued=''
  local -i i
  COMPREPLY=()
  )",
                      function, R"(_words ''
  for ((i = 1; i < COMP_CWORD; ++i)); do
    word=${COMP_WORDS[i]}
    # The value of an option is no command.
    [[ $valued == *" ${COMP_WORDS[i - 1]} "* ]] && continue
    )",
                      function, R"(_words "${path:+$path }$word" && path="${path:+$path }$word"
  done
  [[ $valued == *" ${COMP_WORDS[COMP_CWORD - 1]} "* ]] && return
  while IFS= read -r word; do
    COMPREPLY+=("$word")
  done < <(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}")
}
complete -o default -F )",
                      function, " ", app.get_name(), "\n");
}

std::string ZshCompletion(const CLI::App& app) {
  return absl::StrCat("#compdef ", app.get_name(), "\n# ", app.get_name(),
                      " completion zsh; source it after compinit\nautoload -U +X bashcompinit && bashcompinit\n",
                      BashCompletion(app));
}

}  // namespace terse
