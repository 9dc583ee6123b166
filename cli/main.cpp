#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "commands.hpp"
#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/version.hpp"
#include "terminal.hpp"

namespace {

constexpr const char* footer = R"(
Examples:
  neyman example mixture my-study        # a ready study to edit, with its data
  neyman example command my-own          # the same with a simulator that is a program
  neyman check my-study/study.toml       # validate everything before anything runs
  neyman run my-study/study.toml         # simulate, train, calibrate, fit, report
  neyman fit my-study/out/model.h5 --data new.csv
  neyman diagnose my-study/study.toml    # is the learned ratio right?
  neyman help                            # the keys of the study file, by topic

Exit status: 0 success, 1 an error, 2 problems in a study or on the command line,
3 a fit that did not converge, 4 a failed check of `diagnose`, 130 interrupted.)";

/// What is wrong with a first word that is neither a command nor an option; empty where nothing.
std::string unknown_command(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return {};
  std::vector<std::string> commands;
  for (const auto* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name() == argv[1]) return {};
    commands.push_back(command->get_name());
  }
  return neyman::unknown_name(argv[1], "a command", commands);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace neyman;
  CLI::App app("neyman: from a simulator to likelihood ratios, estimates, intervals and tests",
               "neyman");
  app.set_version_flag("--version", std::string("neyman ") + version());
  app.require_subcommand(1);
  app.footer(footer);
  int status = cli::success;
  cli::add_run(app, status);
  cli::add_check(app, status);
  cli::add_example(app, status);
  cli::add_fit(app, status);
  cli::add_diagnose(app, status);
  cli::add_help(app, status);
  cli::stop_on_interrupt();
  if (const auto wrong = unknown_command(app, argc, argv); !wrong.empty()) {
    fmt::print(stderr, "neyman: {}\nRun neyman --help for examples.\n", wrong);
    return cli::bad_study;
  }
  try {
    app.parse(argc, argv);
    if (std::fflush(stdout) != 0) throw FileError("the output could not be written");
    return status;
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? cli::success : cli::bad_study;
  } catch (const StudyError& error) {
    const auto count = error.problems().size();
    fmt::print(stderr, "{}\n{} problem{} found; nothing was run\n", error.what(), count,
               count == 1 ? "" : "s");
    return cli::bad_study;
  } catch (const Interrupted&) {
    fmt::print(stderr,
               "\nneyman: interrupted before the results were written. Run the command "
               "again to start over.\n");
    return cli::interrupted;
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "neyman: the memory is not enough; ask for fewer events\n");
    return cli::failure;
  } catch (const std::exception& error) {
    fmt::print(stderr, "neyman: {}\n", error.what());
    return cli::failure;
  }
}
