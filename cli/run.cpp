#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "commands.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/progress.hpp"
#include "neyman/core/version.hpp"
#include "neyman/pipeline/pipeline.hpp"
#include "neyman/reports/summary.hpp"
#include "neyman/reports/terminal.hpp"
#include "neyman/simulators/command.hpp"
#include "output_folder.hpp"
#include "terminal.hpp"

namespace neyman::cli {

namespace {

struct RunArguments {
  std::string study;
  std::optional<std::string> out;
  std::optional<std::uint64_t> seed;
  std::size_t threads = 0;
  bool no_figures = false;
  bool quiet = false;
};

int run_study(const RunArguments& arguments) {
  auto study = read_study(arguments.study);
  if (arguments.seed) reseed(study, *arguments.seed);
  if (arguments.threads > 0) set_threads(arguments.threads);
  const std::string out = arguments.out.value_or(
      (std::filesystem::path(study.folder) / "out").lexically_normal().string());
  prepare_output_folder(out);
  set_cache_folder(*study.simulator, out + "/cache");

  const double start = seconds_now();
  std::optional<Run> done;
  {
    const ProgressBar bar(arguments.quiet);
    done = run(study);
  }
  auto& results = done->results;
  results.version = version();
  results.command = fmt::format("neyman run {} --seed {}", arguments.study, study.seed);
  write_outputs(results, &done->model, out, study.figures && !arguments.no_figures);
  if (!arguments.quiet) {
    fmt::print("{}", reports::summary(results, colour_output()));
    fmt::print("\nReport   {0}/report.html\nResults  {0}/results.json\n", out);
    if (done->model.complete) fmt::print("Model    {}/model.h5\n", out);
    fmt::print("Took     {}\n", reports::format_duration(seconds_now() - start));
  }
  return results.fit.fit.ok() ? success : not_converged;
}

}  // namespace

void add_run(CLI::App& app, int& status) {
  auto* command = app.add_subcommand("run", "Run a study: simulate, train, calibrate, fit, report");
  auto arguments = std::make_shared<RunArguments>();
  command->add_option("study", arguments->study, "The study file (TOML)")->required();
  command->add_option("-o,--out", arguments->out,
                      "Folder for the results (default: out/ beside "
                      "the study)");
  command->add_option("--seed", arguments->seed, "Use this seed instead of the study's")
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--threads", arguments->threads,
                   "Threads to use (default: all); results are the same for any number")
      ->check(CLI::PositiveNumber);
  command->add_flag("--no-figures", arguments->no_figures, "Draw no figures");
  command->add_flag("-q,--quiet", arguments->quiet, "Print nothing but errors");
  command->footer(R"(
Writes results.json, report.html, figures/, model.h5 and run.log. Runs of a simulator
that is a program are kept in cache/ and are not simulated again.

Examples:
  neyman run my-study/study.toml
  neyman run my-study/study.toml --seed 7 --out results-7)");
  command->callback([arguments, &status] { status = run_study(*arguments); });
}

}  // namespace neyman::cli
