#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

// Each subcommand adds itself with its options and help; its work is done in a callback that
// sets the exit status.
namespace neyman::cli {

/// Exit statuses: what a script can tell apart.
enum Status : int {
  success = 0,
  failure = 1,        ///< an error: a file, a wrong argument, …
  bad_study = 2,      ///< the study or the command line has problems
  not_converged = 3,  ///< results were written, but the fit did not converge
  check_failed = 4,   ///< `diagnose` found that the learned ratio does not fit the simulator
  interrupted = 130,
};

/// How a command talks. The names of types in its options, STUDY, MODEL, DATA, PART, WORKSPACE,
/// FOLDER, EXAMPLE and TOPIC, are what shell completion goes by.
struct Talk {
  bool quiet = false;
  bool json = false;

  void add_json_to(CLI::App& command) {
    command.add_flag("--json", json, "Print one JSON object and nothing else, errors included");
  }
  void add_to(CLI::App& command) {
    command.add_flag("-q,--quiet", quiet, "Print nothing but errors");
    add_json_to(command);
  }
  bool words() const { return !quiet && !json; }
};

/// The examples that `neyman example` makes, with their titles.
std::vector<std::pair<std::string, std::string>> example_titles();

void add_run(CLI::App& app, int& status);
void add_merge(CLI::App& app, int& status);
void add_check(CLI::App& app, int& status);
void add_example(CLI::App& app, int& status);
void add_diagnose(CLI::App& app, int& status);
void add_fit(CLI::App& app, int& status);
void add_limit(CLI::App& app, int& status);
void add_export(CLI::App& app, int& status);
void add_help(CLI::App& app, int& status);
void add_completion(CLI::App& app, int& status);

}  // namespace neyman::cli
