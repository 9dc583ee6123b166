#include "neyman/pipeline/study.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/data/settings_file.hpp"

namespace neyman {

namespace {

ParameterSpace read_parameters(Settings settings) {
  auto table = settings.table("parameters");
  if (table.keys().empty())
    settings.problem("parameters", "is missing, but must name at least one parameter");
  std::vector<Parameter> parameters;
  for (const auto& name : table.keys()) {
    auto entry = table.table(name);
    const bool starts_well = std::isalpha(static_cast<unsigned char>(name[0])) || name[0] == '_';
    const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
      return std::isalnum(c) || c == '_';
    });
    if (!starts_well || !plain)
      table.problem(name, "is not a name for formulas, but must be letters, digits and _");
    const auto range = entry.numbers("range", {});
    if (!entry.has("range"))
      entry.problem("range", "is missing, but must be [lowest, highest]");
    else if (range.size() != 2 || !(range[0] < range[1]))
      entry.problem("range", range.size() == 2
                                 ? fmt::format("is [{}, {}], but must be [lowest, highest]",
                                               range[0], range[1])
                                 : "must be [lowest, highest]");
    Parameter parameter{name, 0.0, 1.0, {}};
    if (range.size() == 2 && range[0] < range[1]) {
      parameter.low = range[0];
      parameter.high = range[1];
    }
    if (entry.has("truth"))
      parameter.truth = entry.number("truth", Limits::between(parameter.low, parameter.high));
    parameters.push_back(parameter);
  }
  return ParameterSpace(std::move(parameters));
}

/// The weights must be allowed at the points that the run will use.
void check_weights(Settings simulator, const Mixture& mixture, const Study& study) {
  std::vector<std::vector<double>> points{study.reference};
  if (study.parameters.size() == 1) {
    points.push_back({study.parameters[0].low});
    points.push_back({study.parameters[0].high});
  }
  for (const auto& point : points) {
    try {
      mixture.weights(point);
    } catch (const ArgumentError& error) {
      std::vector<std::string> place;
      for (std::size_t p = 0; p < point.size(); ++p)
        place.push_back(fmt::format("{} = {}", study.parameters[p].name, point[p]));
      simulator.problem("weights", fmt::format("are not allowed at {}: {}",
                                               fmt::join(place, ", "), error.what()));
      return;
    }
  }
}

/// Components that depend on θ give other events from the same random numbers.
bool depends_on_parameters(const Distribution& component, const ParameterSpace& parameters) {
  std::vector<double> low, high;
  for (const auto& parameter : parameters) {
    const double range = parameter.high - parameter.low;
    low.push_back(parameter.low + 0.31 * range);
    high.push_back(parameter.low + 0.73 * range);
  }
  const auto draw = [&](const std::vector<double>& point) {
    Matrix x(16, component.dimension());
    RandomStream random(1, "dependence");
    component.sample(point, random, x);
    return x;
  };
  return !(draw(low) == draw(high));
}

std::shared_ptr<const Mixture> read_simulator(Settings settings, const ParameterSpace& parameters,
                                              const std::string& folder) {
  auto table = settings.table("simulator");
  if (!settings.has("simulator")) {
    settings.problem("simulator", "is missing, but must describe how events are simulated");
    return nullptr;
  }
  const auto before = settings.problems().size();
  auto distribution = make_distribution(table, parameters, folder);
  if (settings.problems().size() > before || !distribution) return nullptr;
  auto mixture = std::dynamic_pointer_cast<const Mixture>(distribution);
  if (!mixture) {
    table.problem("kind", fmt::format("is \"{}\", but must be \"mixture\": parameters are fitted "
                                      "where they are weights of a mixture",
                                      distribution->kind()));
    return nullptr;
  }
  for (std::size_t c = 0; c < mixture->components().size(); ++c)
    if (depends_on_parameters(*mixture->components()[c], parameters)) {
      table.problem("components",
                    fmt::format("contains '{}', which depends on a parameter, but parameters may "
                                "enter through the weights alone",
                                mixture->names()[c]));
      return nullptr;
    }
  const auto uses =
      MixtureWeights(mixture->weight_expressions(), mixture->components().size()).uses();
  for (std::size_t p = 0; p < parameters.size(); ++p)
    if (std::find(uses.begin(), uses.end(), p) == uses.end())
      table.problem("weights", fmt::format("do not depend on parameter '{}', but must",
                                           parameters[p].name));
  return mixture;
}

