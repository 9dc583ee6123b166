#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "answer.hpp"
#include "commands.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/version.hpp"
#include "neyman/data/reader.hpp"
#include "neyman/pipeline/pipeline.hpp"
#include "neyman/reports/summary.hpp"
#include "output_folder.hpp"
#include "terminal.hpp"

namespace neyman::cli {

namespace {

struct FitArguments {
  std::string model, data;
  std::optional<std::string> out;
  std::string weights;
  bool drop_invalid = false;
  bool no_figures = false;
  Talk talk;
};

std::string model_advice(const std::string& path) {
  if (path.ends_with(".toml"))
    return fmt::format("That is a study. Its model, model.h5, is written by: neyman run {}", path);
  return "neyman fit takes the model.h5 that `neyman run` has written into its folder.";
}

int fit_file(const FitArguments& arguments) {
  const auto model =
      advised(model_advice(arguments.model), [&] { return load_model(arguments.model); });
  ReadOptions options;
  options.features = model.feature_names;
  options.weight = arguments.weights;
  options.on_invalid = arguments.drop_invalid ? OnInvalid::drop : OnInvalid::refuse;
  const auto read = advised(fmt::format("The model was trained with the columns {}.",
                                        fmt::join(model.feature_names, ", ")),
                            [&] { return read_samples(arguments.data, options); });
  if (arguments.out) prepare_output_folder(*arguments.out);
  auto results = [&] {
    const ProgressBar bar(!arguments.talk.words());
    return fit_data(model, read.samples, arguments.data);
  }();
  if (read.dropped > 0)
    results.warnings.push_back(
        fmt::format("{} of {} rows of the data were dropped: a value is "
                    "missing or not finite",
                    read.dropped, read.rows));
  results.version = version();
  results.command = fmt::format("neyman fit {} --data {}", arguments.model, arguments.data);
  if (arguments.out) write_outputs(results, nullptr, *arguments.out, !arguments.no_figures);
  const int status = results.fit.fit.ok() ? success : not_converged;
  if (arguments.talk.json) print_answer("fit", status, results_content(results, arguments.out));
  if (!arguments.talk.words()) return status;
  fmt::print("{}", reports::summary(results, colour_output()));
  if (arguments.out)
    fmt::print("\nReport   {0}/report.html\nResults  {0}/results.json\n", *arguments.out);
  return status;
}

}  // namespace

void add_fit(CLI::App& app, int& status) {
  auto* command = app.add_subcommand("fit", "Fit new data with a trained model");
  auto arguments = std::make_shared<FitArguments>();
  command->add_option("model", arguments->model, "model.h5 of a run")
      ->type_name("MODEL")
      ->required();
  command->add_option("-d,--data", arguments->data, "Events: CSV, NPY or HDF5")
      ->type_name("DATA")
      ->required();
  command
      ->add_option("-o,--out", arguments->out,
                   "Also write results.json, report.html and figures into this folder")
      ->type_name("FOLDER");
  command->add_option("--weights", arguments->weights, "Column of event weights");
  command->add_flag("--drop-invalid", arguments->drop_invalid,
                    "Leave out rows with missing or infinite values, and count them");
  command->add_flag("--no-figures", arguments->no_figures, "Draw no figures");
  arguments->talk.add_to(*command);
  command->footer(R"(
Nothing is simulated or trained. Of a study with yields (a measurement) it gives discovery and limits
too, as the run does; the toys that the study asks for are made again.

Example:
  neyman fit my-study/out/model.h5 --data new.csv --out new-result)");
  command->callback([arguments, &status] { status = fit_file(*arguments); });
}

}  // namespace neyman::cli
