#include <fmt/format.h>

#include <memory>
#include <string>

#include "commands.hpp"
#include "neyman/pipeline/study.hpp"

namespace neyman::cli {

void add_check(CLI::App& app, int& status) {
  auto* command = app.add_subcommand("check", "Validate a study: every problem, with its line");
  auto path = std::make_shared<std::string>();
  command->add_option("study", *path, "The study file (TOML)")->required();
  command->footer("\nExample:\n  neyman check my-study/study.toml");
  command->callback([path, &status] {
    const auto study = read_study(*path);
    fmt::print("{}: no problems\n", *path);
    const std::string parameters = fmt::format("{} parameter{}", study.parameters.size(),
                                               study.parameters.size() == 1 ? "" : "s");
    if (study.mixture)
      fmt::print("  {}, {} components, {} simulated events, classifier {}, calibration {}\n",
                 parameters, study.mixture->components().size(), study.training_samples,
                 study.learning.classifier->kind(), study.learning.calibrator->kind());
    else
      fmt::print("  {}, {} features, {} simulated events ({}), classifier {}\n", parameters,
                 study.simulator->dimension(), study.training_samples,
                 study.parameterized.design->kind(),
                 study.parameterized.separable ? std::string("separable")
                                               : study.parameterized.classifier.classifier->kind());
    status = success;
  });
}

}  // namespace neyman::cli