void read_data(Settings settings, Study& study) {
  auto table = settings.table("data");
  if (table.has("file")) study.data.file = table.text("file");
  study.data.events = static_cast<std::size_t>(table.integer("events", 5000, 1));
  study.data.options.features = table.texts("columns", {});
  study.data.options.weight = table.text("weights", "");
  study.data.options.on_invalid =
      table.choice("invalid", "refuse", {"refuse", "drop"}) == "drop" ? OnInvalid::drop
                                                                      : OnInvalid::refuse;
  if (!study.data.file) {
    for (const auto& parameter : study.parameters)
      if (!parameter.truth)
        table.problem("file", fmt::format("is missing, and data cannot be simulated because "
                                          "parameters.{} has no truth",
                                          parameter.name));
    return;
  }
  std::filesystem::path path(*study.data.file);
  if (path.is_relative()) path = std::filesystem::path(study.folder) / path;
  study.data.file = path.string();
  try {
    const auto columns = file_columns(*study.data.file, study.data.options);
    const auto check_column = [&](const char* key, const std::string& name) {
      if (std::find(columns.begin(), columns.end(), name) == columns.end())
        table.problem(key, fmt::format("names '{}', but the columns of {} are {}", name,
                                       path.filename().string(), fmt::join(columns, ", ")));
    };
    for (const auto& name : study.data.options.features) check_column("columns", name);
    if (!study.data.options.weight.empty()) check_column("weights", study.data.options.weight);
    const std::size_t features = study.data.options.features.empty()
                                     ? columns.size() - (study.data.options.weight.empty() ? 0 : 1)
                                     : study.data.options.features.size();
    if (study.simulator && features != study.simulator->dimension())
      table.problem("file", fmt::format("has {} feature columns, but the simulator makes {}",
                                        features, study.simulator->dimension()));
  } catch (const Error& error) {
    table.problem("file", fmt::format("cannot be used: {}", error.what()));
  }
}

void read_inference(Settings settings, Study& study, const std::vector<double>& truth) {
  auto table = settings.table("inference");
  study.levels = table.numbers("levels", study.levels, Limits::inside(0.0, 1.0));
  if (study.levels.empty()) table.problem("levels", "is empty, but must name a level");
  study.scan_points = static_cast<std::size_t>(table.integer("scan", 101, 3, 100000));
  if (!table.has("test")) return;
  auto test = table.table("test");
  SimpleTestConfig config;
  for (const char* key : {"null", "alternative"})
    if (!test.has(key)) test.problem(key, "is missing, but must be a point such as { gamma = 0 }");
  config.null = read_point(test.table("null"), study.parameters, truth);
  config.alternative = read_point(test.table("alternative"), study.parameters, truth);
  config.datasets = static_cast<std::size_t>(test.integer("datasets", 1000, 1));
  config.size = test.number("size", 0.05, Limits::inside(0.0, 1.0));
  study.test = config;
}

std::unique_ptr<Classifier> read_classifier(Settings table) {
  const auto before = table.problems().size();
  try {
    return make_classifier(table);
  } catch (const ArgumentError& error) {
    if (table.problems().size() == before) table.problem("kind", error.what());
    return nullptr;
  }
}

