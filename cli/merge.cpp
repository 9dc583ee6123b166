#include <memory>

#include "commands.hpp"
#include "merge_limit.hpp"
#include "run_study.hpp"

namespace neyman::cli {

void add_merge(CLI::App& app, int& status) {
  auto* command = app.add_subcommand("merge", "Put parts together and finish a run or a limit");
  auto arguments = std::make_shared<RunArguments>();
  arguments->merge = true;
  arguments->add_to(*command);
  command->get_option("study")
      ->description("The study file, or the workspace of a limit")
      ->type_name("STUDY|WORKSPACE");
  command
      ->add_option("parts", arguments->parts,
                   "The files of all parts (default: those in parts/ of the folder)")
      ->type_name("PART");
  command->footer(R"(
Jobs that neyman run STUDY --part K/N did by themselves, anywhere, each left a file. merge takes
toys and surfaces from these files, does what is left and writes results.json, report.html and all
else that neyman run does: the same results, to the last bit, as of one job. Options that change the
study, --seed and --quick, must be those of the parts.

Parts of another study, seed, data or version of neyman are refused, as are parts that are damaged,
missing, or there twice.

With the workspace of a measurement in place of a study, it does the same for the toys of
neyman limit --part K/N, with the options they were made with; --out is then a JSON file.

Examples:
  neyman run my-study/study.toml --until fit         # learn once, for all jobs
  neyman run my-study/study.toml --part 1/2          # two jobs, here or elsewhere
  neyman run my-study/study.toml --part 2/2
  neyman merge my-study/study.toml                   # parts in my-study/out/parts/
  neyman merge my-study/study.toml from-jobs/*.h5 --json
  neyman merge workspace.json --out limit.json       # toys in workspace-toys/)");
  command->callback([arguments, &status] {
    status = arguments->study.ends_with(".json")
                 ? merge_limit(arguments->study, arguments->parts, arguments->out, arguments->talk)
                 : run_study(*arguments);
  });
}

}  // namespace neyman::cli
