#include "neyman/pipeline/study.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/data/feature_columns.hpp"
#include "neyman/data/sample_stream.hpp"
#include "neyman/data/settings_file.hpp"
#include "neyman/diagnostics/ratio_diagnostics.hpp"
#include "neyman/simulators/command.hpp"
#include "pipeline/stages.hpp"

namespace neyman {

namespace {

// Keys that are read for both kinds of studies.
constexpr Key classifier_key("classifier", "what learns the ratios");
constexpr Key design_key("design",
                         "where the θ of the events come from, where one model serves all θ: a "
                         "name or a table; a command has \"sobol\" by default");
constexpr const char* unknown_end =
    "has an end that is not finite, and training.design has problems";
constexpr Key calibration_key("calibration", "how scores become ratios");
constexpr Key normalise_key("normalise", "make the mean of r over the denominator one");

/// Reads a study section by section. A section that rests on one with problems is left aside, so
/// that one mistake is told once.
class StudyReader {
 public:
  StudyReader(Settings settings, std::string folder, std::string file,
              std::shared_ptr<const Samples> given = nullptr)
      : settings_(std::move(settings)), given_(std::move(given)) {
    study_.file = std::move(file);
    study_.folder = std::move(folder);
    for (const auto& key : settings_.keys())
      if (const auto* value = settings_.find(key)) study_.settings.emplace_back(key, *value);
  }

  Study read() {
    auto head = settings_.table({"study", "name and seed of the study"});
    study_.name = head.text({"name", "what the study is called"}, "study");
    study_.seed = static_cast<std::uint64_t>(
        head.integer({"seed", "everything random follows from it; neyman run --seed overrides it"},
                     static_cast<std::int64_t>(study_.seed)));
    read_parameters();
    read_simulator();
    read_training();
    read_reference();
    read_learning();
    read_measurement();
    read_data();
    read_inference();
    if (!study_.measurement) {
      read_ensemble();
      read_compare();
      read_coverage();
      read_diagnostics();
    }
    if (study_.simulator && !can_simulate(*study_.simulator)) refuse_simulation();
    auto report = settings_.table({"report", "the report and its figures"});
    study_.title =
        report.text({"title", "of the report; by default the study's name"}, study_.name);
    study_.figures = report.flag({"figures", "draw figures"}, study_.figures);
    if (settings_.describing()) return {};
    reseed(study_, study_.seed);
    settings_.refuse_unread();
    settings_.throw_if_problems();
    return std::move(study_);
  }

 private:
  void read_parameters() {
    const auto before = settings_.problems().size();
    auto table = settings_.table({"parameters",
                                  "what is fitted, by name, such as gamma = { range = [0, 1] }",
                                  Key::required});
    if (table.keys().empty() && settings_.problems().size() == before)
      settings_.problem("parameters",
                        "is missing, but must name at least one parameter, such as gamma = "
                        "{ range = [0, 1] }");
    std::vector<Parameter> parameters;
    for (const auto& name : table.keys()) {
      parameters.push_back(read_parameter(table, name));
      if (!table.is_table(name)) continue;
      auto entry = table.table(name);
      if (!entry.has("constraint")) continue;
      auto constraint = entry.table({"constraint", "what an auxiliary measurement says about it"});
      if (const auto made = make_constraint(constraint, parameters.size() - 1))
        study_.constraints.push_back(*made);
    }
    parameters_known_ = settings_.describing() || (parameters_known_ && !parameters.empty());
    study_.parameters = bounded(std::move(parameters));
    for (const auto& parameter : study_.parameters)
      truth_.push_back(parameter.truth.value_or(0.5 * (parameter.low + parameter.high)));
  }

  static bool is_open(const Parameter& parameter) {
    return !std::isfinite(parameter.low) || !std::isfinite(parameter.high);
  }

  /// Ranges without an end get one from where the design has θ.
  ParameterSpace bounded(std::vector<Parameter> parameters) {
    const auto open = std::find_if(parameters.begin(), parameters.end(), is_open);
    if (open == parameters.end()) return ParameterSpace(std::move(parameters));
    auto table = settings_.table("parameters");
    auto training = settings_.table("training");
    const auto refuse = [&](const char* why) {
      table.table(open->name).problem("range", why);
      parameters_known_ = false;
      for (auto& parameter : parameters)
        if (is_open(parameter)) parameter.low = 0.0, parameter.high = 1.0;
      return ParameterSpace(parameters);
    };
    if (!training.has("design"))
      return refuse(
          "has an end that is not finite, but must have two numbers unless training.design says "
          "where θ are, as a normal or a table does");
    const auto before = settings_.problems().size();
    std::vector<std::string> names;
    for (const auto& parameter : parameters) names.push_back(parameter.name);
    design_config_ = Design::read(training, design_key, names, study_.folder);
    if (settings_.problems().size() > before) return refuse(unknown_end);
    try {
      auto out = Design::bounded(parameters, *design_config_);
      for (const auto& parameter : out) {
        if (!parameter.truth) continue;
        if (*parameter.truth >= parameter.low && *parameter.truth <= parameter.high) continue;
        table.table(parameter.name)
            .problem("truth", fmt::format("is {}, but must be between {:.6g} and {:.6g}, where "
                                          "training.design has θ",
                                          *parameter.truth, parameter.low, parameter.high));
        parameters_known_ = false;
      }
      return out;
    } catch (const ArgumentError& error) {
      return refuse(("is not known: " + error.reason()).c_str());
    }
  }

  Parameter read_parameter(Settings& table, const std::string& name) {
    Parameter parameter{name, 0.0, 1.0, {}};
    auto entry = table.table({name, "a parameter, by the name that formulas use"});
    if (!table.is_table(name)) {
      parameters_known_ = false;
      return parameter;
    }
    try {
      const Expression name_in_a_formula(name, ParameterSpace({parameter}));
    } catch (const ArgumentError& error) {
      table.problem(name, "cannot be used in formulas: " + error.reason());
      parameters_known_ = false;
    }
    if (const auto open = open_range(entry)) {
      parameter.low = open->low;
      parameter.high = open->high;
    } else if (const auto range = entry.range(
                   {"range",
                    "[lowest, highest] value; the fit stays inside; an end may be inf where "
                    "training.design says where θ are"})) {
      parameter.low = range->first;
      parameter.high = range->second;
    } else {
      parameters_known_ = false;
    }
    const auto within =
        parameters_known_ ? Limits::between(parameter.low, parameter.high) : Limits::any();
    parameter.truth = entry.optional_number(
        {"truth", "marks figures; data are simulated at it where there is no file"}, within,
        is_open(parameter) ? 0.0 : 0.5 * (parameter.low + parameter.high));
    parameter.nuisance = entry.choice({"role", "a nuisance is profiled, and left out of contours"},
                                      "interest", {"interest", "nuisance"}) == "nuisance";
    parameter.periodic = entry.flag(
        {"periodic", "a phase or an angle: the range is its period, and its two ends are one"},
        false);
    return parameter;
  }

