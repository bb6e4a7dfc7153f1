// isomer completion: a script for a shell, made from the commands and options that the program has.
#include <array>
#include <iostream>
#include <map>

#include "cli/command.h"
#include "isomer/base/suggest.h"
#include "isomer/laws/law.h"
#include "isomer/mixers/preset.h"
#include "isomer/tasks/task.h"
#include "isomer/train/recipe.h"

namespace isomer::cli {

namespace {
/// What stands for an argument: a command's first word that is no option, or an option's value.
const std::map<std::string, std::string, std::less<>> kKinds{
    {"apply", "law"},     {"check", "law preset"}, {"show", "preset"},     {"tasks", "task"},       {"train", "recipe"},
    {"sweep", "recipe"},  {"eval", "folder"},      {"generate", "folder"}, {"logits", "folder"},    {"convert", "folder"},
    {"runs", "folder"},   {"completion", "shell"}, {"classify", "folder"}, {"tokenizer", "action"}, {"--law", "law"},
    {"--form", "form"},   {"--mixer", "preset"},   {"--task", "task"},     {"--split", "split"},    {"--out", "folder"},
    {"--from", "folder"}, {"--set", "key"},        {"--grid", "axis"},     {"export", "folder"},    {"--like", "folder"}};

template <class Range, class Name>
std::string joined(const Range& range, const Name& name) {
  std::string all;
  for (const auto& one : range) all += (all.empty() ? "" : " ") + std::string(name(one));
  return all;
}

std::string cases_of(const std::vector<std::pair<std::string, std::string>>& lines) {
  std::string text;
  for (const auto& [pattern, words] : lines)
    text.append("    ").append(pattern).append(") echo '").append(words).append("' ;;\n");
  return text;
}

std::string words_of_kinds() {
  std::string keys = "mixer= ";
  for (const std::string& key : recipe_keys()) keys += key + "= ";
  const auto name = [](const auto* one) { return one->name; };
  constexpr std::array kForms{Form::automatic, Form::reference, Form::step, Form::chunk, Form::parallel};
  return cases_of({{"law", joined(laws(), [](const Law* law) { return law->name(); })},
                   {"preset", joined(presets(), name)},
                   {"task", joined(tasks(), name)},
                   {"form", joined(kForms, [](Form form) { return name_of(form); })},
                   {"split", "train test validation"},
                   {"action", "train encode decode"},
                   {"shell", "bash zsh"},
                   {"key", keys.substr(sizeof "mixer=")},
                   {"axis", keys}});
}

// The parts between are filled in: commands, options, kinds, words. Words are split at '=' by bash, unless a shell says
// otherwise.
constexpr const char* kHead = R"(# Completion of isomer for bash and zsh.
#   bash, in ~/.bashrc:  source <(isomer completion bash)
#   zsh, in ~/.zshrc:    source <(isomer completion zsh)
)";

constexpr const char* kZsh = R"(autoload -U +X compinit bashcompinit
command -v compdef >/dev/null || compinit -i
bashcompinit
)";

constexpr const char* kBody = R"SH(
# Offers those of the words $1 that go on with $2. A list is completed after its last comma; $prefix stays in front.
_isomer_offer() {
  local before=$prefix
  case $2 in *,*) before=$prefix${2%,*}, ;; esac
  COMPREPLY+=($(compgen -P "$before" -W "$1" -- "${2##*,}"))
}

_isomer_files() {
  local IFS=$'\n'
  compopt -o filenames 2>/dev/null
  case $1 in
    folder) COMPREPLY+=($(compgen -P "$prefix" -d -- "$2")) ;;
    recipe)
      COMPREPLY+=($(compgen -f -X '!*.toml' -- "$2") $(compgen -d -- "$2"))
      [ -n "$2" ] || COMPREPLY+=($(compgen -f -X '!*.toml' -- recipes/)) ;;
    *) COMPREPLY+=($(compgen -P "$prefix" -f -- "$2")) ;;
  esac
}

_isomer_kinds() {
  local kind
  for kind in $1; do
    case $kind in
      folder | recipe | file) _isomer_files $kind "$2" ;;
      *) _isomer_offer "$(_isomer_words $kind)" "$2" ;;
    esac
  done
  case ${COMPREPLY[0]} in *=) compopt -o nospace 2>/dev/null ;; esac
}

_isomer() {
  [ -z "$ZSH_VERSION" ] || emulate -L ksh
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} key= prefix= kind=
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    _isomer_offer "$(_isomer_commands) --help --version" "$word"
    return
  fi
  # KEY=VALUE is three words in bash and one in zsh.
  case $word in
    =) key=$before word= ;;
    *=*) key=${word%=*} prefix=${word%=*}= word=${word##*=} ;;
    *) [ "$before" != = ] || key=${COMP_WORDS[COMP_CWORD-2]} ;;
  esac
  case ${key##*,} in
    mixer | layers | model.layers) _isomer_kinds preset "$word"; return ;;
    task.name) _isomer_kinds task "$word"; return ;;
  esac
  case " $(_isomer_options "$command") " in
    *" ${key:-$before}= "*)
      kind=$(_isomer_kind "${key:-$before}")
      _isomer_kinds "${kind:-file}" "$word" ;;
    *)
      case $key$word in
        -*) _isomer_offer "$(_isomer_options "$command" | tr -d =)" "$word" ;;
        *) [ -n "$key" ] || _isomer_kinds "$(_isomer_kind "$command")" "$word" ;;
      esac ;;
  esac
}

complete -F _isomer isomer
)SH";

std::string script(const std::vector<Options::Named>& program) {
  std::vector<std::pair<std::string, std::string>> options, kinds(kKinds.begin(), kKinds.end());
  std::string commands;
  for (const Options::Named& one : program) {
    commands += (commands.empty() ? "" : " ") + one.command;
    options.emplace_back(one.command, joined(one.options, [](const std::string& name) { return name; }));
  }
  const auto function = [](const std::string& name, const std::string& cases) {
    return "_isomer_" + name + "() {\n  case $1 in\n" + cases + "  esac\n}\n";
  };
  return "_isomer_commands() { echo '" + commands + "'; }\n" + function("options", cases_of(options)) +
         function("kind", cases_of(kinds)) + function("words", words_of_kinds()) + kBody;
}
}  // namespace

Command completion_command(Options& options) {
  auto shell = std::make_shared<std::string>();
  options.add("shell", *shell, "bash or zsh").required();
  options.footer("Example:\n  isomer completion bash      # in ~/.bashrc: source <(isomer completion bash)");
  return [shell, options] {
    constexpr std::array<std::string_view, 2> kShells{"bash", "zsh"};
    const bool zsh = position_of("shell", *shell, kShells) == 1;
    std::cout << kHead << (zsh ? kZsh : "") << script(options.whole_program());
    return kDone;
  };
}

}  // namespace isomer::cli
