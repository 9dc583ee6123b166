#include "neyman/diagnostics/recovery.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>

#include "neyman/core/error.hpp"
#include "neyman/core/progress.hpp"
#include "neyman/core/random.hpp"
#include "neyman/inference/parameterized_likelihood.hpp"
#include "neyman/reports/symbol.hpp"
#include "neyman/simulators/files.hpp"
#include "pipeline/stages.hpp"

namespace neyman::pipeline {

namespace {

constexpr std::size_t most_parts = 40;         // for the scatter of gradients
constexpr std::size_t least_in_part = 5;       // events
constexpr std::size_t for_simulation = 10000;  // events that show what finite simulation does

/// The errors of the estimate, with and without finite simulation, by name.
std::string larger_errors(const ParameterSpace& parameters, const Fit& before, const Fit& after) {
  std::string out;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    if (!(after.simulation_error(p) > 1.001 * before.simulation_error(p))) continue;
    out += fmt::format("{}{} {:.3g} instead of {:.3g}", out.empty() ? "" : ", ", parameters[p].name,
                       after.simulation_error(p), before.simulation_error(p));
  }
  return out;
}

std::size_t determined(const Fit& fit) {
  std::size_t out = 0;
  for (std::size_t p = 0; p < fit.covariance.rows(); ++p)
    out += fit.covariance(p, p) > 0.0 && !(p < fit.at_bound.size() && fit.at_bound[p]);
  return out;
}

double total_weight(const Samples& data) {
  if (data.weights.empty()) return static_cast<double>(data.size());
  return std::accumulate(data.weights.begin(), data.weights.end(), 0.0);
}

/// Likelihoods of events that were simulated at a point.
struct Parts {
  std::vector<double> point;
  std::vector<std::unique_ptr<const Likelihood>> likelihoods;
  Matrix gradient_covariance;  ///< of all together
};

void keep_some(Matrix& some, MatrixView x) {
  if (some.rows() >= for_simulation) return;
  const auto rows = x.rows(0, std::min(x.rows(), for_simulation - some.rows()));
  if (some.empty()) some = Matrix(0, x.cols());
  some.append(rows);
}

/// Events at the estimate, or those that files have kept at the θ nearest to it; none where there
/// are too few.
Parts simulated_parts(const Study& study, const RecoveryOf& of, const Fit& fit,
                      std::size_t data_events, std::size_t free, Tasks* tasks, Results& results) {
  Parts out;
  out.point = fit.point;
  const auto* files = dynamic_cast<const Files*>(study.simulator.get());
  if (files == nullptr && !can_simulate(*study.simulator)) return out;
  Samples kept;
  if (files != nullptr) {
    kept = files->held_out_near(fit.point);
    if (kept.size() == 0) return out;
    out.point.assign(kept.theta.row(0).begin(), kept.theta.row(0).end());
    // Only ratios of the weights matter.
    const double mean = total_weight(kept) / static_cast<double>(kept.size());
    for (double& weight : kept.weights) weight /= mean;
  }
  const std::size_t events =
      files != nullptr ? kept.size() : events_of_checks(study, data_events).recovery;
  const std::size_t parts =
      std::clamp(events / least_in_part, std::max<std::size_t>(4, free + 2), most_parts);
  if (events < parts) return out;
  const auto draw = [&](std::size_t count, std::uint64_t stream) {
    return sample(*study.simulator, fit.point, count,
                  derive_seed(study.diagnostics.seed, "recovery", stream), "diagnostics", nullptr,
                  tasks);
  };
  Progress progress("simulate at the estimate", parts);
  // A program is started as rarely as it can be; what is drawn here needs no memory for all.
  const bool at_once = files != nullptr || study.simulator->trial().has_value();
  const Matrix all = files != nullptr ? std::move(kept.x) : at_once ? draw(events, 0) : Matrix();
  Matrix some;
  for (std::size_t k = 0; k < parts; ++k) {
    const std::size_t begin = events * k / parts, end = events * (k + 1) / parts;
    const Matrix drawn = at_once ? Matrix() : draw(end - begin, k);
    const MatrixView x = at_once ? all.view().rows(begin, end) : MatrixView(drawn);
    const auto weights = kept.weights.empty() ? std::span<const double>()
                                              : std::span(kept.weights).subspan(begin, end - begin);
    keep_some(some, x);
    out.likelihoods.push_back(of.likelihood(x, weights));
    progress.advance();
  }
  if (files == nullptr) results.budget["diagnostics"] += events;
  out.gradient_covariance = of.gradient_covariance(some, out.point);
  const double more = static_cast<double>(events) / static_cast<double>(some.rows());
  for (double& value : out.gradient_covariance.values()) value *= more * more;
  return out;
}

}  // namespace