  /// A range of which an end is not finite; nothing of any other.
  static std::optional<FitRange> open_range(Settings& entry) {
    const auto* value = entry.find("range");
    const auto* list = value == nullptr ? nullptr : std::get_if<SettingValue::Array>(&value->data);
    if (list == nullptr || list->size() != 2) return std::nullopt;
    FitRange out;
    for (auto* end : {&out.low, &out.high}) {
      const auto& given = (*list)[end == &out.low ? 0 : 1].data;
      if (const auto* number = std::get_if<double>(&given))
        *end = *number;
      else if (const auto* whole = std::get_if<std::int64_t>(&given))
        *end = static_cast<double>(*whole);
      else
        return std::nullopt;
    }
    const bool open = std::isinf(out.low) || std::isinf(out.high);
    if (!open || !(out.low < out.high)) return std::nullopt;
    entry.skip("range");
    return out;
  }

  void read_simulator() {
    auto table = settings_.table({"simulator", "how events are made", Key::required});
    if (!settings_.has("simulator"))
      settings_.problem("simulator", "is missing, but must describe how events are simulated");
    if (!settings_.is_table("simulator") || !parameters_known_) return;
    const auto before = settings_.problems().size();
    const auto distribution = make_distribution(table, study_.parameters, study_.folder);
    if (settings_.problems().size() > before || !distribution) return;
    for (std::size_t p = 0; p < study_.parameters.size(); ++p) {
      if (depends_on(*distribution, study_.parameters, p)) continue;
      const auto& name = study_.parameters[p].name;
      if (distribution->depends_on(p).has_value() || !may_use(*settings_.find("simulator"), name))
        table.problem("", fmt::format("does not depend on parameter '{}', but must: what it does "
                                      "not depend on cannot be fitted{}",
                                      name,
                                      distribution->stored() != nullptr
                                          ? " (the files need a column with several values of it)"
                                      : distribution->kind() == "command"
                                          ? fmt::format("; write {{{}}} into the command", name)
                                          : ""));
      else
        study_.notes.push_back(
            fmt::format("the same random numbers gave the same events at different values of {}: "
                        "if the simulator does not use it, or it moves very few events, it cannot "
                        "be fitted",
                        name));
    }
    study_.simulator = distribution;
    auto mixture = std::dynamic_pointer_cast<const Mixture>(distribution);
    if (mixture && !mixture->yields().empty()) {
      study_.measurement.emplace();
      study_.measurement->mixture = std::move(mixture);
      auto parameters = settings_.table("parameters");
      for (const auto& parameter : study_.parameters)
        if (parameter.periodic)
          parameters.table(parameter.name)
              .problem("periodic",
                       "is not for a simulator with yields, whose parameters have ends");
      return;
    }
    // Where θ are shares of components, ratios between the components serve every θ.
    const auto is_free = [&](const DistributionPtr& component) {
      return !depends_on(*component, study_.parameters);
    };
    if (mixture && !wants_one_model() &&
        std::all_of(mixture->components().begin(), mixture->components().end(), is_free))
      study_.mixture = std::move(mixture);
    if (!study_.mixture) return;
    auto parameters = settings_.table("parameters");
    for (const auto& parameter : study_.parameters)
      refuse_in_mixture(parameters.table(parameter.name), "constraint");
  }

  /// Whether what describes a simulator could use a parameter: a formula has its name as a word, or
  /// it is made elsewhere. That it does not is proof; that events are equal is none, as a parameter
  /// may move few of them.
  static bool may_use(const SettingValue& value, const std::string& name) {
    if (const auto* text = std::get_if<std::string>(&value.data)) {
      const auto is_word = [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
      };
      if (*text == "plugin" || *text == "command") return true;
      for (auto at = text->find(name); at != std::string::npos; at = text->find(name, at + 1))
        if ((at == 0 || !is_word((*text)[at - 1])) &&
            (at + name.size() == text->size() || !is_word((*text)[at + name.size()])))
          return true;
      return false;
    }
    if (const auto* list = std::get_if<SettingValue::Array>(&value.data))
      return std::any_of(list->begin(), list->end(),
                         [&](const auto& entry) { return may_use(entry, name); });
    if (const auto* table = std::get_if<SettingValue::Table>(&value.data))
      return std::any_of(table->begin(), table->end(), [&](const auto& entry) {
        return entry.first == name || may_use(entry.second, name);
      });
    return std::holds_alternative<SettingValue::Object>(value.data);
  }

  /// What files of events cannot give.
  void refuse_simulation() {
    const auto refuse = [](Settings table, const std::string& key, const char* what) {
      if (table.has(key))
        table.problem(key, fmt::format("needs {}, but the simulator has only files of events; "
                                       "remove this key, or use a simulator of kind \"command\" or "
                                       "\"plugin\"",
                                       what));
    };
    for (const char* key : {"ensemble", "coverage", "compare"})
      refuse(settings_, key, "simulated datasets");
    auto inference = settings_.table("inference");
    refuse(inference, "test", "simulated datasets");
    for (auto& entry : inference.tables("hypotheses"))
      if (entry.integer("datasets", 0) > 0) refuse(entry, "datasets", "simulated datasets");
    auto training = settings_.table("training");
    for (const char* key : {"samples", "design", "fresh"})
      refuse(training, key, "events to be simulated for the training");
    auto calibration = settings_.table("calibration");
    if (calibration.is_text("across"))
      if (const auto across = calibration.text("across", "");
          across == "on-demand" || across == "interpolate")
        refuse(calibration, "across", "events simulated at further θ");
    auto data = settings_.table("data");
    refuse(data, "events", "simulated data");
    if (!study_.data.observed() && !data.has("file"))
      data.problem("file",
                   "is missing, but must name the observed events: the simulator has only files of "
                   "events, and the data cannot be simulated");
  }

  /// What belongs to one of the two kinds of studies, where it is not known which this is.
  static void skip(Settings table, std::initializer_list<const char*> keys) {
    for (const char* key : keys) table.skip(key);
  }

  /// What a measurement does not have.
  static void refuse_in_measurement(Settings table, const std::string& key) {
    if (!table.has(key)) return;
    table.skip(key);
    table.problem(key,
                  "is not for a simulator with yields, whose results are those of [measurement]");
  }

  /// What needs one model for all θ.
  static void refuse_in_mixture(Settings table, const std::string& key) {
    if (!table.has(key)) return;
    table.skip(key);
    table.problem(key,
                  "needs one model for all θ, but ratios between the components serve this "
                  "mixture; choose the other with kind = \"learned\" in [classifier]");
  }

