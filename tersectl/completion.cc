#include "tersectl/completion.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "core/cli/command_tree.h"
#include "tersectl/list_query.h"

namespace terse {
namespace {

constexpr int kMostPlaces = 8;

std::string FunctionName(const CLI::App& app) { return absl::StrCat("_", app.get_name()); }

// How the scripts are told what may stand in an option's or a positional's place: "a,b,c"; "+a,b,c" for several of
// these words, with commas between them; "@runs" for the names of the coordinator's runs, "@commands" for the program's
// commands; "-" where files are offered.
std::string PlaceText(const CLI::Option& option, const CLI::App& command) {
  const std::string type = option.get_type_name();
  if (type == kColumnType || type == kConditionType) {
    return std::string(absl::StripPrefix(PlaceText(*command.get_option("--columns"), command), "+"));
  }
  if (type == kRunType) return "@runs";
  if (option.get_name(/*positional=*/true) == "COMMAND") return "@commands";
  const std::vector<std::string> values = AllowedValues(option);
  if (values.empty()) return "-";
  const bool takes_several = absl::StartsWith(type, kWordsType);
  return absl::StrCat(takes_several ? "+" : "", absl::StrJoin(values, ","));
}

// One branch for each command: the words that may follow it, its options that take a value, those of them whose values
// are known, and its positionals.
std::string Branches(const CLI::App& app) {
  std::string text;
  for (const Command& command : CommandsOf(app)) {
    std::vector<std::string> words, with_value, known, places;
    for (const CLI::App* sub : SubcommandsOf(*command.app)) words.push_back(sub->get_name());
    for (const CLI::Option* option : OptionsOf(command)) {
      const std::string place = PlaceText(*option, *command.app);
      for (const std::string& name : NamesOf(*option)) {
        words.push_back(name);
        if (option->get_items_expected_max() > 0) with_value.push_back(name);
        if (option->get_items_expected_max() > 0 && place != "-") known.push_back(absl::StrCat(name, "=", place));
      }
    }
    for (const CLI::Option* option : command.app->get_options()) {
      if (option->nonpositional()) continue;
      // One that takes many words has as many places; nobody types more.
      const int words_taken = std::min(std::max(1, option->get_expected_max()), kMostPlaces);
      places.insert(places.end(), words_taken, PlaceText(*option, *command.app));
    }
    absl::StrAppend(&text, "    '", command.path, "') words='", absl::StrJoin(words, " "), "' valued=' ",
                    absl::StrJoin(with_value, " "), " ' known='", absl::StrJoin(known, " "), "' places=(",
                    absl::StrJoin(places, " "), ") ;;\n");
  }
  return text;
}

// A coordinator's names are taken for words only when they have no character that a shell obeys.
// clang-format off
constexpr char kScript[] = R"sh(@_runs() {
  local -a typed=(${COMP_LINE-}) connection=()
  local -i i
  local name
  for ((i = 1; i < ${#typed[@]}; ++i)); do
    case ${typed[i]} in
      --admin | --tls | --server-name) connection+=("${typed[i]}" "${typed[i + 1]-}") ;;
      --admin=* | --tls=* | --server-name=* | --insecure) connection+=("${typed[i]}") ;;
    esac
  done
  while IFS= read -r name; do
    [[ $name =~ ^[A-Za-z0-9._-]+$ ]] && printf '%s\n' "$name"
  done < <(@ "${connection[@]}" --timeout 1 runs --names 2> /dev/null)
  return 0
}
# The words of a place.
@_place() {
  local word words='' valued='' known='' before=''
  local -a places=()
  case $1 in
    @runs) @_runs ;;
    @commands)
      @_words ''
      for word in $words; do
        [[ $word == -* ]] || printf '%s\n' "$word"
      done
      ;;
    -) ;;
    +*)
      [[ $current == *,* ]] && before=${current%,*},
      for word in ${1//[+,]/ }; do
        printf '%s\n' "$before$word"
      done
      ;;
    *) printf '%s\n' ${1//,/ } ;;
  esac
}
@() {
  local word path='' words='' valued='' known='' option='' current=${COMP_WORDS[COMP_CWORD]} before
  local -a places=()
  local -i i position=0
  COMPREPLY=()
  @_words ''
  for ((i = 1; i < COMP_CWORD; ++i)); do
    word=${COMP_WORDS[i]} before=${COMP_WORDS[i - 1]}
    # The value of an option is no command. Bash takes the parts of HOST:PORT and of --option=value for words.
    [[ $valued == *" $before "* || $word == [:=] || $before == [:=] ]] && continue
    if @_words "${path:+$path }$word"; then
      path=${path:+$path }$word position=0
    elif [[ $word != -* ]]; then
      position+=1
    fi
  done
  before=${COMP_WORDS[COMP_CWORD - 1]}
  [[ $before == = ]] && before=${COMP_WORDS[COMP_CWORD - 2]}
  [[ $current == = ]] && current=''
  if [[ $valued == *" $before "* ]]; then
    words=''
    for option in $known; do
      [[ $option == "$before="* ]] && words=$(@_place "${option#*=}")
    done
  elif [[ $current != -* && position -lt ${#places[@]} ]]; then
    words+=" $(@_place "${places[position]}")"
  fi
  for word in $words; do
    [[ $word == "$current"* ]] && COMPREPLY+=("$word")
  done
  return 0
}
)sh";
// clang-format on

}  // namespace

std::string BashCompletion(const CLI::App& app) {
  const std::string& name = app.get_name();
  const std::string function = FunctionName(app);
  return absl::StrCat("# ", name, " completion bash; source it, or install it as share/bash-completion/completions/",
                      name, "\n", function, "_words() {\n  case \"$1\" in\n", Branches(app),
                      "    *) return 1 ;;\n  esac\n}\n",
                      absl::StrReplaceAll(kScript, {{"@_", absl::StrCat(function, "_")},
                                                    {"\n@() {", absl::StrCat("\n", function, "() {")},
                                                    {"< <(@ ", absl::StrCat("< <(", name, " ")}}),
                      "complete -o default -F ", function, " ", name, "\n");
}

std::string ZshCompletion(const CLI::App& app) {
  return absl::StrCat("#compdef ", app.get_name(), "\n# ", app.get_name(),
                      " completion zsh; source it after compinit\nautoload -U +X bashcompinit && bashcompinit\n",
                      BashCompletion(app));
}

}  // namespace terse
