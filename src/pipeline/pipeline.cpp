#include "neyman/pipeline/pipeline.hpp"

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/version.hpp"
#include "neyman/data/feature_columns.hpp"
#include "pipeline/stages.hpp"

namespace neyman {

const std::vector<std::string>& stage_names() {
  static const std::vector<std::string> names = {"simulate", "train",    "calibrate", "fit",
                                                 "toys",     "diagnose", "report"};
  return names;
}

namespace {

/// All stages but the report.
pipeline::Lazy<Model> run_chain(const Study& study, pipeline::Chain& chain) {
  if (study.measurement) return pipeline::run_measurement(study, chain);
  return study.mixture ? pipeline::run_decomposed(study, chain)
                       : pipeline::run_parameterized(study, chain);
}

}  // namespace

Run run(const Study& study) {
  pipeline::check_whole("run", study);
  const RunOptions in_memory;
  pipeline::Chain chain(study, in_memory,
                        [&](Results& results) { pipeline::describe_study(study, results); });
  auto model = run_chain(study, chain);
  return {std::move(*model), std::move(chain.results())};
}

StagedRun run(const Study& study, const RunOptions& options) {
  pipeline::check_whole("run", study);
  if (options.part && pipeline::calibrates_on_demand(study))
    throw ArgumentError(
        "run: calibration.across is \"on-demand\", but must be another for a run in parts");
  pipeline::Chain chain(study, options, [&](Results& results) {
    pipeline::describe_study(study, results);
    results.version = version();
    results.command = options.command;
  });
  const auto model = run_chain(study, chain);
  if (options.part) return {std::move(chain.results()), false, chain.write_part()};
  if (options.folder.empty()) return {std::move(chain.results()), !chain.stopped()};
  const bool figures = study.figures && options.figures;
  auto report = pipeline::step_of(study, "report");
  report.inputs.value("command", options.command).value("figures", figures ? "drawn" : "none");
  chain.report(report, [&](Results& results) {
    return write_outputs(results, &*model, options.folder, figures);
  });
  if (!chain.stopped()) chain.forget_others();
  return {std::move(chain.results()), !chain.stopped()};
}

Results fit_data(const Model& model, const Samples& given, const std::string& source) {
  pipeline::check_whole("fit", model);
  Results results;
  const auto data =
      with_features("fit", given, model.feature_names, OtherColumns::leave_out, results.data_note);
  results.name = results.title = model.name;
  results.seed = model.seed;
  results.parameters = model.parameters;
  results.component_names = model.component_names;
  results.feature_names = model.feature_names;
  results.classifier = model.classifier;
  results.calibration = model.calibration;
  results.levels = model.levels;
  results.threads = threads();
  results.data_source = source;
  results.events = data.size();
  results.data = data.x;
  if (model.measurement)
    pipeline::fit_measurement(model, data, results);
  else if (model.ratio)
    pipeline::fit_decomposed(model, data, results);
  else
    pipeline::fit_parameterized(model, data, results);
  return results;
}

}  // namespace neyman