  /// Whether the classifier's kind is a model of all θ at once; without marking the key as read.
  bool wants_one_model() const {
    const auto* table = settings_.find("classifier");
    if (table == nullptr) return false;
    const auto* entries = std::get_if<SettingValue::Table>(&table->data);
    if (entries == nullptr) return false;
    for (const auto& [key, value] : *entries)
      if (key == "kind")
        if (const auto* kind = std::get_if<std::string>(&value.data))
          return *kind == "learned" || *kind == "separable" || *kind == "density";
    return false;
  }

  static MixtureWeights weights_of(const Mixture& mixture) {
    return {mixture.weight_expressions(), mixture.components().size()};
  }

  /// A θ at which events are simulated or ratios are taken, so that the weights must be allowed.
  std::vector<double> point(Settings parent, const Key& of) {
    auto table = parent.table(of);
    const auto key = of.name;
    if (!parameters_known_) return truth_;
    const auto before = settings_.problems().size();
    auto point = read_point(table, study_.parameters, truth_);
    if (settings_.problems().size() > before || !study_.mixture) return point;
    try {
      weights_of (*study_.mixture)(point);
    } catch (const ArgumentError& error) {
      parent.problem(
          key, fmt::format("is {}, where the weights of the simulator are not "
                           "allowed: {}",
                           pipeline::describe_point(study_.parameters, point), error.reason()));
    }
    return point;
  }

  void read_reference() {
    const bool optional = study_.simulator && !study_.mixture;
    if (!settings_.has("reference") && optional) return;
    if (study_.measurement) return refuse_in_measurement(settings_, "reference");
    if (!settings_.has("reference") && parameters_known_ && study_.mixture) {
      try {
        study_.reference = default_reference(study_.parameters, weights_of(*study_.mixture));
      } catch (const ArgumentError& error) {
        settings_.problem("reference", error.reason());
      }
      return;
    }
    const Key reference(
        "reference",
        "θ1 of the denominator of the ratios; absent, for a mixture: the middle of the ranges, or "
        "where a component has no share there, the middle of where all have one");
    if (one_model()) read_denominator(settings_.table(reference));
    if (!study_.parameterized.classifier.denominator_design ||
        study_.parameterized.classifier.denominator == Denominator::parameterized)
      study_.reference = point(settings_, reference);
  }

  using Denominator = ParameterizedClassifierRatio::Denominator;

  /// θ1 that is not one point.
  void read_denominator(Settings table) {
    const Key design(
        "design",
        "θ1 from a design of its own, where one model serves all θ: the denominator is "
        "the average over it"),
        parameterized("parameterized",
                      "the classifier is told θ1 as well, and learns the ratio of any two θ; θ1 "
                      "comes from `design`, by default that of the training");
    if (settings_.describing()) {
      Design::from(table, design, study_.parameters, study_.folder, "");
      table.flag(parameterized, false);
      return;
    }
    if (!can_simulate(*study_.simulator) || !parameters_known_) return;
    auto& config = study_.parameterized.classifier;
    if (table.has("design"))
      config.denominator_design = Design::from(table, design, study_.parameters, study_.folder, "");
    if (table.flag(parameterized, false))
      config.denominator = Denominator::parameterized;
    else if (config.denominator_design)
      for (const auto& parameter : study_.parameters)
        if (table.has(parameter.name)) {
          table.skip(parameter.name);
          table.problem(parameter.name,
                        "gives one θ1 beside a design of them; leave one of them out, or add "
                        "parameterized = true");
        }
  }

  void read_training() {
    auto table = settings_.table({"training", "what is simulated to learn from"});
    study_.training_samples = table.count(
        {"samples", "simulated events in all, shared equally by the components of a mixture"},
        study_.training_samples, 1);
    const bool mixture = study_.mixture != nullptr || study_.measurement || !study_.simulator;
    const auto folds = table.count(
        {"folds", "of the cross-fitting; 2 by default where one model serves all θ"},
        mixture ? study_.learning.folds : study_.parameterized.separable.folds, 2, 1000);
    study_.learning.folds = study_.parameterized.separable.folds =
        study_.parameterized.classifier.folds = folds;
    const Key fresh("fresh",
                    "for a classifier with θ as input: each fold has events of its own, new in "
                    "every epoch");
    if (settings_.describing()) {
      Design::from(table, design_key, study_.parameters, study_.folder);
      table.flag(fresh, study_.parameterized.classifier.fresh);
      return;
    }
    if (!study_.simulator) return skip(table, {"design", "fresh"});
    std::size_t least = 100 * folds;
    if (!can_simulate(*study_.simulator)) study_.training_samples = stored_events();
    if (study_.measurement) {
      least = 10 * folds * study_.measurement->mixture->components().size();
      refuse_in_measurement(table, "fresh");
      if (can_simulate(*study_.simulator)) {
        study_.parameterized.design = std::make_shared<const Design>(design_of(table));
        check_design(table);
      } else {
        study_.parameterized.design = std::make_shared<const Design>(study_.parameters);
        skip(table, {"samples", "design"});
      }
    } else if (mixture) {
      least = 10 * folds * study_.mixture->components().size();
    } else if (const auto* stored = study_.simulator->stored()) {
      skip(table, {"samples", "design", "fresh"});
      if (!stored->theta.empty())
        study_.parameterized.design =
            std::make_shared<const Design>(empirical_design(*stored, study_.parameters));
      if (!stored->theta.empty() && study_.parameterized.design->single())
        settings_.problem("simulator", "has events at one θ, but must have several θ");
    } else {
      // With few θ, many events each, evenly spread ones leave fewer gaps.
      const bool spread = !table.has("design") && study_.simulator->runs().events > 1;
      study_.parameterized.design = std::make_shared<const Design>(
          spread ? Design(study_.parameters, {.kind = Design::Kind::sobol}) : design_of(table));
      check_design(table);
      study_.parameterized.classifier.fresh =
          table.flag(fresh, study_.parameterized.classifier.fresh);
    }
    if (study_.training_samples < least)
      table.problem(
          "samples",
          fmt::format("is {}, but must be at least {}: {} in each fold", study_.training_samples,
                      least, mixture ? "ten events of each component" : "a hundred events"));
    study_.parameterized.classifier.samples = study_.training_samples;
  }

  /// The design of the training, which ranges without an end have asked for before.
  Design design_of(Settings& training) {
    if (!design_config_)
      return Design::from(training, design_key, study_.parameters, study_.folder);
    try {
      return {study_.parameters, *design_config_};
    } catch (const ArgumentError& error) {
      training.problem("design", "does not hold: " + error.reason());
      return Design(study_.parameters);
    }
  }

  /// The events that files hold.
  std::size_t stored_events() const {
    const auto events = [](const Distribution& of) {
      if (const auto stream = of.stream()) return stream->rows();
      const auto* stored = of.stored();
      return stored == nullptr ? std::size_t{0} : stored->size();
    };
    std::size_t sum = events(*study_.simulator);
    for (const auto& part : study_.simulator->parts()) sum += events(*part);
    return sum;
  }

