#include "neyman/pipeline/measurement_study.hpp"

#include <algorithm>
#include <cmath>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/simulators/files.hpp"
#include "pipeline/stages.hpp"

namespace neyman {

namespace {

const Study::Measurement& measurement_of(const char* function, const Study& study) {
  if (!study.measurement || study.measurement->mixture == nullptr)
    fail_argument(function, "study", "without yields", "a measurement: a mixture with yields");
  return *study.measurement;
}

bool constrained(const Study& study, std::size_t parameter) {
  return std::any_of(study.constraints.begin(), study.constraints.end(),
                     [&](const auto& c) { return c.parameter() == parameter; });
}

/// Some parameters of the study; those with a constraint are nuisances.
ParameterSpace part_of(const Study& study, const std::vector<std::size_t>& which) {
  std::vector<Parameter> out;
  for (const std::size_t p : which) {
    out.push_back(study.parameters[p]);
    out.back().nuisance = constrained(study, p);
  }
  return ParameterSpace(std::move(out));
}

std::vector<double> values_at(const std::vector<double>& point,
                              const std::vector<std::size_t>& which) {
  std::vector<double> out;
  for (const std::size_t p : which) out.push_back(point[p]);
  return out;
}

/// The study's design over some of its parameters.
Design design_over(const Study& study, const std::vector<std::size_t>& which) {
  auto config = study.parameterized.design->config();
  const auto keep = [&](auto& values) {
    if (values.empty()) return;
    std::decay_t<decltype(values)> kept;
    for (const std::size_t p : which) kept.push_back(values[p]);
    values = std::move(kept);
  };
  keep(config.points);
  keep(config.mean);
  keep(config.sigma);
  keep(config.log);
  if (!config.correlation.empty()) {
    Matrix kept(which.size(), which.size());
    for (std::size_t i = 0; i < which.size(); ++i)
      for (std::size_t k = 0; k < which.size(); ++k)
        kept(i, k) = config.correlation(which[i], which[k]);
    config.correlation = std::move(kept);
  }
  if (config.function)
    config.function = [all = config.function, which](std::size_t n, std::uint64_t seed) {
      const Matrix drawn = all(n, seed);
      Matrix kept(n, which.size());
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t k = 0; k < which.size(); ++k) kept(i, k) = drawn(i, which[k]);
      return kept;
    };
  Matrix rows(config.rows.rows(), which.size());
  for (std::size_t i = 0; i < rows.rows(); ++i)
    for (std::size_t k = 0; k < which.size(); ++k) rows(i, k) = config.rows(i, which[k]);
  config.rows = std::move(rows);
  return {part_of(study, which), std::move(config)};
}

/// A component at the nominal values of all parameters but some.
class PartlyNominal final : public Distribution {
 public:
  PartlyNominal(DistributionPtr of, std::vector<double> nominal, std::vector<std::size_t> free)
      : of_(std::move(of)), nominal_(std::move(nominal)), free_(std::move(free)) {}

  std::string kind() const override { return of_->kind(); }
  std::size_t dimension() const override { return of_->dimension(); }
  std::vector<DistributionPtr> parts() const override { return {of_}; }
  Runs runs() const override { return of_->runs(); }
  std::optional<Trial> trial() const override { return of_->trial(); }
  void sample(std::span<const double> point, RandomStream& random, Matrix& out) const override {
    auto full = nominal_;
    for (std::size_t k = 0; k < free_.size(); ++k) full[free_[k]] = point[k];
    of_->sample(full, random, out);
  }
  void sample_each(MatrixView points, RandomStream& random, Matrix& out) const override {
    Matrix full(points.rows(), nominal_.size());
    for (std::size_t i = 0; i < full.rows(); ++i) {
      std::copy(nominal_.begin(), nominal_.end(), full.row(i).begin());
      for (std::size_t k = 0; k < free_.size(); ++k) full(i, free_[k]) = points(i, k);
    }
    of_->sample_each(full, random, out);
  }

