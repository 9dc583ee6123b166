#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "answer.hpp"
#include "commands.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/progress.hpp"
#include "neyman/pipeline/pipeline.hpp"
#include "neyman/reports/summary.hpp"
#include "neyman/reports/terminal.hpp"
#include "output_folder.hpp"
#include "study_file.hpp"
#include "terminal.hpp"

namespace neyman::cli {

namespace {

struct RunArguments {
  std::string study;
  std::optional<std::string> out;
  std::optional<std::uint64_t> seed;
  std::string from, until;
  bool fresh = false;
  bool quick = false;
  std::size_t threads = 0;
  bool no_figures = false;
  Talk talk;
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
  if (arguments.quick) command += " --quick";
  if (arguments.threads > 0) command += fmt::format(" --threads {}", arguments.threads);
  if (arguments.no_figures) command += " --no-figures";
  if (arguments.talk.quiet) command += " --quiet";
  if (arguments.talk.json) command += " --json";
  return command;
}

/// What became of a stage, in a line; `merit` is how well it went.
void tell(const StageNote& note, const std::string& merit, bool quiet) {
  const std::string name =
      note.part.empty() || note.part == note.stage ? note.stage : note.stage + ": " + note.part;
  if (note.state == StageNote::State::damaged) {
    fmt::print(stderr, "neyman: {}; {} is done again\n", note.message, name);
    return;
  }
  if (quiet) return;
  const bool done = note.state == StageNote::State::done;
  const std::string state = note.state == StageNote::State::kept ? "kept"
                            : done ? reports::format_duration(note.seconds)
                                   : "skipped, " + note.message;
  if (done && !merit.empty())
    fmt::print("{:<16}{:<12}{}\n", name, state, merit);
  else
    fmt::print("{:<16}{}\n", name, state);
  std::fflush(stdout);
}

Json to_json(const StageNote& note) {
  constexpr const char* states[] = {"kept", "done", "skipped", "damaged"};
  Json out = {{"stage", note.stage}};
  if (!note.part.empty()) out["part"] = note.part;
  out["state"] = states[static_cast<int>(note.state)];
  if (note.state == StageNote::State::done) out["seconds"] = note.seconds;
  if (!note.message.empty()) out["message"] = note.message;
  return out;
}

StagedRun run_stages(const Study& study, const RunArguments& arguments, const std::string& out,
                     Json& stages) {
  RunOptions options;
  options.folder = out;
  options.from = arguments.from;
  options.until = arguments.until;
  options.fresh = arguments.fresh;
  options.figures = !arguments.no_figures;
  options.command = fmt::format("neyman run {} --seed {}{}", quoted(arguments.study), study.seed,
                                study.quick ? " --quick" : "");
  ProgressBar bar(!arguments.talk.words());
  options.note = [&](const StageNote& note) {
    stages.push_back(to_json(note));
    if (!arguments.talk.json) tell(note, bar.take_merit(), arguments.talk.quiet);
  };
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

Json content(const StagedRun& done, const std::string& out, const Json& stages) {
  Json answer = {{"folder", out}, {"finished", done.finished}, {"stages", stages}};
  if (done.finished) answer["results"] = results_content(done.results, {})["results"];
  return answer;
}

int run_study(const RunArguments& arguments) {
  auto study = open_study(arguments.study);
  if (arguments.quick) quicken(study);
  if (arguments.seed) reseed(study, *arguments.seed);
  if (arguments.threads > 0) set_threads(arguments.threads);
  const auto out = arguments.out.value_or(default_output_folder(arguments.study, study.quick));
  prepare_output_folder(out);
  study.simulator->set_cache_folder(out + "/cache");

  const double start = seconds_now();
  Json stages = Json::array();
  try {
    const auto done = run_stages(study, arguments, out, stages);
    const int status = !done.finished || done.results.fit.fit.ok() ? success : not_converged;
    if (arguments.talk.json) print_answer("run", status, content(done, out, stages));
    if (!arguments.talk.words()) return status;
    print_end(done, arguments, out);
    fmt::print("Took     {}\n", reports::format_duration(seconds_now() - start));
    return status;
  } catch (const Error& error) {
    auto complaint = complaint_about(error);
    complaint.resume = resume_command(arguments);
    complaint.advice = "Finished stages are kept. When this is mended, go on with:";
    if (complaint.status == interrupted) {
      complaint.message = fmt::format("interrupted; finished stages are kept in {}/stages", out);
      complaint.advice = "To go on:";
    }
    return tell(complaint, "run", arguments.talk.json);
  }
}

}  // namespace

void add_run(CLI::App& app, int& status) {
  auto* command = app.add_subcommand("run", "Run a study: simulate, train, calibrate, fit, report");
  auto arguments = std::make_shared<RunArguments>();
  command->add_option("study", arguments->study, "The study file")->type_name("STUDY")->required();
  command
      ->add_option("-o,--out", arguments->out,
                   "Folder for the results (default: out/ beside study.toml, out-X/ beside X.toml)")
      ->type_name("FOLDER");
  command->add_option("--seed", arguments->seed, "Use this seed instead of the study's")
      ->check(CLI::NonNegativeNumber);
  auto* from = command->add_option("--from", arguments->from, "Do this stage and all after it anew")
                   ->check(CLI::IsMember(stage_names()));
  command->add_option("--until", arguments->until, "Stop after this stage")
      ->check(CLI::IsMember(stage_names()));
  command->add_flag("--fresh", arguments->fresh, "Do all stages anew")->excludes(from);
  command->add_flag("--quick", arguments->quick,
                    "Try the study out with a tenth of its simulation, into out-quick/");
  command
      ->add_option("--threads", arguments->threads,
                   "Threads to use (default: all); results are the same for any number")
      ->check(CLI::PositiveNumber);
  command->add_flag("--no-figures", arguments->no_figures, "Draw no figures");
  arguments->talk.add_to(*command);
  command->footer(R"(
Writes results.json, report.html, figures/, model.h5 and run.log. Runs of a simulator
that is a program are kept in cache/ and are not simulated again.

--quick makes everything small: a tenth of the simulated events and of the datasets of tests,
ensembles and coverage. The report says so; its figures are not results to use.

Stages: simulate, train, calibrate, fit, toys, diagnose, report. Each is kept in stages/ of the
folder when it is finished. Run again, and only what a change of the study, its files or its seed
touches is done again; after Ctrl-C (exit status 130), a crash or a full disk, the same command
goes on where the run stopped, with the same results.

Examples:
  neyman run my-study/study.toml
  neyman run my-study/study.toml --quick             # does it work, and how does it look?
  neyman run my-study/study.toml --seed 7 --out results-7
  neyman run my-study/study.toml --until train       # simulate and train, nothing more
  neyman run my-study/study.toml --from toys         # tests, ensembles and coverage anew
  neyman run my-study/study.toml --fresh             # everything anew
  neyman run my-study/study.toml --json | jq .results.fit.parameters)");
  command->callback([arguments, &status] { status = run_study(*arguments); });
}

}  // namespace neyman::cli