  /// A run should not stop at a θ of the design that the simulator does not allow.
  void check_design(Settings table) {
    const auto& design = *study_.parameterized.design;
    if (design.single()) {
      table.problem("design", "is one point, but must be several θ: one model is learned for all");
      return;
    }
    // A simulator that is slow to start was tried once when it was made.
    if (study_.simulator->runs().at_once > 0) return;
    constexpr std::size_t trials = 256, dear = 32;
    try {
      simulate(*study_.simulator, study_.parameters, design,
               study_.simulator->trial() ? dear : trials, study_.seed, "check");
    } catch (const ArgumentError& error) {
      settings_.problem("simulator",
                        "cannot be used in all of the parameters' ranges: " + error.reason());
    } catch (const SimulatorError& error) {
      settings_.problem("simulator", fmt::format("cannot be used in all of the parameters' ranges: "
                                                 "{}",
                                                 error.what()));
    }
    take_tally(*study_.simulator);  // these are no events of the study
  }

  /// What `make` makes of a table; null where it cannot.
  template <class Make>
  auto made(Settings table, Make&& make) -> decltype(make(table)) {
    const auto before = settings_.problems().size();
    try {
      return make(table);
    } catch (const ArgumentError& error) {
      if (settings_.problems().size() == before) table.problem("", error.reason());
      return nullptr;
    }
  }

  std::unique_ptr<Classifier> classifier(Settings table) {
    return made(table, [](const Settings& from) { return make_classifier(from); });
  }

  /// Whether keys for one model for all θ belong here.
  bool one_model() const {
    return settings_.describing() || (study_.simulator && !study_.mixture && !study_.measurement);
  }

  /// Whether events are trained on as they are read from the disk.
  bool streams() const {
    if (!study_.simulator) return false;
    const auto parts = study_.simulator->parts();
    return study_.simulator->stream() != nullptr ||
           std::any_of(parts.begin(), parts.end(),
                       [](const auto& part) { return part->stream() != nullptr; });
  }

  void check_stream(const Classifier* classifier) {
    if (streams() && (classifier == nullptr || !classifier->streams()))
      settings_.problem("classifier",
                        "learns from events in memory, but the files stream: use kind = \"mlp\" or "
                        "an ensemble of it, or leave stream out");
  }

  void read_learning() {
    if (one_model()) read_parameterized();
    if (study_.simulator && !study_.mixture && !study_.measurement) return;
    if (!study_.simulator && wants_one_model()) {
      settings_.skip("classifier");
      settings_.skip("calibration");
      return;
    }
    study_.learning.classifier = classifier(settings_.table(classifier_key));
    if (study_.learning.classifier) check_stream(study_.learning.classifier.get());
    auto table = settings_.table(calibration_key);
    study_.learning.calibrator =
        made(table, [](const Settings& from) { return make_calibrator(from); });
    study_.learning.replicas = table.count({"replicas",
                                            "of a mixture, for the uncertainty from finite "
                                            "simulation; 0: not estimated; 10 by default "
                                            "in a measurement"},
                                           study_.learning.replicas, 0, 10000);
    study_.learning.normalise = table.flag(normalise_key, study_.learning.normalise);
    if (!study_.simulator) skip(table, {"across", "events"});
  }

  /// What is measured, and how shapes are learned.
  void read_measurement() {
    auto table = settings_.table(
        {"measurement", "limits and tests, where the simulator has yields: all has defaults"});
    auto shapes = settings_.table(
        {"shapes", "the separable networks of a measurement, which learn how shapes move"});
    if (!settings_.describing() && !study_.measurement) {
      for (const char* key : {"measurement", "shapes"}) {
        if (!settings_.has(key)) continue;
        settings_.skip(key);
        if (study_.simulator)
          settings_.problem(key,
                            "is for a simulator of kind \"mixture\" with yields, but this one has "
                            "none");
      }
      return;
    }
    Study::Measurement none;
    auto& out = settings_.describing() ? none : *study_.measurement;
    const auto name = table.text(
        {"interest", "the parameter that limits and tests are for; absent: the first"}, "");
    if (!name.empty())
      if (const auto index = parameter_index(table, "interest", name)) out.interest = *index;
    out.options.level =
        table.number({"level", "of the upper limit"}, out.options.level, Limits::inside(0.0, 1.0));
    out.options.statistic = test_statistic_named(table.choice(
        {"statistic", "of the upper limit"}, to_string(out.options.statistic), {"q", "q-tilde"}));
    out.options.toys = table.count(
        {"toys", "simulated at each value of a scan for the limit; 0: asymptotic formulae alone"},
        out.options.toys, 0);
    out.options.scan_points =
        table.count({"scan", "values of that scan"}, out.options.scan_points, 2, 1000);
    out.learning.simulated =
        table.count({"simulated", "events that normalise shapes and that toys are drawn from"},
                    out.learning.simulated, 1000);
    const auto network = SeparableRatio::Config::from(shapes);
    out.learning.members = shapes.count({"members", "networks of each shape, whose mean is taken"},
                                        out.learning.members, 1, 100);
    out.learning.ratios = study_.learning;
    // Each replica is a model of its own, with its normalisations.
    constexpr std::size_t few_replicas = 10;
    if (!settings_.table("calibration").has("replicas"))
      out.learning.ratios.replicas = few_replicas;
    out.learning.shape = network;
    out.learning.shape.folds = std::min<std::size_t>(study_.learning.folds, network.folds);
    out.nominal = truth_;
    if (settings_.describing() || !study_.measurement) return;
    for (const char* key : {"ensemble", "coverage", "compare", "diagnostics"})
      refuse_in_measurement(settings_, key);
    auto inference = settings_.table("inference");
    for (const char* key : {"contours", "surface", "bayesian", "hypotheses", "test"})
      refuse_in_measurement(inference, key);
    study_.diagnostics.which.clear();
    check_components();
  }

  /// Components whose events do not go together.
  void check_components() {
    const auto& mixture = *study_.measurement->mixture;
    auto tables = settings_.table("simulator").tables("components");
    for (std::size_t c = 0; c < tables.size(); ++c) {
      const auto& component = *mixture.components()[c];
      if (component.stored() != nullptr && !component.stored()->theta.empty())
        tables[c].problem("file",
                          "has columns of parameters, but must hold the events at their nominal "
                          "values in a measurement; those over their ranges belong in across (a "
                          "feature with the name of a parameter is one where columns names it)");
    }
  }