void check_recovery(const Study& study, const RecoveryOf& of, const Samples& data,
                    const Likelihood& likelihood, Tasks* tasks, Results& results) {
  auto& fit = results.fit.fit;
  const auto free = determined(fit);
  const double weight = total_weight(data);
  if (!asks_for(study, "recovery") || !fit.ok() || free == 0 || !(weight > 0.0)) return;
  try {
    const auto parts = simulated_parts(study, of, fit, data.size(), free, tasks, results);
    if (parts.likelihoods.empty()) return;
    auto at = fit;
    at.point = parts.point;
    const auto found =
        recover(at, weight, parts.likelihoods, parts.gradient_covariance, study.constraints);
    RecoveryConfig config;
    for (const auto& parameter : study.parameters) config.names.push_back(parameter.name);
    auto check = diagnose_recovery(found, config);
    double away = 0.0;  // of the events from the estimate, in errors of the data
    for (std::size_t p = 0; p < fit.point.size(); ++p)
      if (fit.covariance(p, p) > 0.0)
        away = std::max(away, std::abs(study.parameters[p].difference(at.point[p], fit.point[p])) /
                                  fit.statistical_error(p));
    if (away > 0.0)
      check.explanation += fmt::format(
          " They are those that were kept of the files at the nearest θ, {}, {:.2g} errors from "
          "the "
          "estimate.",
          reports::point_words(study.parameters, at.point, 4), away);
    constexpr double near = 3.0;
    const auto before = fit;
    const bool enlarged = away <= near && add_recovered_shift(fit, found, check);
    if (enlarged) {
      // Where something was done about it, it is told, however many other checks there are.
      check.note = "The simulation error that is reported holds this shift.";
      check.verdict = std::max(check.verdict, Diagnostic::Verdict::warn);
    }
    results.diagnostics.push_back(std::move(check));
    if (!enlarged) return;
    set_intervals(likelihood, study.levels, results.fit);
    results.warnings.push_back(
        fmt::format("events simulated at the estimate are fitted elsewhere, further away than the "
                    "reported simulation error explains: it now holds that shift ({})",
                    larger_errors(study.parameters, before, fit)));
  } catch (const SimulatorError& error) {
    results.warnings.push_back(
        fmt::format("the estimate was not checked: the simulator failed: {}", error.what()));
  }
}

void recheck_recovery(const Study& study, const Model& model, const Samples& data,
                      Results& results) {
  if (model.ratio) {
    const MixtureLikelihood likelihood(model.parameters, *model.ratio, data.x, data.weights);
    check_recovery(study, recovery_of(model.parameters, *model.ratio), data, likelihood, nullptr,
                   results);
    return;
  }
  auto plain =
      std::make_shared<ParameterizedLikelihood>(*model.parameterized, data.x, data.weights);
  const auto likelihood = model.constraints.empty() ? std::shared_ptr<const Likelihood>(plain)
                                                    : std::make_shared<ConstrainedLikelihood>(
                                                          std::move(plain), model.constraints);
  check_recovery(study, recovery_of(*model.parameterized), data, *likelihood, nullptr, results);
}

}  // namespace neyman::pipeline
