#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "answer.hpp"
#include "commands.hpp"
#include "completion.hpp"
#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/memory.hpp"
#include "neyman/core/version.hpp"
#include "terminal.hpp"

namespace {

namespace cli = neyman::cli;

constexpr const char* footer = R"(
Examples:
  neyman example                         # what there is to start from
  neyman example mixture my-study        # a ready study to edit, with its data
  neyman example command my-own          # the same with a simulator that is a program
  neyman check my-study/study.toml       # validate everything before anything runs
  neyman run my-study/study.toml         # simulate, train, calibrate, fit, report
  neyman fit my-study/out/model.h5 --data new.csv
  neyman diagnose my-study/study.toml    # is the learned ratio right?
  neyman limit workspace.json            # a binned measurement: fit, discovery, upper limits
  neyman export my-study/out/model.h5 --out ratio.onnx    # for other programs
  neyman merge my-study/study.toml       # finish what jobs did parts of: run --part 1/10 …
  neyman help                            # the keys of the study file, by topic

With --json a command prints one JSON object and nothing else, errors included.

Exit status: 0 success, 1 an error, 2 problems in a study or on the command line,
3 a fit that did not converge or a limit out of range, 4 a failed check of `diagnose`,
130 interrupted.)";

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  return names;
}

std::vector<std::string> long_options(const CLI::App& command) {
  std::vector<std::string> names;
  for (const auto* option : command.get_options())
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

/// The command that the first word names, or null.
const CLI::App* command_of(const CLI::App& app, const std::vector<std::string>& words) {
  for (const auto* command : app.get_subcommands([](const CLI::App*) { return true; }))
    if (!words.empty() && command->get_name() == words.front()) return command;
  return nullptr;
}

/// What is wrong with a command line, in the words of neyman where those of CLI11 leave a user
/// standing.
cli::Complaint complaint_about(const CLI::ParseError& error, const CLI::App& app,
                               const std::vector<std::string>& words) {
  cli::Complaint out{cli::bad_study, "command line", error.what()};
  const auto* command = command_of(app, words);
  if (command == nullptr) {
    const auto names = command_names(app);
    if (words.empty()) {
      out.message = "a subcommand is missing; candidates are " + neyman::candidates_for("", names);
    } else if (words.front().starts_with('-')) {
      out.message =
          neyman::unknown_name(words.front(), "an option of neyman itself", long_options(app));
    } else {
      out.message = neyman::unknown_name(words.front(), "a command", names);
    }
    out.advice = "Run neyman --help for examples.";
    return out;
  }
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    const auto options = long_options(*command);
    for (const auto& word : words) {
      const auto name = word.substr(0, word.find('='));
      if (word.starts_with("--") &&
          std::find(options.begin(), options.end(), name) == options.end())
        out.message = neyman::unknown_name(name, "an option of neyman " + words.front(), options);
    }
  }
  out.advice = fmt::format("Run neyman {} --help for examples.", words.front());
  return out;
}

int run(CLI::App& app, int argc, char** argv, int& status) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const bool json = std::find(words.begin(), words.end(), "--json") != words.end();
  const auto* command = command_of(app, words);
  const std::string name = command == nullptr ? "" : command->get_name();
  try {
    if (!words.empty() && words.front() == cli::completion_word) {
      cli::print_candidates(app, {words.begin() + 1, words.end()});
    } else {
      app.parse(argc, argv);
    }
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
      throw neyman::FileError("the output could not be written; is the disk full?");
    return status;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help and --version
    return cli::tell(complaint_about(error, app, words), name, json);
  } catch (const std::exception& error) {
    return cli::tell(cli::complaint_about(error), name, json);
  }
}

}  // namespace

int main(int argc, char** argv) {
  neyman::keep_freed_memory();
  CLI::App app("neyman: from a simulator to likelihood ratios, estimates, intervals and tests",
               "neyman");
  app.set_version_flag("--version", std::string("neyman ") + neyman::version());
  app.require_subcommand(1);
  app.footer(footer);
  int status = cli::success;
  cli::add_run(app, status);
  cli::add_check(app, status);
  cli::add_example(app, status);
  cli::add_fit(app, status);
  cli::add_limit(app, status);
  cli::add_diagnose(app, status);
  cli::add_merge(app, status);
  cli::add_export(app, status);
  cli::add_help(app, status);
  cli::add_completion(app, status);
  cli::stop_on_interrupt();
  try {
    return run(app, argc, argv, status);
  } catch (...) {
    return cli::failure;  // not even the complaint could be made
  }
}