  /// One model for all θ at once, or any classifier with θ as input.
  void read_parameterized() {
    auto table = settings_.table(classifier_key);
    auto calibration = settings_.table(calibration_key);
    const bool by_classifier = table.has("kind") && !wants_one_model();
    if (!by_classifier || settings_.describing()) read_one_model(table, calibration);
    auto& learned = study_.parameterized;
    if (by_classifier) {
      learned.model = Study::Parameterized::Model::classifier;
      read_classifier_across(table, calibration);
    }
    if (!by_classifier || learned.classifier.classifier)
      check_stream(by_classifier ? learned.classifier.classifier.get() : nullptr);
  }

  void read_one_model(Settings table, Settings calibration) {
    using Model = Study::Parameterized::Model;
    const auto& other = study_.parameterized.classifier;
    if (other.denominator_design || other.denominator == Denominator::parameterized)
      settings_.problem("reference",
                        "chooses a denominator, on which this likelihood does not depend; leave it "
                        "out, or use another classifier, such as kind = \"mlp\"");
    auto& out = study_.parameterized;
    const std::size_t folds = out.separable.folds;
    const Kinds kinds{
        "across",
        "which classifier; by default \"mlp\" for mixtures, \"learned\" where one model serves "
        "all θ",
        "learned",
        {{"learned",
          "several models across θ, of which held-out events choose; keys other than "
          "effort are the separable one's"},
         {"separable", "a network of sums of products of functions of x and of θ"},
         {"density", "a conditional density of the features, or of the parameters"}}};
    table.by_kind(kinds, [&](const std::string& kind, const Settings& own) {
      if (kind == "separable") {
        out.model = Model::separable;
        out.separable = SeparableRatio::Config::from(own);
      } else if (kind == "density") {
        out.model = Model::density;
        out.density = DensityRatio::Config::from(own);
      } else {
        out.model = Model::learned;
        out.learned = LearnedRatio::Config::from(own);
      }
      return true;
    });
    const auto& angles = out.model == Model::separable ? out.separable.periodic
                         : out.model == Model::density ? out.density.periodic
                                                       : out.learned.separable.periodic;
    if (study_.simulator && !angles.empty()) {
      const auto names = pipeline::feature_names_of(*study_.simulator);
      for (const auto& angle : angles)
        if (std::find(names.begin(), names.end(), angle.name) == names.end())
          table.problem("periodic", unknown_name(angle.name, "a feature", names));
    }
    if (settings_.table("training").has("folds"))
      out.separable.folds = out.learned.separable.folds = folds;
    if (calibration.has("across") && !settings_.describing())
      if (const auto across = calibration.text("across", "smooth"); across != "smooth")
        calibration.problem("across", fmt::format("is \"{}\", but one model of all θ is always "
                                                  "calibrated smoothly across θ (\"smooth\")",
                                                  across));
    refuse_calibrator(calibration);
    out.separable.normalise = out.learned.separable.normalise =
        calibration.flag(normalise_key, out.separable.normalise);
  }

  void read_classifier_across(Settings table, Settings calibration) {
    using Across = ParameterizedClassifierRatio::Across;
    auto& config = study_.parameterized.classifier;
    config.classifier = classifier(table);
    config.reference = study_.reference;
    // With files there are no events of one point: the average over their θ is the denominator.
    const bool one =
        !study_.reference.empty() && study_.simulator && study_.simulator->stored() == nullptr;
    if (one && config.denominator != Denominator::parameterized)
      config.denominator = Denominator::point;
    const auto across =
        calibration.choice({"across",
                            "how the calibration goes from one θ to another, for a classifier with "
                            "θ as input: one smooth model for all θ, simulated on demand at each, "
                            "interpolated between those of a grid, or none"},
                           "smooth", {"smooth", "on-demand", "interpolate", "none"});
    config.calibration = across == "smooth"        ? Across::smooth
                         : across == "on-demand"   ? Across::on_demand
                         : across == "interpolate" ? Across::interpolate
                                                   : Across::none;
    const bool interpolated = settings_.describing() || config.calibration == Across::interpolate;
    if (!interpolated && config.calibration != Across::on_demand)
      return refuse_calibrator(calibration);
    config.calibration_events = calibration.count(
        {"events", "across = \"on-demand\" or \"interpolate\": simulated on each side"},
        config.calibration_events, 100);
    if (interpolated) config.interpolation = InterpolatedCalibration::Config::from(calibration);
    config.calibrator =
        made(calibration, [](const Settings& from) { return make_calibrator(from); });
  }

  /// Where no calibrator of one θ is used.
  static void refuse_calibrator(Settings calibration) {
    if (!calibration.has("kind")) return;
    calibration.skip("kind");
    calibration.problem("kind",
                        "is for mixtures and for across = \"on-demand\" or \"interpolate\", but "
                        "here one calibration serves all θ");
  }

  void read_data() {
    auto table = settings_.table({"data", "the observed events"});
    auto& data = study_.data;
    const auto before = settings_.problems().size();
    const auto files = read_file_names(
        table,
        {"file",
         "CSV, NPY or HDF5 (sims.h5:group/dataset names a table inside), a list of files, or a "
         "pattern such as \"observed/*.csv\"; absent: simulated at the truth"},
        study_.folder);
    data.events =
        table.count({"events", "how many to simulate where there is no file"}, data.events, 1);
    data.options.features = table.texts(
        {"columns",
         "the columns that are the features, in the simulator's order; absent: those with the "
         "simulator's names, in whatever order"},
        {});
    data.options.weight = table.text({"weights", "a column of event weights"}, "");
    const auto format = table.choice({"format", "of the files"}, "by-extension",
                                     {"by-extension", "csv", "npy", "hdf5"});
    if (format != "by-extension") data.options.format = file_format_by_name(format);
    data.options.on_invalid = table.choice({"invalid", "rows with missing or infinite values"},
                                           "refuse", {"refuse", "drop"}) == "drop"
                                  ? OnInvalid::drop
                                  : OnInvalid::refuse;
    if (settings_.problems().size() > before) return;
    if (study_.measurement) refuse_in_measurement(table, "events");
    if (given_) return take_given(table);
    if (files.empty() && study_.simulator && !can_simulate(*study_.simulator)) return;
    if (!table.has("file")) {
      auto parameters = settings_.table("parameters");
      for (const auto& parameter : study_.parameters)
        if (parameters_known_ && !parameter.truth)
          parameters.table(parameter.name)
              .problem("truth",
                       "is missing, but must be given where data.file is not: the data "
                       "are then simulated at the truth");
      return;
    }
    if (files.empty()) table.problem("file", "names no file, but must name one at least");
    try {
      for (const auto& file : files) check_columns(table, file, files.size() > 1);
      if (settings_.problems().size() == before) check_rows();
    } catch (const ArgumentError& error) {
      table.problem("file", "cannot be used: " + error.reason());
    } catch (const InvalidValue& error) {
      table.problem(
          "file",
          fmt::format("cannot be used: {}; invalid = \"drop\" leaves such rows out", error.what()));
    } catch (const Error& error) {
      table.problem("file", fmt::format("cannot be used: {}", error.what()));
    }
  }

