#include "run_study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "answer.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/progress.hpp"
#include "neyman/distributed/tasks.hpp"
#include "neyman/reports/summary.hpp"
#include "neyman/reports/terminal.hpp"
#include "output_folder.hpp"
#include "study_file.hpp"
#include "terminal.hpp"

namespace neyman::cli {

namespace {

namespace fs = std::filesystem;

/// The command that goes on where a run of so many ranks has stopped.
std::string resume_command(const RunArguments& arguments, std::size_t ranks = 1) {
  std::string command = ranks > 1 ? fmt::format("mpirun -n {} ", ranks) : "";
  command +=
      fmt::format("neyman {} {}", arguments.merge ? "merge" : "run", shell_word(arguments.study));
  for (const auto& part : arguments.parts) command += ' ' + shell_word(part);
  if (arguments.out) command += " --out " + shell_word(*arguments.out);
  if (arguments.seed) command += fmt::format(" --seed {}", *arguments.seed);
  if (arguments.quick) command += " --quick";
  if (arguments.part)
    command += fmt::format(" --part {}/{}", arguments.part->number, arguments.part->of);
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
    complain("neyman: {}; {} is done again\n", note.message, name);
    return;
  }
  if (quiet) return;
  const bool done = note.state == StageNote::State::done;
  const std::string state = note.state == StageNote::State::kept ? "kept"
                            : done ? reports::format_duration(note.seconds)
                                   : "skipped, " + note.message;
  if (done && !merit.empty())
    say("{:<16}{:<12}{}\n", name, state, merit);
  else
    say("{:<16}{}\n", name, state);
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

/// The files of parts that a folder has.
std::vector<std::string> parts_in(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code error;
  for (fs::directory_iterator at(fs::path(folder) / "parts", error), end; !error && at != end;
       at.increment(error))
    if (at->path().extension() == ".h5") out.push_back(at->path().string());
  std::sort(out.begin(), out.end());
  if (out.empty())
    throw AdvisedError(folder + "/parts: there are no parts",
                       "Make them with neyman run STUDY --part 1/10, 2/10 and so on.");
  return out;
}

StagedRun run_stages(const Study& study, const RunArguments& arguments, const std::string& out,
                     const std::vector<std::string>& parts, Communicator& ranks, Json& stages) {
  RunOptions options;
  options.ranks = &ranks;
  options.part = arguments.part;
  options.parts = parts;
  options.folder = out;
  options.from = arguments.from;
  options.until = arguments.until;
  options.fresh = arguments.fresh;
  options.figures = !arguments.no_figures;
  options.command = fmt::format("neyman run {} --seed {}{}", shell_word(arguments.study),
                                study.seed, study.quick ? " --quick" : "");
  ProgressBar bar(!arguments.talk.words() || !ranks.first());
  options.note = [&](const StageNote& note) {
    if (!ranks.first()) return;
    stages.push_back(to_json(note));
    if (!arguments.talk.json) tell(note, bar.take_merit(), arguments.talk.quiet);
  };
  return run(study, options);
}

void print_end(const StagedRun& done, const RunArguments& arguments, const std::string& out,
               bool colour) {
  if (!done.part.empty()) {
    auto merge = arguments;
    merge.merge = true;
    merge.part.reset();
    say("\nPart     {}\nWhen all {} parts are there:\n  {}\n", done.part, arguments.part->of,
        resume_command(merge));
    return;
  }
  if (!done.finished) {
    say("\nStopped after {}. To go on:\n  {}\n", arguments.until, resume_command(arguments));
    return;
  }
  say_coloured("\n" + reports::summary(done.results, colour));
  say("\nReport   {0}/report.html\nResults  {0}/results.json\n", out);
  if (fs::exists(fs::path(out) / "model.h5")) say("Model    {}/model.h5\n", out);
}

Json content(const StagedRun& done, const std::string& out, const Json& stages) {
  Json answer = {{"folder", out}, {"finished", done.finished}, {"stages", stages}};
  if (!done.part.empty()) answer["part"] = done.part;
  if (done.finished) answer["results"] = results_content(done.results, {})["results"];
  return answer;
}

/// Tells of an error. Where all ranks have come to it alike, the first one speaks for them; else
/// the one that has does, and ends the others, which wait for it.
int tell_of(Complaint complaint, const RunArguments& arguments, Communicator& ranks) {
  constexpr double patience = 5.0;  // seconds
  const std::string command = arguments.merge ? "merge" : "run";
  const bool together = ranks.meet(patience);
  if (together && !ranks.first()) return complaint.status;
  if (!together) complaint.message = fmt::format("rank {}: {}", ranks.rank(), complaint.message);
  const int status = tell(complaint, command, arguments.talk.json);
  std::fflush(stdout);
  std::fflush(stderr);
  if (!together) ranks.end_all(status);
  return status;
}

int run_on(Communicator& ranks, const RunArguments& arguments) {
  if (arguments.part && ranks.size() > 1)
    throw ArgumentError("run: --part is for jobs that run by themselves, not under mpirun");
  auto study = open_study(arguments.study);
  if (arguments.quick) quicken(study);
  if (arguments.seed) reseed(study, *arguments.seed);
  if (arguments.threads > 0 || ranks.size() > 1)
    set_threads(arguments.threads > 0 ? arguments.threads : threads_for(ranks));
  const auto out = arguments.out.value_or(default_output_folder(arguments.study, study.quick));
  from_first(ranks, [&] {
    prepare_output_folder(out);
    return std::string();
  });
  study.simulator->set_cache_folder(out + "/cache");
  const auto parts = arguments.merge && arguments.parts.empty() ? parts_in(out) : arguments.parts;

  const double start = seconds_now();
  Json stages = Json::array();
  try {
    const auto done = run_stages(study, arguments, out, parts, ranks, stages);
    const int status = !done.finished || done.results.fit.fit.ok() ? success : not_converged;
    if (!ranks.first()) return status;
    if (arguments.talk.json)
      print_answer(arguments.merge ? "merge" : "run", status, content(done, out, stages));
    if (!arguments.talk.words()) return status;
    // mpirun shows every rank a terminal, whatever its own output is.
    print_end(done, arguments, out, ranks.size() == 1 && colour_output());
    say("Took     {}\n", reports::format_duration(seconds_now() - start));
    return status;
  } catch (const Error& error) {
    auto complaint = complaint_about(error);
    complaint.resume = resume_command(arguments, ranks.size());
    complaint.advice = "Finished stages are kept. When this is mended, go on with:";
    if (complaint.status == interrupted) {
      complaint.message = fmt::format("interrupted; finished stages are kept in {}/stages", out);
      complaint.advice = "To go on:";
    }
    return tell_of(std::move(complaint), arguments, ranks);
  }
}

}  // namespace

std::string read_part(const std::string& text, std::optional<Part>& part) {
  const auto slash = text.find('/');
  std::size_t number = 0, of = 0;
  if (slash == std::string::npos || !CLI::detail::lexical_cast(text.substr(0, slash), number) ||
      !CLI::detail::lexical_cast(text.substr(slash + 1), of) || number < 1 || number > of)
    return "'" + text + "' is no part; the third of ten is 3/10";
  part = Part{number, of};
  return {};
}

int run_study(const RunArguments& arguments) {
  const auto ranks = connect();
  if (ranks->size() == 1) return run_on(*ranks, arguments);
  try {
    return run_on(*ranks, arguments);
  } catch (const std::exception& error) {
    return tell_of(complaint_about(error), arguments, *ranks);
  }
}

void RunArguments::add_to(CLI::App& command) {
  command.add_option("study", study, "The study file")->type_name("STUDY")->required();
  command
      .add_option("-o,--out", out,
                  "Folder for the results (default: out/ beside study.toml, out-X/ beside X.toml)")
      ->type_name("FOLDER");
  command.add_option("--seed", seed, "Use this seed instead of the study's")
      ->check(CLI::NonNegativeNumber);
  command.add_flag("--quick", quick,
                   "Try the study out with a tenth of its simulation, into out-quick/");
  command
      .add_option("--threads", threads,
                  "Threads to use (default: all); results are the same for any number")
      ->check(CLI::PositiveNumber);
  command.add_flag("--no-figures", no_figures, "Draw no figures");
  talk.add_to(command);
}

}  // namespace neyman::cli