Study read(Settings settings, std::string folder, std::string file) {
  Study study;
  study.file = std::move(file);
  study.folder = std::move(folder);
  auto head = settings.table("study");
  study.name = head.text("name", "study");
  study.seed = static_cast<std::uint64_t>(head.integer("seed", 1));
  study.parameters = read_parameters(settings);
  std::vector<double> truth;
  for (const auto& parameter : study.parameters)
    truth.push_back(parameter.truth.value_or(0.5 * (parameter.low + parameter.high)));

  study.simulator = read_simulator(settings, study.parameters, study.folder);
  if (!settings.has("reference"))
    settings.problem("reference", "is missing, but must be the point θ1 of the denominator");
  study.reference = read_point(settings.table("reference"), study.parameters, truth);
  if (study.simulator) check_weights(settings.table("simulator"), *study.simulator, study);

  auto training = settings.table("training");
  study.training_samples = static_cast<std::size_t>(training.integer("samples", 200000, 1));
  study.learning.folds = static_cast<std::size_t>(training.integer("folds", 5, 2, 1000));
  if (study.simulator) {
    const std::size_t each = study.training_samples / study.simulator->components().size();
    if (each < 10 * study.learning.folds)
      training.problem("samples", fmt::format("is {}, but must be at least {}: ten events of each "
                                              "component in each fold",
                                              study.training_samples,
                                              10 * study.learning.folds *
                                                  study.simulator->components().size()));
  }

  study.learning.classifier = read_classifier(settings.table("classifier"));
  auto calibration = settings.table("calibration");
  study.learning.calibrator = make_calibrator(calibration);
  study.learning.replicas =
      static_cast<std::size_t>(calibration.integer("replicas", 40, 0, 10000));
  study.learning.normalise = calibration.flag("normalise", true);

  read_data(settings, study);
  read_inference(settings, study, truth);

  if (settings.has("ensemble")) {
    auto table = settings.table("ensemble");
    EnsembleConfig config;
    config.datasets = static_cast<std::size_t>(table.integer("datasets", 1000, 1));
    config.events = static_cast<std::size_t>(table.integer("events", 5000, 1));
    config.point = read_point(table.table("at"), study.parameters, truth);
    config.levels = study.levels;
    study.ensemble = config;
  }
  if (settings.has("compare")) {
    auto table = settings.table("compare");
    Study::Compare compare;
    compare.point = read_point(table.table("at"), study.parameters, truth);
    for (auto& entry : table.tables("classifiers"))
      compare.classifiers.push_back(read_classifier(entry));
    if (compare.classifiers.empty())
      table.problem("classifiers", "is missing, but must be a list such as [{ kind = \"mlp\" }]");
    compare.evaluation_events =
        static_cast<std::size_t>(table.integer("events", 100000, 1));
    study.compare = compare;
  }
  auto report = settings.table("report");
  study.title = report.text("title", study.name);
  study.figures = report.flag("figures", true);

  reseed(study, study.seed);
  settings.refuse_unread();
  settings.throw_if_problems();
  return study;
}

}  // namespace

void reseed(Study& study, std::uint64_t seed) {
  study.seed = seed;
  study.learning.seed = derive_seed(seed, "learning");
  if (study.test) study.test->seed = derive_seed(seed, "test");
  if (study.ensemble) study.ensemble->seed = derive_seed(seed, "ensemble");
}

std::vector<double> read_point(Settings table, const ParameterSpace& parameters,
                               const std::vector<double>& fallback) {
  auto point = fallback;
  for (std::size_t p = 0; p < parameters.size(); ++p)
    point[p] = table.number(parameters[p].name, fallback[p],
                            Limits::between(parameters[p].low, parameters[p].high));
  return point;
}

Study read_study(const std::string& path) {
  const auto folder = std::filesystem::path(path).parent_path().string();
  return read(read_settings(path), folder.empty() ? "." : folder, path);
}

Study parse_study(const std::string& text, const std::string& name, const std::string& folder) {
  return read(parse_settings(text, name), folder, name);
}

}  // namespace neyman
