#include "completion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "commands.hpp"
#include "completion_scripts.hpp"
#include "neyman/pipeline/study_help.hpp"
#include "terminal.hpp"

namespace neyman::cli {

namespace {

const std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

/// Prints words that begin as the last one does.
class Words {
 public:
  explicit Words(std::string begin) : begin_(std::move(begin)) {}
  void operator()(const std::string& word, std::string about) const {
    if (!word.starts_with(begin_)) return;
    about = about.substr(0, about.find('\n'));
    say("word\t{}\t{}\n", word, about);
  }

 private:
  std::string begin_;
};

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

/// What the value of an option may be, by the name of its type in --help.
void print_values(const CLI::Option& option, const Words& print) {
  static const std::map<std::string, std::string> files = {{"STUDY", "*.toml"},
                                                           {"MODEL", "*.h5"},
                                                           {"PART", "*.h5 *.toys"},
                                                           {"WORKSPACE", "*.json"},
                                                           {"STUDY|WORKSPACE", "*.toml *.json"},
                                                           {"DATA", "*.csv *.npy *.h5 *.hdf5"}};
  const std::string type = option.get_type_name();
  const auto open = type.find('{'), close = type.rfind('}');
  if (open != std::string::npos && close != std::string::npos) {
    for (const auto& choice : CLI::detail::split(type.substr(open + 1, close - open - 1), ','))
      print(choice, "");
  } else if (type == "EXAMPLE") {
    for (const auto& [name, title] : example_titles()) print(name, title);
  } else if (type == "TOPIC") {
    for (const auto& topic : study_topics()) print(topic.name, topic.meaning);
  } else if (type == "FOLDER") {
    say("folders\n");
  } else if (const auto found = files.find(type); found != files.end()) {
    for (const auto& pattern : CLI::detail::split(found->second, ' ')) say("files\t{}\n", pattern);
  }
}

/// The option that a word names, or null.
const CLI::Option* option_of(const CLI::App& command, const std::string& word) {
  for (const auto* option : command.get_options())
    if (!option->get_positional() && option->check_name(word.substr(0, word.find('='))))
      return option;
  return nullptr;
}

void print_options(const CLI::App& command, const std::vector<std::string>& used,
                   const Words& print) {
  for (const auto* option : command.get_options())
    for (const auto& name : option->get_lnames()) {
      const auto same = [&](const std::string& word) { return option_of(command, word) == option; };
      if (std::none_of(used.begin(), used.end(), same))
        print("--" + name, option->get_description());
    }
}

}  // namespace

void print_candidates(const CLI::App& app, std::vector<std::string> words) {
  // A shell may cut --seed=7 into three.
  if (!words.empty() && words.back() == "=") words.back().clear();
  std::string last = words.empty() ? "" : words.back();
  if (!words.empty()) words.pop_back();
  std::erase(words, "=");
  const Words print(last);
  const auto commands = commands_of(app);
  const auto command = words.empty()
                           ? commands.end()
                           : std::find_if(commands.begin(), commands.end(), [&](const CLI::App* c) {
                               return c->get_name() == words.front();
                             });
  if (command == commands.end()) {
    if (!words.empty()) return;
    for (const auto* one : commands) print(one->get_name(), one->get_description());
    if (last.starts_with('-')) print_options(app, {}, print);
    return;
  }
  words.erase(words.begin());
  const CLI::Option* asked = nullptr;  // takes the next word as its value
  std::size_t positionals = 0;
  for (const auto& word : words) {
    const auto* option = word.starts_with('-') ? option_of(**command, word) : nullptr;
    if (asked == nullptr && option == nullptr) ++positionals;
    asked = asked == nullptr && option != nullptr && takes_value(*option) &&
                    word.find('=') == std::string::npos
                ? option
                : nullptr;
  }
  if (asked != nullptr) return print_values(*asked, print);
  if (last.starts_with('-')) return print_options(**command, words, print);
  for (const auto* option : (*command)->get_options())
    if (option->get_positional() && (positionals-- == 0 || option->get_items_expected_max() > 1))
      return print_values(*option, print);
}

void add_completion(CLI::App& app, int& status) {
  auto* command = app.add_subcommand("completion", "Print what makes a shell complete commands");
  auto shell = std::make_shared<std::string>();
  command->add_option("shell", *shell, "Which shell")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh"}));
  command->footer(R"(
Where neyman is installed for all, shells find it by themselves. Elsewhere:

Examples:
  neyman completion bash > ~/.local/share/bash-completion/completions/neyman
  neyman completion zsh > ~/.zfunc/_neyman      # a folder of fpath)");
  command->callback([shell, &status] {
    say("{}", *shell == "bash" ? bash_completion : zsh_completion);
    status = success;
  });
}

}  // namespace neyman::cli
