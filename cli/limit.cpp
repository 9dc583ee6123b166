#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>

#include "answer.hpp"
#include "commands.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/data/atomic_file.hpp"
#include "neyman/measurements/measurement_summary.hpp"
#include "terminal.hpp"

namespace neyman::cli {

namespace {

struct LimitArguments {
  std::string workspace, measurement;
  MeasurementOptions options;
  std::string statistic = "q-tilde";
  std::optional<double> asimov;
  std::optional<std::string> out;
  std::size_t threads = 0;
  Talk talk;
};

std::string workspace_advice() {
  return "neyman limit takes a workspace of pyhf: a JSON file with channels, observations and "
         "measurements.";
}

/// What is wrong with the numbers of a workspace is a fault of the file.
StatisticalModel open_model(const LimitArguments& arguments) {
  const auto workspace =
      advised(workspace_advice(), [&] { return read_workspace(arguments.workspace); });
  try {
    return StatisticalModel(workspace, arguments.measurement);
  } catch (const ArgumentError& error) {
    throw FileError(fmt::format("{}: {}", arguments.workspace, error.reason()));
  }
}

int limit_file(const LimitArguments& arguments) {
  if (arguments.threads > 0) set_threads(arguments.threads);
  const auto model = open_model(arguments);
  auto data = model.observed();
  if (arguments.asimov) {
    auto point = model.start();
    point[model.interest()] = *arguments.asimov;
    model.parameters().check_inside("--asimov", point);
    data = model.asimov(point);
  }
  auto options = arguments.options;
  options.statistic = test_statistic_named(arguments.statistic);
  const auto summary = [&] {
    const ProgressBar bar(!arguments.talk.words());
    return summarise(model, data, options);
  }();
  const auto json = summary_json(summary);
  if (arguments.out) write_file_atomically(*arguments.out, json);
  const int status = summary.problems.empty() ? success : not_converged;
  if (arguments.talk.json) print_answer("limit", status, {{"measurement", Json::parse(json)}});
  if (!arguments.talk.words()) return status;
  fmt::print("{}", summary_text(summary));
  if (arguments.out) fmt::print("\nResults  {}\n", *arguments.out);
  return status;
}

}  // namespace

void add_limit(CLI::App& app, int& status) {
  auto* command =
      app.add_subcommand("limit", "Fit a binned workspace of pyhf; discovery and upper limits");
  auto arguments = std::make_shared<LimitArguments>();
  command->add_option("workspace", arguments->workspace, "The workspace, JSON")
      ->type_name("WORKSPACE")
      ->required();
  command->add_option("-m,--measurement", arguments->measurement,
                      "Which of its measurements (default: the first)");
  command->add_option("--level", arguments->options.level, "Of the upper limit (default: 0.95)")
      ->check(CLI::Range(0.5, 0.999999));
  command->add_option("--statistic", arguments->statistic, "Of the upper limit (default: q-tilde)")
      ->check(CLI::IsMember({"q-tilde", "q"}));
  command->add_option("--asimov", arguments->asimov,
                      "Take the data expected for this value of the parameter of interest in place "
                      "of those observed");
  command
      ->add_option("--toys", arguments->options.toys,
                   "Also find the limit by so many toys of each hypothesis and value")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 40));
  command->add_option("--seed", arguments->options.seed, "Of the toys (default: 0)")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--threads", arguments->threads, "Threads to use (default: all)")
      ->check(CLI::PositiveNumber);
  command->add_option("-o,--out", arguments->out, "Also write the results into this JSON file")
      ->type_name("FILE");
  arguments->talk.add_to(*command);
  command->footer(R"(
Nothing is simulated or trained but toys. Exit status 3 where the fit did not converge, or a limit
lies beyond the range of the parameter.

Examples:
  neyman limit workspace.json
  neyman limit workspace.json --asimov 0               # blind
  neyman limit workspace.json --toys 2000 --out limit.json)");
  command->callback([arguments, &status] { status = limit_file(*arguments); });
}

}  // namespace neyman::cli
