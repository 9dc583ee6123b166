#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "answer.hpp"
#include "commands.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/random.hpp"
#include "neyman/core/version.hpp"
#include "neyman/pipeline/pipeline.hpp"
#include "neyman/reports/summary.hpp"
#include "output_folder.hpp"
#include "point.hpp"
#include "study_file.hpp"
#include "terminal.hpp"

namespace neyman::cli {

namespace {

struct DiagnoseArguments {
  std::string study;
  std::optional<std::string> model, out, at, against;
  std::optional<std::size_t> events;
  std::optional<std::uint64_t> seed;
  std::size_t threads = 0;
  bool no_figures = false;
  Talk talk;
};

int diagnose_study(const DiagnoseArguments& arguments) {
  auto study = open_study(arguments.study);
  if (arguments.threads > 0) set_threads(arguments.threads);
  auto& config = study.diagnostics;
  if (arguments.seed) config.seed = derive_seed(*arguments.seed, "diagnostics");
  if (arguments.events) config.events = *arguments.events;
  if (arguments.against)
    config.against = parse_point("--against", *arguments.against, study.parameters);
  std::optional<std::vector<double>> at;
  if (arguments.at) at = parse_point("--at", *arguments.at, study.parameters);
  const auto path =
      arguments.model.value_or(default_output_folder(arguments.study, false) + "/model.h5");
  const auto advice =
      fmt::format("The model is written by: neyman run {}{}", arguments.study,
                  arguments.model ? "" : "\nIf it is elsewhere, name it with --model.");
  const auto model = advised(advice, [&] { return load_model(path); });
  study.simulator->set_cache_folder((std::filesystem::path(path).parent_path() / "cache").string());
  if (arguments.out) prepare_output_folder(*arguments.out);
  std::optional<Results> done;
  {
    const ProgressBar bar(!arguments.talk.words());
    done = diagnose_model(study, model, at);
  }
  auto& results = *done;
  results.version = version();
  results.command = fmt::format("neyman diagnose {}", arguments.study);
  if (arguments.out)
    write_outputs(results, nullptr, *arguments.out, study.figures && !arguments.no_figures);
  if (arguments.talk.words()) {
    say("{}", reports::checks_table(results));
    if (arguments.out)
      say("\nReport   {0}/report.html\nResults  {0}/results.json\n", *arguments.out);
  }
  const bool failed = std::any_of(
      results.diagnostics.begin(), results.diagnostics.end(),
      [](const Diagnostic& check) { return check.verdict == Diagnostic::Verdict::fail; });
  const int status = failed ? check_failed : results.diagnostics.empty() ? not_converged : success;
  if (arguments.talk.json)
    print_answer("diagnose", status, results_content(results, arguments.out));
  return status;
}

}  // namespace

void add_diagnose(CLI::App& app, int& status) {
  auto* command = app.add_subcommand("diagnose", "Check a trained model without knowing the truth");
  auto arguments = std::make_shared<DiagnoseArguments>();
  command->add_option("study", arguments->study, "The study file")->type_name("STUDY")->required();
  command
      ->add_option("-m,--model", arguments->model,
                   "model.h5 of a run (default: where `neyman run` has put it)")
      ->type_name("MODEL");
  command->add_option("--at", arguments->at,
                      "Numerator of the ratio, alpha=1,beta=-1 (default: the estimate from the "
                      "study's data)");
  command->add_option("--against", arguments->against,
                      "Denominator of the ratio (default: the study's)");
  command
      ->add_option("--events", arguments->events, "Simulated on each side (default: the study's)")
      ->check(CLI::Range(std::size_t{100}, std::size_t{1} << 40));
  command->add_option("--seed", arguments->seed, "Simulate other events")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--threads", arguments->threads, "Threads to use (default: all)")
      ->check(CLI::PositiveNumber);
  command
      ->add_option("-o,--out", arguments->out,
                   "Also write results.json, report.html and figures into this folder")
      ->type_name("FOLDER");
  command->add_flag("--no-figures", arguments->no_figures, "Draw no figures");
  arguments->talk.add_to(*command);
  command->footer(R"(
Simulates new events at two θ and asks whether the learned ratio fits them. Exit status 4 where
a check fails.

Examples:
  neyman diagnose my-study/study.toml --model my-study/out/model.h5
  neyman diagnose my-study/study.toml --at alpha=1,beta=-1 --out checks)");
  command->callback([arguments, &status] { status = diagnose_study(*arguments); });
}

}  // namespace neyman::cli