  OtherColumns other_columns() const {
    return study_.simulator->feature_names().empty() ? OtherColumns::refuse
                                                     : OtherColumns::leave_out;
  }

  /// Events that a program holds.
  void take_given(Settings table) {
    auto& data = study_.data;
    if (!data.options.weight.empty())
      table.problem("weights",
                    "names a column of files, but the data are in memory; give them with "
                    "their weights");
    if (!study_.simulator) return;
    const auto wanted = wanted_features(table);
    if (!wanted) return;
    try {
      given_->check("data");
      data.given = std::make_shared<const Samples>(with_features(
          "data", *given_, *wanted,
          data.options.features.empty() ? other_columns() : OtherColumns::leave_out, data.note));
      data.events = data.given->size();
    } catch (const ArgumentError& error) {
      table.problem("", fmt::format("cannot be used: {}", error.reason()));
    }
  }

  /// The names of the columns that are the features: those of the study, else the simulator's.
  std::optional<std::vector<std::string>> wanted_features(Settings& table) const {
    const auto& chosen = study_.data.options.features;
    const auto names = pipeline::feature_names_of(*study_.simulator);
    if (chosen.empty()) return names;
    if (chosen.size() != names.size()) {
      table.problem("columns",
                    fmt::format("names {}, but must name a column for each feature of the "
                                "simulator: {}",
                                some_names(chosen), some_names(names)));
      return std::nullopt;
    }
    // Where somebody named the features, a name in another's place is a slip.
    if (study_.simulator->feature_names().empty()) return chosen;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const auto at = std::find(names.begin(), names.end(), chosen[i]);
      if (at == names.end() || chosen[i] == names[i]) continue;
      table.problem(
          fmt::format("columns[{}]", i),
          fmt::format("is \"{}\", but the simulator's feature there is {}: its features are "
                      "{}, which are found by their names without columns",
                      chosen[i], names[i], some_names(names)));
      return std::nullopt;
    }
    return chosen;
  }