 private:
  DistributionPtr of_;
  std::vector<double> nominal_;
  std::vector<std::size_t> free_;
};

/// The parameters that the shape of a component depends on.
std::vector<std::size_t> moved_by(const Study& study, const Distribution& component) {
  std::vector<std::size_t> out;
  for (std::size_t p = 0; p < study.parameters.size(); ++p)
    if (depends_on(component, study.parameters, p)) out.push_back(p);
  return out;
}

/// What files hold of a component.
void add_files(const Study& study, const Files& files, ComponentSamples& to) {
  to.nominal = *files.stored();
  for (const auto& variation : files.variations())
    to.variations.push_back({variation.parameter, variation.low, variation.high});
  const auto& across = files.across();
  if (across.size() == 0) return;
  std::vector<std::size_t> moves;
  for (const auto& name : across.parameter_names) moves.push_back(*study.parameters.find(name));
  to.across = {across, empirical_design(across, part_of(study, moves)),
               values_at(study.measurement->nominal, moves)};
}

/// Its expected events at the truth, of which only the ratios to the others matter. Where none are
/// expected there, as of a signal that the data do not have: in the middle of the ranges.
double share_of(const Study& study, std::size_t component) {
  const auto& yield = study.measurement->mixture->yields()[component];
  for (const auto& point : {study.measurement->nominal, study.parameters.middle()})
    if (const double share = yield(point); share > 0.0) return share;
  return 1.0;
}

}  // namespace

std::vector<ComponentSamples> measurement_components(const Study& study) {
  const auto& measurement = measurement_of("measurement_components", study);
  const auto& mixture = *measurement.mixture;
  std::vector<ComponentSamples> out;
  for (std::size_t c = 0; c < mixture.components().size(); ++c) {
    ComponentSamples made;
    made.name = mixture.names()[c];
    made.share = share_of(study, c);
    const auto& component = *mixture.components()[c];
    if (const auto* files = dynamic_cast<const Files*>(&component)) {
      add_files(study, *files, made);
    } else if (const auto moves = moved_by(study, component); !moves.empty()) {
      made.across = {{}, design_over(study, moves), values_at(measurement.nominal, moves)};
    }
    out.push_back(std::move(made));
  }
  return out;
}

std::vector<ComponentSamples> simulate_measurement(const Study& study, Tasks* tasks) {
  const auto& measurement = measurement_of("simulate_measurement", study);
  const auto& mixture = *measurement.mixture;
  const std::size_t count = mixture.components().size();
  const auto names = pipeline::feature_names_of(mixture);
  auto out = measurement_components(study);
  for (std::size_t c = 0; c < count; ++c) {
    const auto& component = mixture.components()[c];
    if (component->stored() != nullptr) continue;
    // What does not divide evenly goes to the first components.
    const std::size_t events =
        study.training_samples / count + (c < study.training_samples % count ? 1 : 0);
    out[c].nominal = pipeline::make_samples(
        sample(*component, measurement.nominal, events, derive_seed(study.seed, "component", c),
               "training", nullptr, tasks),
        names);
    if (!out[c].across) continue;
    auto& across = *out[c].across;
    across.events =
        simulate(PartlyNominal(component, measurement.nominal, moved_by(study, *component)),
                 across.design.parameters(), across.design, events,
                 derive_seed(study.seed, "shape", c), "training", tasks);
    across.events.feature_names = names;
  }
  return out;
}

Matrix simulate_data(const Study& study, std::span<const double> point, std::uint64_t seed) {
  const auto& mixture = *measurement_of("simulate_data", study).mixture;
  RandomStream random(seed, "measurement-data");
  std::vector<double> values;
  for (std::size_t c = 0; c < mixture.components().size(); ++c) {
    Matrix drawn(random.poisson(mixture.yields()[c](point)), mixture.dimension());
    if (drawn.rows() == 0) continue;
    mixture.components()[c]->sample(point, random, drawn);
    values.insert(values.end(), drawn.values().begin(), drawn.values().end());
  }
  Matrix out(values.size() / mixture.dimension(), mixture.dimension());
  std::copy(values.begin(), values.end(), out.values().begin());
  return out;
}

Model learned_model(const Study& study, LearnedChannel channel) {
  const auto& measurement = measurement_of("learned_model", study);
  Model out;
  out.name = study.name;
  out.seed = study.seed;
  out.parameters = study.parameters;
  out.constraints = study.constraints;
  out.feature_names = channel.feature_names();
  out.component_names = channel.components();
  out.classifier = study.learning.classifier->kind();
  out.calibration = study.learning.calibrator->kind();
  out.levels = study.levels;
  out.scan_points = study.scan_points;
  out.measurement = std::make_shared<const LearnedMeasurement>(
      LearnedMeasurement{std::move(channel), measurement.mixture->yields(), measurement.nominal,
                         measurement.interest, measurement.options});
  return out;
}

StatisticalModel measurement_model(const Study& study, const LearnedChannel& channel,
                                   MatrixView observed, std::optional<std::size_t> replica) {
  return measurement_model(learned_model(study, channel), observed, {}, replica);
}

}  // namespace neyman
