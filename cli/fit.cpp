#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

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
  bool quiet = false;
};

int fit_file(const FitArguments& arguments) {
  const auto model = load_model(arguments.model);
  ReadOptions options;
  options.features = model.feature_names;
  options.weight = arguments.weights;
  options.on_invalid = arguments.drop_invalid ? OnInvalid::drop : OnInvalid::refuse;
  const auto read = read_samples(arguments.data, options);
  if (arguments.out) prepare_output_folder(*arguments.out);
  auto results = fit_data(model, read.samples, arguments.data);
  if (read.dropped > 0)
    results.warnings.push_back(
        fmt::format("{} of {} rows of the data were dropped: a value is "
                    "missing or not finite",
                    read.dropped, read.rows));
  results.version = version();
  results.command = fmt::format("neyman fit {} --data {}", arguments.model, arguments.data);
  if (arguments.out) write_outputs(results, nullptr, *arguments.out, !arguments.no_figures);
  if (!arguments.quiet) fmt::print("{}", reports::summary(results, colour_output()));
  if (arguments.out && !arguments.quiet)
    fmt::print("\nReport   {0}/report.html\nResults  {0}/results.json\n", *arguments.out);
  return results.fit.fit.ok() ? success : not_converged;
}

}  // namespace

void add_fit(CLI::App& app, int& status) {
  auto* command = app.add_subcommand("fit", "Fit new data with a trained model");
  auto arguments = std::make_shared<FitArguments>();
  command->add_option("model", arguments->model, "model.h5 of a run")->required();
  command->add_option("-d,--data", arguments->data, "Events: CSV, NPY or HDF5")->required();
  command->add_option("-o,--out", arguments->out,
                      "Also write results.json, report.html and figures into this folder");
  command->add_option("--weights", arguments->weights, "Column of event weights");
  command->add_flag("--drop-invalid", arguments->drop_invalid,
                    "Leave out rows with missing or infinite values, and count them");
  command->add_flag("--no-figures", arguments->no_figures, "Draw no figures");
  command->add_flag("-q,--quiet", arguments->quiet, "Print nothing but errors");
  command->footer(R"(
Nothing is simulated or trained.

Example:
  neyman fit my-study/out/model.h5 --data new.csv --out new-result)");
  command->callback([arguments, &status] { status = fit_file(*arguments); });
}

}  // namespace neyman::cli