  void check_columns(Settings table, const std::string& file, bool several) {
    auto& data = study_.data;
    const auto found = table_columns(file, data.options);
    const auto name = std::filesystem::path(file).filename().string();
    const auto check_column = [&](const std::string& key, const std::string& column) {
      if (std::find(found.names.begin(), found.names.end(), column) == found.names.end())
        table.problem(key, fmt::format("is \"{}\", but the columns of {} are {}", column, name,
                                       some_names(found.names)));
    };
    const auto before = settings_.problems().size();
    for (std::size_t i = 0; i < data.options.features.size(); ++i)
      check_column(fmt::format("columns[{}]", i), data.options.features[i]);
    if (!data.options.weight.empty()) check_column("weights", data.options.weight);
    if (!study_.simulator || settings_.problems().size() > before) return;
    const auto wanted = wanted_features(table);
    if (!wanted) return;
    const bool chosen = !data.options.features.empty();
    try {
      auto reading = find_features(file, data.options, *wanted,
                                   chosen ? OtherColumns::leave_out : other_columns());
      data.files.push_back({file, std::move(reading.options)});
      // What the study itself says of the columns needs no telling.
      if (!(chosen && found.named) && data.note.empty()) data.note = std::move(reading.note);
    } catch (const FileError&) {
      auto columns = found.names;
      std::erase(columns, data.options.weight);
      auto first = *wanted;
      const auto there = [&](const std::string& of) {
        return std::find(columns.begin(), columns.end(), of) != columns.end();
      };
      if (!std::all_of(first.begin(), first.end(), there))
        first.assign(columns.begin(), columns.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                            columns.size(), wanted->size())));
      const auto have = found.named ? "the columns " + some_names(columns)
                                    : fmt::format("{} columns without names", columns.size());
      const auto choice =
          columns.size() < wanted->size()
              ? ""
              : fmt::format("; say which are these, in this order, with columns = [\"{}\"]",
                            fmt::join(first, "\", \""));
      table.problem("file", fmt::format("has {}{}, but the features of the simulator are {}{}",
                                        several ? fmt::format("in {} ", name) : "", have,
                                        some_names(*wanted), choice));
    }
  }

  /// Reads the events once and counts them: a run should not stop at a row that could have been
  /// seen before.
  void check_rows() {
    study_.data.events = 0;
    for (const auto& file : study_.data.files) {
      SampleReader reader(file.name, file.options);
      while (const auto block = reader.next()) study_.data.events += block->size();
    }
  }

  void read_inference() {
    auto table = settings_.table({"inference", "intervals, contours and tests"});
    study_.levels = table.numbers({"levels", "confidence levels of the intervals"}, study_.levels,
                                  Limits::inside(0.0, 1.0));
    if (study_.levels.empty()) table.problem("levels", "is empty, but must name a level");
    constexpr double least = 1e-6, most = 1.0 - 1e-12;  // what an interval can be found for
    for (std::size_t l = 0; l < study_.levels.size(); ++l)
      if (study_.levels[l] < least || study_.levels[l] > most)
        table.problem(
            fmt::format("levels[{}]", l),
            fmt::format("is {}, but must be between {} and {}", study_.levels[l], least, most));
    study_.scan_points =
        table.count({"scan", "points of the −2 log Λ curve"}, study_.scan_points, 3, 100000);
    if (one_model()) read_surfaces(table);
    for (const char* key : {"contours", "surface", "bayesian", "hypotheses"}) {
      if (study_.mixture) refuse_in_mixture(table, key);
      if (!study_.simulator) skip(table, {key});
    }
    if (study_.measurement) return;
    auto test = table.table(
        {"test", "Neyman and Pearson's test of one point against another, from simulated data"});
    if (!table.is_table("test")) return;
    const auto before = settings_.problems().size();
    SimpleTestConfig config;
    for (const char* key : {"null", "alternative"})
      if (!test.has(key) && parameters_known_)
        test.problem(key, fmt::format("is missing, but must be a point such as {{ {} }}",
                                      pipeline::describe_point(study_.parameters, truth_)));
    config.null = point(test, {"null", "θ of the null hypothesis", Key::required});
    config.alternative = point(test, {"alternative", "θ of the other", Key::required});
    if (settings_.problems().size() == before && parameters_known_ &&
        config.null == config.alternative)
      test.problem("alternative", "is the same point as null, but must differ");
    config.datasets = test.count({"datasets", "simulated for each hypothesis"}, config.datasets, 1);
    config.size = test.number({"size", "of the test: how often a true null is rejected"},
                              config.size, Limits::inside(0.0, 1.0));
    study_.test = config;
  }

  /// The parameters of a pair, by name; an index where it is known.
  std::optional<std::size_t> parameter_index(Settings table, const std::string& key,
                                             const std::string& name) {
    if (const auto index = study_.parameters.find(name)) return index;
    table.problem(key, unknown_name(name, "a parameter", study_.parameters.names()));
    return {};
  }

  void read_surfaces(Settings table) {
    const auto interest = study_.parameters.of_interest();
    if (table.has("contours")) {
      const auto pairs = table.lists_of_numbers_or_texts(
          {"contours",
           "pairs of parameters, such as [[\"alpha\", \"beta\"]]; absent: all of up to three of "
           "interest"},
          {.type = KeyDescription::Type::text, .lists = 2, .size = 2});
      for (std::size_t i = 0; i < pairs.size(); ++i) {
        const auto key = fmt::format("contours[{}]", i);
        std::vector<std::size_t> indices;
        std::vector<std::string> words;
        const auto before = settings_.problems().size();
        for (const auto& entry : pairs[i]) {
          const auto* name = std::get_if<std::string>(&entry);
          words.push_back(name != nullptr ? '"' + *name + '"'
                                          : fmt::format("{}", std::get<double>(entry)));
          if (name == nullptr) continue;
          if (const auto index = parameter_index(table, key, *name)) indices.push_back(*index);
        }
        if (settings_.problems().size() > before) continue;
        if (pairs[i].size() == 2 && indices.size() == 2 && indices[0] != indices[1])
          study_.contours.emplace_back(indices[0], indices[1]);
        else
          table.problem(
              key, fmt::format("is [{}], but must be the names of two of {}",
                               fmt::join(words, ", "), fmt::join(study_.parameters.names(), ", ")));
      }
    } else {
      for (std::size_t a = 0; a < interest.size() && interest.size() <= 3; ++a)
        for (std::size_t b = a + 1; b < interest.size(); ++b)
          study_.contours.emplace_back(interest[a], interest[b]);
    }
    study_.surface_points =
        table.count({"surface", "points of each parameter on the surface behind the contours"},
                    study_.surface_points, 5, 1001);
    if (const auto evaluations = table.optional_integer(
            {"bayesian",
             "evaluations of a Bayesian optimisation, shown beside the fit; absent: none"},
            5, 2000)) {
      study_.bayesian.emplace();
      study_.bayesian->evaluations = static_cast<std::size_t>(*evaluations);
    }
    for (auto& entry :
         table.tables({"hypotheses", "values of parameters to be tested, the others profiled"})) {
      CompositeTestConfig config;
      config.null.fixed.resize(study_.parameters.size());
      auto fixed = entry.table(
          {"fixed", "the values that are tested, such as { alpha = 0 }", Key::required});
      if (fixed.keys().empty())
        entry.problem("fixed",
                      "is missing, but must give values that are tested, such as "
                      "{ alpha = 0 }");
      for (std::size_t p = 0; p < study_.parameters.size(); ++p) {
        const auto& parameter = study_.parameters[p];
        if (fixed.has(parameter.name))
          config.null.fixed[p] = fixed.number({parameter.name, "value of the parameter"},
                                              Limits::between(parameter.low, parameter.high));
      }
      config.datasets = entry.count({"datasets", "simulated for a p-value beside Wilks'; 0: none"},
                                    config.datasets, 0, 10000000);
      study_.hypotheses.push_back(config);
    }
  }

  void read_coverage() {
    auto table = settings_.table(
        {"coverage", "how often the regions hold the true point; absent: not measured"});
    if (!settings_.is_table("coverage") || !parameters_known_) return;
    if (study_.mixture) return refuse_in_mixture(settings_, "coverage");
    CoverageConfig config;
    std::vector<std::vector<double>> points;
    for (auto& entry : table.tables({"points", "true θ of the datasets; absent: the truth"}))
      points.push_back(read_point(entry, study_.parameters, truth_));
    if (points.empty()) points.push_back(truth_);
    config.points = Matrix(points.size(), study_.parameters.size());
    for (std::size_t i = 0; i < points.size(); ++i)
      std::copy(points[i].begin(), points[i].end(), config.points.row(i).begin());
    config.datasets =
        table.count({"datasets", "simulated and fitted at each point"}, config.datasets, 1);
    config.critical_datasets = table.count(
        {"critical_datasets", "further ones for the thresholds of Neyman's construction; 0: none"},
        config.critical_datasets, 0);
    config.levels = study_.levels;
    study_.coverage = config;
  }

  void read_diagnostics() {
    auto table = settings_.table({"diagnostics", "checks of the learned ratio without the truth"});
    const Key which("which", "the checks, or \"all\"; []: none");
    auto& config = study_.diagnostics;
    auto known = ratio_diagnostics();
    for (const char* other : {"reference", "recovery", "range"}) known.emplace_back(other);
    const bool listed = table.has("which") && !table.is_text("which");
    if (settings_.describing()) table.choice(which, "all", {"all"});
    if (table.is_text("which") && !settings_.describing()) {
      if (const auto name = table.text(which); name != "all")
        table.problem("which", fmt::format("is \"{}\", but must be \"all\" or a list of {}", name,
                                           fmt::join(known, ", ")));
      config.which = known;
    } else {
      config.which = table.choices(which, known, known, "a diagnostic");
    }
    const auto reference = std::find(config.which.begin(), config.which.end(), "reference");
    const auto read_references = [&] {
      for (auto& entry :
           table.tables({"references",
                         "check \"reference\": θ1 with which the ratio is learned again; absent: "
                         "the estimate plus and minus two standard errors"}))
        config.references.push_back(read_point(entry, study_.parameters, truth_));
    };
    if (settings_.describing()) read_references();
    if (!study_.simulator) {
      skip(table, {"references"});
    } else if (!depends_on_reference()) {
      if (reference != config.which.end() && listed) refuse_reference(table, "which");
      if (table.has("references")) refuse_reference(table, "references");
      std::erase(config.which, "reference");
    } else {
      read_references();
      // Programs are slow, and the ratio is learned again: only where it is asked for.
      if (study_.simulator->kind() == "command" && !listed && config.references.empty())
        std::erase(config.which, "reference");
    }
    config.events_given = table.has("events");
    config.events = table.count({"events", "simulated at each θ"}, config.events, 100);
    config.times = table.count({"times",
                                "check \"recovery\": how many times the data's events are "
                                "simulated at the estimate, within the budget"},
                               config.times, 1, 1'000'000);
    if (const auto budget = table.optional_integer(
            {"budget",
             "events that the checks may simulate; absent: 15 % of training.samples for a "
             "simulator that is another program or a Python function, else as many as are cheap"},
            0, std::int64_t{1} << 40))
      config.budget = static_cast<std::size_t>(*budget);
    if (table.has("against"))
      config.against =
          point(table, {"against", "θ of the denominator; absent: the reference, or the middle"});
  }

  /// Whether −2 log Λ may depend on θ1, and by how much finite simulation lets it is known.
  bool depends_on_reference() const {
    using Across = ParameterizedClassifierRatio::Across;
    const auto& config = study_.parameterized.classifier;
    if (study_.mixture || !study_.parameterized.by_classifier() || config.reference.empty() ||
        !can_simulate(*study_.simulator))
      return false;
    return config.calibration == Across::on_demand ||
           (config.calibration == Across::smooth && config.classifier != nullptr &&
            config.classifier->differentiable());
  }

  static void refuse_reference(Settings table, const std::string& key) {
    table.skip(key);
    table.problem(key,
                  "asks for a check of the reference, which needs a point in [reference] and a "
                  "classifier with θ as input, calibrated on demand, or smoothly where it is a "
                  "network; the likelihood of one model of all θ does not depend on the reference");
  }

  void read_ensemble() {
    auto table = settings_.table(
        {"ensemble", "bias, spread and coverage in simulated datasets; absent: not measured"});
    if (!settings_.is_table("ensemble")) return;
    EnsembleConfig config;
    config.datasets = table.count({"datasets", "simulated and fitted"}, config.datasets, 1);
    config.events = table.count({"events", "of each dataset"}, config.events, 1);
    config.point = point(table, {"at", "their θ; absent: the truth"});
    config.levels = study_.levels;
    study_.ensemble = config;
  }

  void read_compare() {
    auto table = settings_.table(
        {"compare", "classifiers side by side with the exact ratio, for mixtures; absent: none"});
    if (!settings_.is_table("compare")) return;
    if (study_.simulator && !study_.mixture) {
      settings_.problem("compare",
                        "is for mixtures whose shares are fitted, but this study has one model "
                        "for all θ");
      return;
    }
    Study::Compare compare;
    compare.point = point(table, {"at", "θ of the numerator; the reference is the denominator"});
    const auto before = settings_.problems().size();
    for (auto& entry :
         table.tables({"classifiers",
                       "such as [{ kind = \"mlp\" }]; a kind alone, if it is the study's, is the "
                       "study's classifier",
                       Key::required})) {
      auto made = classifier(entry);
      // { kind = … } alone, of the study's kind, means the study's classifier.
      const auto& own = study_.learning.classifier;
      const bool same = made && own && made->kind() == own->kind() && entry.keys().size() == 1;
      compare.classifiers.push_back(same ? own
                                         : std::shared_ptr<const Classifier>(std::move(made)));
    }
    if (compare.classifiers.empty() && settings_.problems().size() == before)
      table.problem("classifiers",
                    "is missing or empty, but must be a list such as [{ kind = \"mlp\" }]");
    compare.evaluation_events =
        table.count({"events", "that measure the error"}, compare.evaluation_events, 1);
    study_.compare = compare;
  }

  Settings settings_;
  std::shared_ptr<const Samples> given_;  // data that a program holds
  Study study_;
  std::optional<Design::Config> design_config_;  // where a range has asked for it
  std::vector<double> truth_;     // of each parameter; the middle of its range where unknown
  bool parameters_known_ = true;  // without problems in names and ranges
};

}  // namespace

