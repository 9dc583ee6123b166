#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <string>
#include <vector>

#include "answer.hpp"
#include "commands.hpp"
#include "neyman/pipeline/pipeline.hpp"
#include "neyman/reports/terminal.hpp"
#include "study_file.hpp"
#include "terminal.hpp"

namespace neyman::cli {

namespace {

struct Learned {
  std::string classifier, calibration;
};

Learned learned_by(const Study& study) {
  if (study.mixture || study.measurement)
    return {study.learning.classifier->kind(), study.learning.calibrator->kind()};
  constexpr const char* models[] = {"learned", "separable", "density"};
  if (!study.parameterized.by_classifier())
    return {models[static_cast<int>(study.parameterized.model)], "smooth"};
  constexpr const char* across[] = {"none", "on-demand", "interpolate", "smooth"};
  return {study.parameterized.classifier.classifier->kind(),
          across[static_cast<int>(study.parameterized.classifier.calibration)]};
}

const Mixture* mixture_of(const Study& study) {
  return study.measurement ? study.measurement->mixture.get() : study.mixture.get();
}

Json describe(const Study& study) {
  const auto learned = learned_by(study);
  Json out = {{"name", study.name},
              {"seed", study.seed},
              {"parameters", study.parameters.names()},
              {"features", study.simulator->dimension()},
              {"simulated_events", study.training_samples},
              {"classifier", learned.classifier},
              {"calibration", learned.calibration}};
  if (!study.data.note.empty()) out["data_note"] = study.data.note;
  const auto plan = plan_simulation(study);
  Json planned = Json::object();
  for (const auto& [purpose, events] : plan.events) planned[purpose] = events;
  out["planned_events"] = std::move(planned);
  out["planned_total"] = plan.total();
  if (plan.seconds) out["planned_seconds"] = {plan.seconds->first, plan.seconds->second};
  if (!study.notes.empty()) out["warnings"] = study.notes;
  if (const auto* mixture = mixture_of(study)) out["components"] = mixture->names();
  if (!study.mixture) out["design"] = study.parameterized.design->kind();
  return out;
}

/// What the stages simulate: "5000 in all: 4500 simulated, 500 diagnostics".
std::string plan_words(const Study& study) {
  const auto plan = plan_simulation(study);
  std::vector<std::string> parts;
  for (const auto& [purpose, events] : plan.events)
    parts.push_back(fmt::format("{} {}", events,
                                purpose == "simulated"     ? "to learn from"
                                : purpose == "diagnostics" ? "for checks"
                                                           : "for " + purpose));
  auto out = fmt::format("{}{} events in all stages: {}", plan.open ? "at least " : "",
                         plan.total(), fmt::join(parts, ", "));
  if (plan.seconds) {
    const auto [low, high] = *plan.seconds;
    const auto shortest = reports::format_duration(low), longest = reports::format_duration(high);
    out += fmt::format("\n  some {}{} of simulation, by what its trial run took", shortest,
                       shortest == longest ? "" : " to " + longest);
  }
  return out;
}

void print_words(const Study& study, const std::string& path) {
  const auto learned = learned_by(study);
  const auto count = [](std::size_t n, const char* what) {
    return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
  };
  say("{}: no problems\n  {}, {}, {} simulated events{}\n  classifier {}, calibration {}\n", path,
      count(study.parameters.size(), "parameter"),
      mixture_of(study) != nullptr ? count(mixture_of(study)->components().size(), "component")
                                   : count(study.simulator->dimension(), "feature"),
      study.training_samples,
      study.mixture ? "" : fmt::format(" ({})", study.parameterized.design->kind()),
      learned.classifier, learned.calibration);
  if (!study.data.note.empty()) say("  {}\n", study.data.note);
  if (can_simulate(*study.simulator)) say("  {}\n", plan_words(study));
  for (const auto& note : study.notes) say("  ! {}\n", note);
}

}  // namespace

void add_check(CLI::App& app, int& status) {
  auto* command = app.add_subcommand("check", "Validate a study: every problem, with its line");
  struct Arguments {
    std::string study;
    Talk talk;
  };
  auto arguments = std::make_shared<Arguments>();
  command->add_option("study", arguments->study, "The study file")->type_name("STUDY")->required();
  arguments->talk.add_to(*command);
  command->footer(
      "\nExamples:\n  neyman check my-study/study.toml\n"
      "  neyman check my-study/study.toml --json | jq .error.problems");
  command->callback([arguments, &status] {
    const auto study = open_study(arguments->study);
    status = success;
    if (arguments->talk.json) print_answer("check", status, {{"study", describe(study)}});
    if (arguments->talk.words()) print_words(study, arguments->study);
  });
}

}  // namespace neyman::cli
