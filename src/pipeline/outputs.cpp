#include <fmt/format.h>

#include <filesystem>

#include "neyman/core/error.hpp"
#include "neyman/core/progress.hpp"
#include "neyman/data/atomic_file.hpp"
#include "neyman/pipeline/pipeline.hpp"
#include "neyman/reports/gnuplot.hpp"
#include "neyman/reports/results_json.hpp"
#include "neyman/reports/study_figures.hpp"
#include "neyman/reports/study_report.hpp"
#include "neyman/reports/summary.hpp"
#include "neyman/reports/terminal.hpp"

namespace neyman {

namespace {

namespace fs = std::filesystem;

std::vector<reports::DrawnFigure> draw_figures(Results& results, const fs::path& folder) {
  const double start = seconds_now();
  auto drawn = reports::draw_all(reports::study_figures(results), folder, results.warnings);
  results.timing.emplace_back("figures", seconds_now() - start);
  return drawn;
}

/// What was run, how long each stage took and what came out, for people.
std::string log_text(const Results& results) {
  std::string text = fmt::format("neyman {}\n{}\nseed {}, {} threads\n\n", results.version,
                                 results.command, results.seed, results.threads);
  for (const auto& [stage, seconds] : results.timing)
    text += fmt::format("{:<10} {}\n", stage, reports::format_duration(seconds));
  text += '\n';
  text += reports::summary(results, false);
  if (!results.simulator_log.empty()) text += "\nWhat failed runs of the simulator wrote\n";
  for (const auto& entry : results.simulator_log) text += fmt::format("\n{}\n", entry);
  return text;
}

}  // namespace

std::vector<std::string> write_outputs(Results& results, const Model* model,
                                       const std::string& folder, bool figures) {
  const fs::path out(folder);
  make_folder(out);
  std::vector<std::string> files;
  const auto place = [&](const char* name) { return files.emplace_back((out / name).string()); };
  // The model first: it is the one that cannot be made again from the others.
  if (model != nullptr && model->complete) save_model(*model, place("model.h5"));
  std::vector<reports::DrawnFigure> drawn;
  if (figures) drawn = draw_figures(results, out / "figures");
  const auto json = reports::results_json(results);
  for (const auto& path : json.not_finite)
    results.warnings.push_back(reports::not_finite_warning(path));
  write_file_atomically(place("results.json"), json.text);
  write_file_atomically(place("report.html"), reports::study_report(results, drawn));
  write_file_atomically(place("run.log"), log_text(results));
  for (const auto& figure : drawn)
    for (const auto& file : {figure.svg, figure.pdf, figure.script, figure.data})
      files.push_back(file.string());
  return files;
}

}  // namespace neyman