void quicken(Study& study) {
  if (study.simulator == nullptr)
    fail_argument("quicken", "study.simulator", "null", "a distribution");
  constexpr std::size_t training_events = 10000, events = 1000, datasets = 20;
  const auto reduce = [](std::size_t& number, std::size_t least) {
    number = std::max(number / 10, std::min(number, least));
  };
  study.quick = true;
  study.parameterized.learned.effort = LearnedRatio::Effort::quick;
  const std::size_t all = study.training_samples;
  const bool from_files = !can_simulate(*study.simulator);
  if (from_files && study.measurement) {
    study.notes.push_back("this quick run uses all events of its files, as a measurement does");
  } else {
    // Of files, pipeline::training_events takes that share.
    reduce(study.training_samples, training_events);
    study.parameterized.classifier.samples = study.training_samples;
  }
  if (from_files)
    study.stored_share = static_cast<double>(study.training_samples) / static_cast<double>(all);
  else
    reduce(study.diagnostics.events, events);
  reduce(study.parameterized.classifier.calibration_events, events);
  if (study.measurement) reduce(study.measurement->options.toys, datasets);
  if (study.test) reduce(study.test->datasets, datasets);
  if (study.ensemble) reduce(study.ensemble->datasets, datasets);
  for (auto& hypothesis : study.hypotheses) reduce(hypothesis.datasets, datasets);
  if (study.coverage) {
    reduce(study.coverage->datasets, datasets);
    reduce(study.coverage->critical_datasets, datasets);
  }
  if (study.compare) reduce(study.compare->evaluation_events, events);
}

void reseed(Study& study, std::uint64_t seed) {
  study.seed = seed;
  study.learning.seed = derive_seed(seed, "learning");
  if (study.measurement) {
    auto& measurement = *study.measurement;
    measurement.options.seed = derive_seed(seed, "toys");
    measurement.learning.seed = measurement.learning.ratios.seed = measurement.learning.shape.seed =
        derive_seed(seed, "learning");
  }
  if (study.test) study.test->seed = derive_seed(seed, "test");
  if (study.ensemble) study.ensemble->seed = derive_seed(seed, "ensemble");
  auto& learned = study.parameterized;
  learned.learned.seed = learned.separable.seed = learned.density.seed = learned.classifier.seed =
      derive_seed(seed, "learning");
  if (study.bayesian) study.bayesian->seed = derive_seed(seed, "bayesian");
  if (study.coverage) study.coverage->seed = derive_seed(seed, "coverage");
  study.diagnostics.seed = derive_seed(seed, "diagnostics");
  for (std::size_t i = 0; i < study.hypotheses.size(); ++i)
    study.hypotheses[i].seed = derive_seed(seed, "hypothesis", i);
}

std::vector<double> read_point(Settings table, const ParameterSpace& parameters,
                               const std::vector<double>& fallback) {
  auto point = fallback;
  for (std::size_t p = 0; p < parameters.size(); ++p)
    point[p] = table.number({parameters[p].name, "value of the parameter"}, fallback[p],
                            Limits::between(parameters[p].low, parameters[p].high));
  return point;
}

Description describe_study_file() {
  Description out;
  StudyReader(Settings::describing(out), ".", "").read();
  return out;
}

Study read_study(const std::string& path, std::shared_ptr<const Samples> observed) {
  const auto folder = std::filesystem::path(path).parent_path().string();
  return StudyReader(read_settings(path), folder.empty() ? "." : folder, path, std::move(observed))
      .read();
}

Study parse_study(const std::string& text, const std::string& name, const std::string& folder) {
  return StudyReader(parse_settings(text, name), folder, name).read();
}

Study make_study(SettingValue::Table settings, const std::string& name, const std::string& folder,
                 std::shared_ptr<const Samples> observed) {
  return StudyReader(Settings(std::move(settings), name), folder, name, std::move(observed)).read();
}

}  // namespace neyman
