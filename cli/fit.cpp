#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "answer.hpp"
#include "commands.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/version.hpp"
#include "neyman/data/feature_columns.hpp"
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
  std::vector<std::string> columns;
  std::optional<std::string> format;
  bool drop_invalid = false;
  bool no_figures = false;
  Talk talk;
};

std::string model_advice(const std::string& path) {
  if (path.ends_with(".toml"))
    return fmt::format("That is a study. Its model, model.h5, is written by: neyman run {}", path);
  return "neyman fit takes the model.h5 that `neyman run` has written into its folder.";
}

struct Data {
  ReadResult read;
  std::string note;
};

Data read_data(const FitArguments& arguments, const Model& model) {
  ReadOptions options;
  options.weight = arguments.weights;
  options.on_invalid = arguments.drop_invalid ? OnInvalid::drop : OnInvalid::refuse;
  if (arguments.format) options.format = file_format_by_name(*arguments.format);
  const auto& chosen = arguments.columns;
  if (!chosen.empty() && chosen.size() != model.feature_names.size())
    throw ArgumentError(
        fmt::format("--columns: names {} columns, but must name {}: those that are {}",
                    chosen.size(), model.feature_names.size(), some_names(model.feature_names)));
  auto reading =
      find_features(arguments.data, options, chosen.empty() ? model.feature_names : chosen,
                    OtherColumns::leave_out);
  Data out{read_samples(arguments.data, reading.options), std::move(reading.note)};
  if (chosen.empty()) return out;
  out.read.samples.feature_names = model.feature_names;
  out.note = fmt::format("the columns {} are taken as {}", some_names(chosen),
                         some_names(model.feature_names));
  return out;
}

int fit_file(const FitArguments& arguments) {
  const auto model =
      advised(model_advice(arguments.model), [&] { return load_model(arguments.model); });
  auto data = [&] {
    try {
      return read_data(arguments, model);
    } catch (const InvalidValue& error) {
      throw AdvisedError(error.what(), "Such rows are left out with --drop-invalid.");
    } catch (const FileError& error) {
      throw AdvisedError(
          error.what(),
          fmt::format("The model was trained with the columns {}; --columns names those "
                      "that are these, in this order.",
                      some_names(model.feature_names)));
    }
  }();
  if (arguments.out) prepare_output_folder(*arguments.out);
  auto results = [&] {
    const ProgressBar bar(!arguments.talk.words());
    return fit_data(model, data.read.samples, arguments.data);
  }();
  results.data_note = data.note;
  const auto& read = data.read;
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
  say_coloured(reports::summary(results, colour_output()));
  if (arguments.out) say("\nReport   {0}/report.html\nResults  {0}/results.json\n", *arguments.out);
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
  command
      ->add_option("--columns", arguments->columns,
                   "Columns that are the model's features, in its order, where their names differ")
      ->type_name("NAME,…")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--format", arguments->format, "Of the data, where its extension names none")
      ->check(CLI::IsMember({"csv", "npy", "hdf5"}));
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
