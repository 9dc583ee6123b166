#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "neyman/core/error.hpp"
#include "neyman/core/random.hpp"
#include "neyman/diagnostics/reference.hpp"
#include "neyman/inference/parameterized_likelihood.hpp"
#include "neyman/reports/symbol.hpp"
#include "pipeline/stages.hpp"

namespace neyman::pipeline {

namespace {

constexpr std::size_t grid_points = 13;
constexpr std::size_t replicas = 50;
constexpr double reach = 3.0;  ///< of the grid about the estimate, in standard errors
constexpr double apart = 2.0;  ///< of the chosen references, likewise

using ClassifierRatio = ParameterizedClassifierRatio;

template <class LogLikelihood>
std::vector<double> along(MatrixView points, LogLikelihood&& log_likelihood) {
  std::vector<double> out;
  for (std::size_t g = 0; g < points.rows(); ++g) out.push_back(log_likelihood(points.row(g), {}));
  return out;
}

/// Points along one parameter through the estimate.
struct Slice {
  std::size_t parameter;
  std::vector<double> values;
  Matrix points;
  double error = 0.0;  ///< standard error of the parameter on the slice

  /// The error is found from parabolas over ever narrower grids: a calibration may make the
  /// likelihood so rough that what it does next to the estimate says nothing.
  Slice(const ParameterSpace& parameters, std::span<const double> estimate, std::size_t p,
        const SummedRatio& sum)
      : parameter(p) {
    const auto& range = parameters[p];
    double centre = estimate[p], half = range.high - range.low;
    for (int narrowing = 0; narrowing < 12; ++narrowing) {
      set(parameters, estimate, centre, half);
      const auto curve =
          reference_curve("", values, along(points, sum), {}, values.front(), values.back());
      double rise = 0.0, square = 0.0;  // of −2 log Λ = (θ − θ̂)²/σ², by least squares
      for (std::size_t g = 0; g < values.size(); ++g) {
        const double away = std::pow(values[g] - curve.estimate[0], 2);
        rise += away * curve.statistic[g];
        square += away * away;
      }
      error = rise > 0.0 ? std::sqrt(square / rise) : half;
      const double wanted = reach * error;
      if (wanted > 0.7 * std::min(half, values.back() - values.front())) break;
      centre = curve.estimate[0];
      half = std::max(wanted, 0.2 * half);
    }
  }

 private:
  void set(const ParameterSpace& parameters, std::span<const double> estimate, double centre,
           double half) {
    const auto& range = parameters[parameter];
    const double low = std::max(range.low, centre - half);
    const double high = std::min(range.high, centre + half);
    values.clear();
    points = Matrix(grid_points, parameters.size());
    for (std::size_t g = 0; g < grid_points; ++g) {
      values.push_back(low + (high - low) * static_cast<double>(g) / (grid_points - 1.0));
      std::copy(estimate.begin(), estimate.end(), points.row(g).begin());
      points(g, parameter) = values[g];
    }
  }
};

/// θ1 beside the study's own: near the estimate, where numerator and denominator overlap.
std::vector<std::vector<double>> other_references(const Study& study,
                                                  const std::vector<double>& estimate,
                                                  const std::vector<Slice>& slices) {
  if (!study.diagnostics.references.empty()) return study.diagnostics.references;
  std::vector<std::vector<double>> out;
  for (const double sign : {-1.0, 1.0}) {
    auto& point = out.emplace_back(estimate);
    for (const auto& slice : slices) {
      const auto& range = study.parameters[slice.parameter];
      auto& value = point[slice.parameter];
      value = std::clamp(value + sign * apart * slice.error, range.low, range.high);
    }
  }
  return out;
}

Diagnostic compare(const Study& study, const Slice& slice,
                   const std::vector<const ClassifierRatio*>& ratios, const Samples& data) {
  const auto& parameter = study.parameters[slice.parameter];
  std::vector<ReferenceCurve> curves;
  for (std::size_t k = 0; k < ratios.size(); ++k) {
    const auto sum = ratios[k]->over(data.x, data.weights);
    std::vector<std::string> values;
    for (const double value : ratios[k]->reference())
      values.push_back(fmt::format("{:.3g}", value));
    const auto joined = fmt::format("{}", fmt::join(values, ", "));
    const auto name = "θ1 = " + (values.size() == 1 ? joined : "(" + joined + ")");
    const auto seed = derive_seed(study.diagnostics.seed, "reference-replicas", k);
    curves.push_back(reference_curve(name, slice.values, along(slice.points, *sum),
                                     sum->simulation_replicas(slice.points, replicas, seed),
                                     parameter.low, parameter.high));
  }
  ReferenceConfig config;
  config.seed = derive_seed(study.diagnostics.seed, "reference", slice.parameter);
  auto out = diagnose_reference(curves, Matrix(slice.values.size(), 1, slice.values), config);
  auto& panel = out.panels.front();
  panel.x_label = reports::symbol(parameter.name);
  if (study.simulator->has_density()) {
    const DensityLikelihood exact(study.parameters, study.simulator, data.x, data.weights);
    const auto curve = reference_curve("exact", slice.values, along(slice.points, exact), {},
                                       parameter.low, parameter.high);
    panel.series.push_back(
        {curve.name, Diagnostic::Series::Style::line, slice.values, curve.statistic, {}, {}});
  }
  if (study.parameters.of_interest().size() > 1) out.name += ":" + parameter.name;
  out.explanation +=
      fmt::format(" Along {} through the estimate.", reports::symbol(parameter.name));
  return out;
}

}  // namespace

void diagnose_references(const Study& study, const Ratio& ratio, const Samples& data, Tasks* tasks,
                         Results& results) {
  const auto& which = study.diagnostics.which;
  const auto* own = dynamic_cast<const ClassifierRatio*>(&ratio);
  const auto& fit = results.fit.fit;
  if (std::find(which.begin(), which.end(), "reference") == which.end() || own == nullptr ||
      own->denominator() != ClassifierRatio::Denominator::point || !fit.ok())
    return;
  const auto sum = own->over(data.x, data.weights);
  std::vector<Slice> slices;
  for (const std::size_t p : study.parameters.of_interest())
    slices.emplace_back(study.parameters, fit.point, p, *sum);
  const auto others = other_references(study, fit.point, slices);
  std::vector<std::unique_ptr<const ClassifierRatio>> learned;
  Progress progress("check the reference", others.size() * own->folds() * Progress::fine);
  for (std::size_t k = 0; k < others.size(); ++k) {
    auto config = study.parameterized.classifier;
    config.reference = others[k];
    config.seed = derive_seed(study.diagnostics.seed, "reference-learning", k);
    try {
      learned.push_back(std::make_unique<const ClassifierRatio>(
          study.simulator, *study.parameterized.design, config, &progress, tasks));
    } catch (const SimulatorError& error) {
      results.warnings.push_back(
          fmt::format("the reference was not checked: the simulator failed: {}", error.what()));
      return;
    }
  }
  std::vector<const ClassifierRatio*> ratios = {own};
  for (const auto& one : learned) ratios.push_back(one.get());
  for (const auto& slice : slices)
    results.diagnostics.push_back(compare(study, slice, ratios, data));
  for (const auto& one : learned) results.budget["diagnostics"] += one->simulated();
}

}  // namespace neyman::pipeline
