#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "commands.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/progress.hpp"
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
  std::string from, until;
  bool fresh = false;
  std::size_t threads = 0;
  bool no_figures = false;
  bool quiet = false;
};

/// A word of a command line as a shell takes it.
std::string quoted(const std::string& word) {
  constexpr const char* plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+=:,@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

/// The command that goes on where a run has stopped.
std::string resume_command(const RunArguments& arguments) {
  std::string command = "neyman run " + quoted(arguments.study);
  if (arguments.out) command += " --out " + quoted(*arguments.out);
  if (arguments.seed) command += fmt::format(" --seed {}", *arguments.seed);
  if (arguments.threads > 0) command += fmt::format(" --threads {}", arguments.threads);
  if (arguments.no_figures) command += " --no-figures";
  if (arguments.quiet) command += " --quiet";
  return command;
}

void tell(const StageNote& note, bool quiet) {
  const std::string name =
      note.part.empty() || note.part == note.stage ? note.stage : note.stage + ": " + note.part;
  if (note.state == StageNote::State::damaged) {
    fmt::print(stderr, "neyman: {}; {} is done again\n", note.message, name);
    return;
  }
  if (quiet) return;
  const std::string state = note.state == StageNote::State::kept ? "kept"
                            : note.state == StageNote::State::skipped
                                ? "skipped, " + note.message
                                : reports::format_duration(note.seconds);
  fmt::print("{:<16}{}\n", name, state);
  std::fflush(stdout);
}

StagedRun run_stages(const Study& study, const RunArguments& arguments, const std::string& out) {
  RunOptions options;
  options.folder = out;
  options.from = arguments.from;
  options.until = arguments.until;
  options.fresh = arguments.fresh;
  options.figures = !arguments.no_figures;
  options.command = fmt::format("neyman run {} --seed {}", arguments.study, study.seed);
  options.note = [&](const StageNote& note) { tell(note, arguments.quiet); };
  const ProgressBar bar(arguments.quiet);
  return run(study, options);
}

void print_end(const StagedRun& done, const RunArguments& arguments, const std::string& out) {
  if (!done.finished) {
    fmt::print("\nStopped after {}. To go on:\n  {}\n", arguments.until, resume_command(arguments));
    return;
  }
  fmt::print("\n{}", reports::summary(done.results, colour_output()));
  fmt::print("\nReport   {0}/report.html\nResults  {0}/results.json\n", out);
  if (std::filesystem::exists(std::filesystem::path(out) / "model.h5"))
    fmt::print("Model    {}/model.h5\n", out);
}

int run_study(const RunArguments& arguments) {
  auto study = read_study(arguments.study);
  if (arguments.seed) reseed(study, *arguments.seed);
  if (arguments.threads > 0) set_threads(arguments.threads);
  const std::string out = arguments.out.value_or(
      (std::filesystem::path(study.folder) / "out").lexically_normal().string());
  prepare_output_folder(out);
  set_cache_folder(*study.simulator, out + "/cache");

  const double start = seconds_now();
  try {
    const auto done = run_stages(study, arguments, out);
    if (!arguments.quiet) {
      print_end(done, arguments, out);
      fmt::print("Took     {}\n", reports::format_duration(seconds_now() - start));
    }
    return !done.finished || done.results.fit.fit.ok() ? success : not_converged;
  } catch (const Interrupted&) {
    fmt::print(stderr,
               "\nneyman: interrupted; finished stages are kept in {}/stages. To go on:\n  {}\n",
               out, resume_command(arguments));
    return interrupted;
  } catch (const FileError& error) {
    fmt::print(stderr,
               "neyman: {}\nFinished stages are kept. When this is mended, go on with:\n  {}\n",
               error.what(), resume_command(arguments));
    return failure;
  }
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
  auto* from = command->add_option("--from", arguments->from, "Do this stage and all after it anew")
                   ->check(CLI::IsMember(stage_names()));
  command->add_option("--until", arguments->until, "Stop after this stage")
      ->check(CLI::IsMember(stage_names()));
  command->add_flag("--fresh", arguments->fresh, "Do all stages anew")->excludes(from);
  command
      ->add_option("--threads", arguments->threads,
                   "Threads to use (default: all); results are the same for any number")
      ->check(CLI::PositiveNumber);
  command->add_flag("--no-figures", arguments->no_figures, "Draw no figures");
  command->add_flag("-q,--quiet", arguments->quiet, "Print nothing but errors");
  command->footer(R"(
Writes results.json, report.html, figures/, model.h5 and run.log. Runs of a simulator
that is a program are kept in cache/ and are not simulated again.

Stages: simulate, train, calibrate, fit, toys, diagnose, report. Each is kept in stages/ of the
folder when it is finished. Run again, and only what a change of the study, its files or its seed
touches is done again; after Ctrl-C (exit status 130), a crash or a full disk, the same command
goes on where the run stopped, with the same results.

Examples:
  neyman run my-study/study.toml
  neyman run my-study/study.toml --seed 7 --out results-7
  neyman run my-study/study.toml --until train       # simulate and train, nothing more
  neyman run my-study/study.toml --from toys         # tests, ensembles and coverage anew
  neyman run my-study/study.toml --fresh             # everything anew)");
  command->callback([arguments, &status] { status = run_study(*arguments); });
}

}  // namespace neyman::cli
