#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "answer.hpp"
#include "commands.hpp"
#include "merge_limit.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/progress.hpp"
#include "neyman/core/version.hpp"
#include "neyman/data/atomic_file.hpp"
#include "neyman/data/checksum.hpp"
#include "neyman/distributed/communicator.hpp"
#include "neyman/measurements/kept_tasks.hpp"
#include "neyman/measurements/measurement_summary.hpp"
#include "neyman/reports/measurement_figures.hpp"
#include "neyman/reports/measurement_report.hpp"
#include "output_folder.hpp"
#include "run_study.hpp"
#include "terminal.hpp"

namespace neyman::cli {

namespace {

namespace fs = std::filesystem;

struct LimitArguments {
  std::string workspace, measurement;
  MeasurementOptions options;
  std::string statistic = "q-tilde";
  std::optional<double> asimov;
  std::optional<std::string> out, report, keep;
  std::optional<Part> part;
  std::vector<std::string> groups;
  std::size_t threads = 0;
  Talk talk;
};

std::string workspace_advice() {
  return "neyman limit takes a workspace of pyhf: a JSON file with channels, observations and "
         "measurements.";
}

/// What is wrong with the numbers of a workspace is a fault of the file.
StatisticalModel open_model(const LimitArguments& arguments) {
  if (arguments.workspace.ends_with(".toml"))
    throw AdvisedError(
        arguments.workspace + ": is a study, but must be a workspace of pyhf (JSON)",
        fmt::format(
            "A study whose simulator has yields gives discovery and limits with: neyman run {}",
            arguments.workspace));
  const auto workspace =
      advised(workspace_advice(), [&] { return read_workspace(arguments.workspace); });
  try {
    return StatisticalModel(workspace, arguments.measurement);
  } catch (const ArgumentError& error) {
    throw FileError(fmt::format("{}: {}", arguments.workspace, error.reason()));
  }
}

/// What the toys are made from, in the files that keep them.
std::string describe_toys(const LimitArguments& arguments) {
  const auto& options = arguments.options;
  Json out = {{"workspace", fmt::format("{:016x}", checksum(read_file(arguments.workspace)))},
              {"measurement", arguments.measurement},
              {"level", options.level},
              {"statistic", arguments.statistic},
              {"toys", options.toys},
              {"seed", options.seed},
              {"neyman", version()}};
  if (arguments.asimov) out["asimov"] = *arguments.asimov;
  return out.dump();
}

/// Takes over the options that toys were made with.
void take_options(LimitArguments& arguments, const std::string& description) {
  const auto from = Json::parse(description);
  arguments.measurement = from.at("measurement");
  arguments.options.level = from.at("level");
  arguments.statistic = from.at("statistic");
  arguments.options.toys = from.at("toys");
  arguments.options.seed = from.at("seed");
  if (from.contains("asimov")) arguments.asimov = from.at("asimov").get<double>();
}

std::string toy_folder(const std::string& workspace) {
  return fs::path(workspace).replace_extension().string() + "-toys";
}

std::string toy_file(const LimitArguments& arguments) {
  const auto folder = arguments.keep.value_or(toy_folder(arguments.workspace));
  make_folder(folder);
  const auto part = arguments.part.value_or(Part{});
  const auto digits = fmt::format("{}", part.of).size();
  return (fs::path(folder) / fmt::format("part-{:0{}}-of-{}.toys", part.number, digits, part.of))
      .string();
}

/// "jets=scale,resolution": the name of a group, and those of its parameters.
std::pair<std::string, std::vector<std::string>> read_group(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    throw ArgumentError(
        fmt::format("--group: '{}' is no group, but must be NAME=PARAMETER,PARAMETER,…", text));
  std::vector<std::string> names(1);
  for (const char c : text.substr(equals + 1))
    c == ',' ? static_cast<void>(names.emplace_back()) : names.back().push_back(c);
  return {text.substr(0, equals), names};
}

/// The command that makes the same report again.
std::string report_command(const LimitArguments& arguments) {
  std::string command = "neyman limit " + shell_word(arguments.workspace);
  if (!arguments.measurement.empty())
    command += " --measurement " + shell_word(arguments.measurement);
  if (arguments.options.level != MeasurementOptions().level)
    command += fmt::format(" --level {:g}", arguments.options.level);
  if (arguments.statistic != "q-tilde") command += " --statistic " + arguments.statistic;
  if (arguments.asimov) command += fmt::format(" --asimov {:g}", *arguments.asimov);
  if (arguments.options.toys > 0)
    command += fmt::format(" --toys {} --seed {}", arguments.options.toys, arguments.options.seed);
  for (const auto& group : arguments.groups) command += " --group " + shell_word(group);
  return command + " --report " + shell_word(*arguments.report);
}

void write_report(const LimitArguments& arguments, const MeasurementSummary& summary,
                  const std::string& json) {
  const fs::path folder(*arguments.report);
  reports::MeasurementOrigin origin;
  origin.title = "Measurement of " + summary.model.parameters()[summary.model.interest()].name;
  origin.source = arguments.workspace;
  if (arguments.asimov)
    origin.data =
        fmt::format("those expected for {} = {:g} (Asimov)",
                    summary.model.parameters()[summary.model.interest()].name, *arguments.asimov);
  origin.command = report_command(arguments);
  const auto drawn =
      reports::draw_all(reports::measurement_figures(summary), folder / "figures", origin.warnings);
  write_file_atomically((folder / "measurement.json").string(), json);
  write_file_atomically((folder / "report.html").string(),
                        reports::measurement_report(summary, origin, drawn));
}

MeasurementSummary summarise_file(const LimitArguments& arguments, Tasks* tasks, bool quiet) {
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
  for (const auto& group : arguments.groups) options.groups.push_back(read_group(group));
  options.tasks = tasks;
  options.toys_alone = arguments.part.has_value();
  const ProgressBar bar(quiet || !arguments.talk.words());
  return summarise(model, data, options);
}

int tell_summary(const MeasurementSummary& summary, const LimitArguments& arguments,
                 const char* command) {
  const auto json = summary_json(summary);
  if (arguments.report) {
    const ProgressBar bar(!arguments.talk.words());
    write_report(arguments, summary, json);
  }
  if (arguments.out) write_file_atomically(*arguments.out, json);
  const int status = summary.problems.empty() ? success : not_converged;
  if (arguments.talk.json) print_answer(command, status, {{"measurement", Json::parse(json)}});
  if (!arguments.talk.words()) return status;
  say("{}", summary_text(summary));
  if (arguments.out) say("\nResults  {}\n", *arguments.out);
  if (arguments.report)
    say("\nReport   {}\n", (std::filesystem::path(*arguments.report) / "report.html").string());
  return status;
}

/// A part of the toys, for merge.
int limit_part(const LimitArguments& arguments) {
  const auto file = toy_file(arguments);
  const auto& part = *arguments.part;
  std::optional<MeasurementSummary> summary;
  {
    KeptTasks tasks(file, describe_toys(arguments), {part.number, part.of});
    summary = summarise_file(arguments, &tasks, false);
  }
  const int status = summary->problems.empty() ? success : not_converged;
  if (arguments.talk.json) print_answer("limit", status, {{"part", file}});
  if (!arguments.talk.words()) return status;
  for (const auto& problem : summary->problems) say("Problem: {}\n", problem);
  say("Part     {}\nWhen all {} parts are there:\n  neyman merge {}\n", file, part.of,
      arguments.workspace);
  return status;
}

int limit_on(Communicator& ranks, const LimitArguments& arguments) {
  if ((arguments.part || arguments.keep) && ranks.size() > 1)
    throw ArgumentError("limit: --part and --keep are for jobs by themselves, not under mpirun");
  if ((arguments.part || arguments.keep) && arguments.options.toys == 0)
    throw ArgumentError("limit: --part and --keep are for toys, but there are none; see --toys");
  if (arguments.part && arguments.report)
    throw ArgumentError("limit: --report is not for a part of the toys; make it without --part");
  if (arguments.report && ranks.first()) prepare_output_folder(*arguments.report);
  if (arguments.threads > 0 || ranks.size() > 1)
    set_threads(arguments.threads > 0 ? arguments.threads : threads_for(ranks));
  if (arguments.part) return limit_part(arguments);
  std::unique_ptr<Tasks> tasks;
  if (arguments.keep)
    tasks = std::make_unique<KeptTasks>(toy_file(arguments), describe_toys(arguments));
  else if (ranks.size() > 1)
    tasks = std::make_unique<RankTasks>(ranks);
  const auto summary = summarise_file(arguments, tasks.get(), !ranks.first());
  if (!ranks.first()) return summary.problems.empty() ? success : not_converged;
  return tell_summary(summary, arguments, "limit");
}

int limit_file(const LimitArguments& arguments) {
  const auto ranks = connect();
  try {
    return limit_on(*ranks, arguments);
  } catch (const std::exception& error) {
    // All ranks come to the same error; the first speaks for them.
    if (ranks->first()) throw;
    return complaint_about(error).status;
  }
}

}  // namespace

int merge_limit(const std::string& workspace, std::vector<std::string> parts,
                const std::optional<std::string>& out, const Talk& talk) {
  const auto folder = toy_folder(workspace);
  std::error_code error;
  if (parts.empty())
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
      if (at->path().extension() == ".toys") parts.push_back(at->path().string());
  std::sort(parts.begin(), parts.end());
  if (parts.empty())
    throw AdvisedError(
        folder + ": there are no parts",
        "Make them with neyman limit WORKSPACE --toys N --part 1/10, 2/10 and so on.");
  MergedKeptTasks tasks(parts);
  LimitArguments arguments;
  arguments.workspace = workspace;
  arguments.out = out;
  arguments.talk = talk;
  take_options(arguments, tasks.about());
  if (describe_toys(arguments) != tasks.about())
    throw FileError(fmt::format("{}: holds toys of another workspace or another neyman than {}",
                                parts.front(), workspace));
  return tell_summary(summarise_file(arguments, &tasks, false), arguments, "merge");
}

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
  command
      ->add_option("--keep", arguments->keep,
                   "Keep toys in this folder as they are made: a run that was killed goes on")
      ->type_name("FOLDER");
  command
      ->add_option_function<std::string>(
          "--part",
          [arguments](const std::string& text) {
            const auto problem = read_part(text, arguments->part);
            if (!problem.empty()) throw CLI::ValidationError("--part", problem);
          },
          "Make one part of the toys, for merge (kept in WORKSPACE-toys unless --keep)")
      ->type_name("K/N");
  command->add_option("-o,--out", arguments->out, "Also write the results into this JSON file")
      ->type_name("FILE");
  command
      ->add_option("--report", arguments->report,
                   "Also write a report with figures into this folder")
      ->type_name("FOLDER");
  command
      ->add_option(
          "--group", arguments->groups,
          "A group of nuisance parameters whose part of the error is told; may be repeated")
      ->type_name("NAME=PARAMETER,…")
      ->allow_extra_args(false);
  arguments->talk.add_to(*command);
  command->footer(R"(
Nothing is simulated or trained but toys. Exit status 3 where the fit did not converge, or a limit
lies beyond the range of the parameter.

Examples:
  neyman limit workspace.json
  neyman limit workspace.json --asimov 0               # blind
  neyman limit workspace.json --toys 2000 --out limit.json
  neyman limit workspace.json --toys 1000000 --keep toys      # goes on where it was killed
  neyman limit workspace.json --toys 1000000 --part 3/10      # one of ten jobs; then neyman merge
  mpirun -n 64 neyman limit workspace.json --toys 1000000
  neyman limit workspace.json --report out             # out/report.html, with figures
  neyman limit workspace.json --group jets=scale,resolution --group theory=xsec)");
  command->callback([arguments, &status] { status = limit_file(*arguments); });
}

}  // namespace neyman::cli
