#include <memory>
#include <string>

#include "commands.hpp"
#include "neyman/pipeline/pipeline.hpp"
#include "run_study.hpp"

namespace neyman::cli {

void add_run(CLI::App& app, int& status) {
  auto* command = app.add_subcommand("run", "Run a study: simulate, train, calibrate, fit, report");
  auto arguments = std::make_shared<RunArguments>();
  arguments->add_to(*command);
  auto* from = command->add_option("--from", arguments->from, "Do this stage and all after it anew")
                   ->check(CLI::IsMember(stage_names()));
  auto* until = command->add_option("--until", arguments->until, "Stop after this stage")
                    ->check(CLI::IsMember(stage_names()));
  auto* fresh =
      command->add_flag("--fresh", arguments->fresh, "Do all stages anew")->excludes(from);
  command
      ->add_option_function<std::string>(
          "--part",
          [arguments](const std::string& text) {
            const auto problem = read_part(text, arguments->part);
            if (!problem.empty()) throw CLI::ValidationError("--part", problem);
          },
          "Do one part of toys and surfaces, for merge")
      ->type_name("K/N")
      ->excludes(from)
      ->excludes(until)
      ->excludes(fresh);
  command->footer(R"(
Writes results.json, report.html, figures/, model.h5 and run.log. Runs of a simulator
that is a program are kept in cache/ and are not simulated again.

--quick makes everything small: a tenth of the events that are simulated or taken from files, and
of the datasets of tests, ensembles and coverage. The report says so; its figures are not results to use.

Stages: simulate, train, calibrate, fit, toys, diagnose, report. Each is kept in stages/ of the
folder when it is finished. Run again, and only what a change of the study, its files or its seed
touches is done again; after Ctrl-C (exit status 130), a crash or a full disk, the same command
goes on where the run stopped, with the same results.

On a cluster: under mpirun or srun all processes do one run together. Without MPI, jobs of a batch
system each do one part of the toys and surfaces (--part), and neyman merge does the rest. The
results are the same to the last bit.

Examples:
  neyman run my-study/study.toml
  neyman run my-study/study.toml --quick             # does it work, and how does it look?
  neyman run my-study/study.toml --seed 7 --out results-7
  neyman run my-study/study.toml --until train       # simulate and train, nothing more
  neyman run my-study/study.toml --from toys         # tests, ensembles and coverage anew
  neyman run my-study/study.toml --fresh             # everything anew
  neyman run my-study/study.toml --json | jq .results.fit.parameters
  mpirun -n 64 neyman run my-study/study.toml        # the same, by 64 processes together
  neyman run my-study/study.toml --part 3/10         # the third of ten jobs; then neyman merge)");
  command->callback([arguments, &status] { status = run_study(*arguments); });
}

}  // namespace neyman::cli
