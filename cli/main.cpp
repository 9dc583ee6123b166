#include <cstdio>
#include <exception>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "commands.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/version.hpp"
#include "terminal.hpp"

namespace {

constexpr const char* footer = R"(
Examples:
  neyman example mixture my-study        # a ready study to edit, with its data
  neyman check my-study/study.toml       # validate everything before anything runs
  neyman run my-study/study.toml         # simulate, train, calibrate, fit, report
  neyman fit my-study/out/model.h5 --data new.csv

Exit status: 0 success, 1 an error, 2 problems in a study or on the command line,
3 a fit that did not converge, 130 interrupted.)";

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
  cli::stop_on_interrupt();
  try {
    app.parse(argc, argv);
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
    fmt::print(stderr, "\nneyman: interrupted; nothing was written. Run the command again to "
                       "start over.\n");
    return cli::interrupted;
  } catch (const std::exception& error) {
    fmt::print(stderr, "neyman: {}\n", error.what());
    return cli::failure;
  }
}
