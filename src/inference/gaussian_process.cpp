#include "neyman/inference/gaussian_process.hpp"

#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>
#include <nlopt.hpp>
#include <numbers>
#include <utility>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/random.hpp"

namespace neyman {

namespace {

using Kernel = GaussianProcess::Kernel;
using Mean = GaussianProcess::Mean;
using Hyperparameters = GaussianProcess::Hyperparameters;
using Eigen::ArrayXd;
using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

Index to_index(std::size_t i) { return static_cast<Index>(i); }

// Everything below works on inputs scaled to [0, 1] by the box and on values with mean 0 and
// residuals of about 1.

/// k and, where `slope` is given, ∂k/∂r², for squared distances r².
void kernel_values(Kernel kernel, double amplitude, const ArrayXd& r2, ArrayXd& k, ArrayXd* slope) {
  const double a2 = amplitude * amplitude;
  if (kernel == Kernel::squared_exponential) {
    k = a2 * (-0.5 * r2).exp();
    if (slope) *slope = -0.5 * k;
    return;
  }
  const ArrayXd scaled = (5.0 * r2).sqrt();
  const ArrayXd decay = a2 * (-scaled).exp();
  k = decay * (1.0 + scaled + scaled.square() / 3.0);
  if (slope) *slope = (-5.0 / 6.0) * decay * (1.0 + scaled);
}

std::size_t basis_size(Mean mean, std::size_t d) {
  switch (mean) {
    case Mean::constant:
      return 1;
    case Mean::linear:
      return 1 + d;
    case Mean::quadratic:
      return (d + 1) * (d + 2) / 2;
  }
  return 1;
}

/// h(u) with t = 2u − 1: 1; t_a; t_a t_b, a <= b.
VectorXd basis(Mean mean, const VectorXd& u) {
  const Index d = u.size();
  VectorXd h(to_index(basis_size(mean, static_cast<std::size_t>(d))));
  h[0] = 1.0;
  if (mean == Mean::constant) return h;
  const VectorXd t = (2.0 * u.array() - 1.0).matrix();
  h.segment(1, d) = t;
  if (mean == Mean::linear) return h;
  Index at = 1 + d;
  for (Index a = 0; a < d; ++a)
    for (Index b = a; b < d; ++b) h[at++] = t[a] * t[b];
  return h;
}

/// ∂h/∂u: terms × dimensions.
MatrixXd basis_gradient(Mean mean, const VectorXd& u) {
  const Index d = u.size();
  MatrixXd g = MatrixXd::Zero(to_index(basis_size(mean, static_cast<std::size_t>(d))), d);
  if (mean == Mean::constant) return g;
  for (Index a = 0; a < d; ++a) g(1 + a, a) = 2.0;
  if (mean == Mean::linear) return g;
  Index at = 1 + d;
  for (Index a = 0; a < d; ++a)
    for (Index b = a; b < d; ++b, ++at) {
      g(at, a) += 2.0 * (2.0 * u[b] - 1.0);
      g(at, b) += 2.0 * (2.0 * u[a] - 1.0);
    }
  return g;
}

/// The observations in the scaled units.
struct Standardised {
  Kernel kernel = Kernel::matern52;
  Mean mean = Mean::constant;
  MatrixXd u;                   // n × d
  VectorXd y, variances;        // n
  MatrixXd h;                   // n × q
  double prior_variance = 1.0;  // of each coefficient β
  double centre = 0.0, scale = 1.0;

  Index size() const { return u.rows(); }
  Index dimensions() const { return u.cols(); }

  /// The observations with these indices.
  Standardised take(const std::vector<Index>& rows) const {
    Standardised out = *this;
    out.u = u(rows, Eigen::all);
    out.y = y(rows);
    out.variances = variances(rows);
    out.h = h(rows, Eigen::all);
    return out;
  }
};

/// Everything that a posterior needs, for one set of hyperparameters in the scaled units:
/// K = k(u, u') + diag(σ² + v), A = 1/B + HᵀK⁻¹H, β = A⁻¹HᵀK⁻¹y, α = K⁻¹(y − Hβ).
struct Factor {
  Hyperparameters scaled;
  Eigen::LLT<MatrixXd> cholesky, coefficients;  // of K, of A
  MatrixXd solved;                              // K⁻¹H
  VectorXd alpha, beta;
  double log_likelihood = 0.0;  // of the scaled values
};

constexpr double base_jitter = 1e-10;  // of a²: keeps K invertible where points coincide

ArrayXd squared_distances(const MatrixXd& u, const VectorXd& from,
                          const std::vector<double>& lengths, Index first = 0) {
  const Index rows = u.rows() - first;
  ArrayXd r2 = ArrayXd::Zero(rows);
  for (Index d = 0; d < u.cols(); ++d)
    r2 += ((u.col(d).tail(rows).array() - from[d]) / lengths[static_cast<std::size_t>(d)]).square();
  return r2;
}

Factor factorise(const Standardised& problem, const Hyperparameters& scaled) {
  const Index n = problem.size();
  Factor out;
  out.scaled = scaled;
  MatrixXd kernel(n, n);
  ArrayXd column;
  for (Index j = 0; j < n; ++j) {
    kernel_values(problem.kernel, scaled.amplitude,
                  squared_distances(problem.u, problem.u.row(j), scaled.lengths, j), column,
                  nullptr);
    kernel.col(j).tail(n - j) = column;
  }
  const double a2 = scaled.amplitude * scaled.amplitude;
  const VectorXd noise = (problem.variances.array() + scaled.noise * scaled.noise).matrix();
  double jitter = base_jitter;
  for (;; jitter *= 10.0) {
    kernel.diagonal() = (a2 * (1.0 + jitter) + noise.array()).matrix();
    out.cholesky.compute(kernel);
    if (out.cholesky.info() == Eigen::Success) break;
    if (jitter > 1.0)
      throw Error("GaussianProcess: the covariance matrix is not positive definite");
  }
  const auto& factor = out.cholesky.matrixLLT();
  out.solved = out.cholesky.solve(problem.h);
  MatrixXd a = problem.h.transpose() * out.solved;
  a.diagonal().array() += 1.0 / problem.prior_variance;
  out.coefficients.compute(a);
  // Terms that the points cannot tell apart (all points on a line) leave A singular in doubles.
  for (double ridge = 1e-14; out.coefficients.info() != Eigen::Success && ridge < 1.0;
       ridge *= 10.0)
    out.coefficients.compute(
        a + MatrixXd(ridge * a.diagonal().maxCoeff() * MatrixXd::Identity(a.rows(), a.cols())));
  out.beta = out.coefficients.solve(out.solved.transpose() * problem.y);
  out.alpha = out.cholesky.solve(problem.y - problem.h * out.beta);
  // yᵀ(K + HBHᵀ)⁻¹y = yᵀα.
  out.log_likelihood = -0.5 * problem.y.dot(out.alpha) - factor.diagonal().array().log().sum() -
                       out.coefficients.matrixLLT().diagonal().array().log().sum() -
                       0.5 * static_cast<double>(a.rows()) * std::log(problem.prior_variance) -
                       0.5 * static_cast<double>(n) * std::log(2.0 * std::numbers::pi);
  return out;
}

/// ∂ log p / ∂(log ℓ_1 … log ℓ_D, log a, log σ) = ½ tr[(ααᵀ − (K + HBHᵀ)⁻¹) ∂K].
VectorXd likelihood_gradient(const Standardised& problem, const Factor& factor) {
  const Index n = problem.size(), dimensions = problem.dimensions();
  const auto& scaled = factor.scaled;
  MatrixXd w = factor.cholesky.solve(MatrixXd::Identity(n, n));
  const MatrixXd half =
      factor.coefficients.matrixL().solve(MatrixXd(factor.solved.transpose()));  // q × n
  w.noalias() -= half.transpose() * half;
  w = factor.alpha * factor.alpha.transpose() - w;
  VectorXd gradient = VectorXd::Zero(dimensions + 2);
  ArrayXd k, slope;
  for (Index j = 0; j < n; ++j) {
    const Index rows = n - j;
    kernel_values(problem.kernel, scaled.amplitude,
                  squared_distances(problem.u, problem.u.row(j), scaled.lengths, j), k, &slope);
    // Each pair stands twice in the trace, the diagonal once.
    const auto weight = w.col(j).tail(rows).array();
    gradient[dimensions] += 2.0 * (weight * k).sum() - weight[0] * k[0];
    for (Index d = 0; d < dimensions; ++d) {
      const double length = scaled.lengths[static_cast<std::size_t>(d)];
      gradient[d] -=
          2.0 * (weight * slope *
                 ((problem.u.col(d).tail(rows).array() - problem.u(j, d)) / length).square())
                    .sum();
    }
  }
  gradient[dimensions] += base_jitter * scaled.amplitude * scaled.amplitude * w.trace();
  gradient[dimensions + 1] = scaled.noise * scaled.noise * w.trace();
  return gradient;
}

// --- Search for hyperparameters -------------------------------------------------------------

/// A normal prior of the logarithm, and bounds.
struct LogPrior {
  double centre, spread, low, high;
  double log_density(double log_value) const {
    const double pull = (log_value - centre) / spread;
    return -0.5 * pull * pull;
  }
};

/// In the scaled units: the box is 1, residuals are about 1. The lengths grow with the dimension
/// as the distances between points do.
std::vector<LogPrior> log_priors(std::size_t dimensions, bool with_noise) {
  std::vector<LogPrior> out;
  const double typical = std::log(0.4 * std::sqrt(static_cast<double>(dimensions)));
  for (std::size_t d = 0; d < dimensions; ++d)
    out.push_back({typical, 1.2, std::log(1e-2), std::log(30.0)});
  out.push_back({0.0, 1.5, std::log(1e-3), std::log(1e3)});
  if (with_noise) out.push_back({std::log(0.05), 3.0, std::log(1e-6), std::log(10.0)});
  return out;
}

Hyperparameters from_logs(const std::vector<double>& logs, std::size_t dimensions,
                          std::optional<double> noise) {
  Hyperparameters out;
  for (std::size_t d = 0; d < dimensions; ++d) out.lengths.push_back(std::exp(logs[d]));
  out.amplitude = std::exp(logs[dimensions]);
  out.noise = noise ? *noise : std::exp(logs[dimensions + 1]);
  return out;
}

Hyperparameters search(const Standardised& problem, const GaussianProcess::Config& config,
                       const std::optional<Hyperparameters>& previous) {
  const auto dimensions = static_cast<std::size_t>(problem.dimensions());
  std::optional<double> noise;
  if (config.noise) noise = *config.noise / problem.scale;
  const auto priors = log_priors(dimensions, !noise);

  std::vector<std::vector<double>> starts;
  if (previous) {
    std::vector<double> logs;
    for (const double length : previous->lengths) logs.push_back(std::log(length));
    logs.push_back(std::log(previous->amplitude));
    if (!noise) logs.push_back(std::log(std::max(previous->noise, 1e-300)));
    starts.push_back(std::move(logs));
  }
  std::vector<double> centre;
  for (const auto& prior : priors) centre.push_back(prior.centre);
  if (starts.size() < config.starts) starts.push_back(std::move(centre));
  RandomStream random(config.seed, "gaussian-process-starts");
  while (starts.size() < config.starts) {
    std::vector<double> logs;
    for (const auto& prior : priors) logs.push_back(prior.centre + prior.spread * random.normal());
    starts.push_back(std::move(logs));
  }

  double best_value = -std::numeric_limits<double>::infinity();
  std::vector<double> best;
  const auto objective = [&](const std::vector<double>& logs, std::vector<double>& gradient) {
    const auto factor = factorise(problem, from_logs(logs, dimensions, noise));
    double value = factor.log_likelihood;
    for (std::size_t i = 0; i < logs.size(); ++i) value += priors[i].log_density(logs[i]);
    if (!gradient.empty()) {
      const VectorXd of_likelihood = likelihood_gradient(problem, factor);
      for (std::size_t i = 0; i < logs.size(); ++i)
        gradient[i] = of_likelihood[to_index(i)] -
                      (logs[i] - priors[i].centre) / (priors[i].spread * priors[i].spread);
    }
    if (std::isfinite(value) && (best.empty() || value > best_value)) {
      best_value = value;
      best = logs;
    }
    return std::isfinite(value) ? value : -1e300;
  };

  using Objective = decltype(objective);
  for (auto& start : starts) {
    nlopt::opt optimiser(nlopt::LD_SLSQP, static_cast<unsigned>(priors.size()));
    std::vector<double> low, high;
    for (std::size_t i = 0; i < priors.size(); ++i) {
      low.push_back(priors[i].low);
      high.push_back(priors[i].high);
      start[i] = std::clamp(start[i], low[i], high[i]);
    }
    optimiser.set_lower_bounds(low);
    optimiser.set_upper_bounds(high);
    optimiser.set_ftol_abs(1e-3);
    optimiser.set_maxeval(static_cast<int>(config.evaluations));
    optimiser.set_max_objective(
        [](const std::vector<double>& logs, std::vector<double>& gradient, void* data) {
          return (*static_cast<const Objective*>(data))(logs, gradient);
        },
        const_cast<void*>(static_cast<const void*>(&objective)));
    double value = 0.0;
    try {
      optimiser.optimize(start, value);
    } catch (const std::runtime_error&) {
      // A search that ends in rounding keeps the best point it has seen.
    }
  }
  if (best.empty()) best = starts.front();
  return from_logs(best, dimensions, noise);
}

}  // namespace

std::string to_string(GaussianProcess::Kernel kernel) {
  return kernel == Kernel::matern52 ? "matern52" : "squared-exponential";
}

std::string to_string(GaussianProcess::Mean mean) {
  switch (mean) {
    case Mean::constant:
      return "constant";
    case Mean::linear:
      return "linear";
    case Mean::quadratic:
      return "quadratic";
  }
  return "constant";
}

struct GaussianProcess::State {
  Matrix x;
  std::vector<double> y, variances;
  Hyperparameters hyperparameters;
  Standardised problem;
  Factor factor;
  std::vector<double> lows, ranges;

  /// Hyperparameters in the scaled units, and back.
  Hyperparameters scaled(Hyperparameters of) const {
    for (std::size_t d = 0; d < ranges.size(); ++d) of.lengths[d] /= ranges[d];
    of.amplitude /= problem.scale;
    of.noise /= problem.scale;
    return of;
  }
  Hyperparameters unscaled(Hyperparameters of) const {
    for (std::size_t d = 0; d < ranges.size(); ++d) of.lengths[d] *= ranges[d];
    of.amplitude *= problem.scale;
    of.noise *= problem.scale;
    return of;
  }
  VectorXd unit(std::span<const double> point) const {
    VectorXd u(to_index(ranges.size()));
    for (std::size_t d = 0; d < ranges.size(); ++d)
      u[to_index(d)] = (point[d] - lows[d]) / ranges[d];
    return u;
  }

  State(const ParameterSpace& box, const Config& config, const Observations& observations,
        const char* function);
  void set_mean(Mean asked);
  void set_scale(double mean_scale);
};

GaussianProcess::State::State(const ParameterSpace& box, const Config& config,
                              const Observations& observations, const char* function) {
  const std::size_t n = observations.x.rows();
  check_at_least(function, "observations", n, 1);
  check_same_size(function, "x", observations.x.cols(), box.size(), "columns, one a parameter");
  check_same_size(function, "y", observations.y.size(), n, "one for each point");
  check_finite(function, "y", observations.y);
  if (!observations.variances.empty()) {
    check_same_size(function, "variances", observations.variances.size(), n, "one for each point");
    check_finite(function, "variances", observations.variances);
    check_non_negative(function, "variances", observations.variances);
  }
  x = Matrix(n, box.size());
  for (std::size_t i = 0; i < n; ++i) {
    check_finite(function, fmt::format("x[{}]", i), observations.x.row(i));
    std::copy_n(observations.x.row(i).begin(), box.size(), x.row(i).begin());
  }
  y.assign(observations.y.begin(), observations.y.end());
  variances.assign(observations.variances.begin(), observations.variances.end());
  for (const auto& parameter : box) {
    lows.push_back(parameter.low);
    ranges.push_back(parameter.high - parameter.low);
  }
  problem.kernel = config.kernel;
  problem.u.resize(to_index(n), to_index(box.size()));
  for (std::size_t i = 0; i < n; ++i) problem.u.row(to_index(i)) = unit(x.row(i));
  set_mean(config.mean);
  set_scale(config.mean_scale);
}

void GaussianProcess::State::set_mean(Mean asked) {
  const std::size_t d = ranges.size();
  problem.mean = asked;
  const auto too_few = [&] { return x.rows() < basis_size(problem.mean, d) + d + 1; };
  if (problem.mean == Mean::quadratic && too_few()) problem.mean = Mean::linear;
  if (problem.mean == Mean::linear && too_few()) problem.mean = Mean::constant;
  problem.h.resize(problem.size(), to_index(basis_size(problem.mean, d)));
  for (Index i = 0; i < problem.size(); ++i)
    problem.h.row(i) = basis(problem.mean, problem.u.row(i));
}

void GaussianProcess::State::set_scale(double mean_scale) {
  const Index n = problem.size();
  const Eigen::Map<const VectorXd> values(y.data(), n);
  // Divided first, so that neither 1e-200 nor 1e200 loses its square.
  problem.centre = 0.0;
  for (const double value : y) problem.centre += value / static_cast<double>(n);
  double extent = (values.array() - problem.centre).abs().maxCoeff();
  const bool flat = extent <= 1e-14 * std::abs(problem.centre) || extent == 0.0;
  if (flat) extent = problem.centre == 0.0 ? 1.0 : std::abs(problem.centre);
  const VectorXd z = ((values.array() - problem.centre) / extent).matrix();
  VectorXd v = VectorXd::Zero(n);
  for (std::size_t i = 0; i < variances.size(); ++i) {
    const double sd = std::sqrt(variances[i]) / extent;
    v[to_index(i)] = sd * sd;
  }

  // The residuals of the polynomial give the scale, those with large known variances little.
  double scale2 = 1.0;
  if (!flat) {
    VectorXd weight = VectorXd::Ones(n);
    for (int pass = 0; pass < 5; ++pass) {
      const VectorXd root = weight.array().sqrt().matrix();
      const MatrixXd weighted = root.asDiagonal() * problem.h;
      const VectorXd fitted =
          problem.h * weighted.colPivHouseholderQr().solve(root.cwiseProduct(z));
      scale2 = std::max(1e-18, weight.dot((z - fitted).cwiseAbs2()) / weight.sum());
      weight = (scale2 / (scale2 + v.array())).matrix();
    }
  }
  const double relative = std::sqrt(scale2);
  problem.scale = extent * relative;
  problem.y = z / relative;
  problem.variances = v / scale2;
  const double spread = flat ? 1.0 : std::sqrt(problem.y.squaredNorm() / static_cast<double>(n));
  problem.prior_variance = mean_scale * mean_scale * spread * spread;
}

namespace {

/// The kernel knows nothing of turns: to it, a periodic parameter has two ends.
ParameterSpace with_ends(const ParameterSpace& box) {
  std::vector<Parameter> parameters(box.begin(), box.end());
  for (auto& parameter : parameters) parameter.periodic = false;
  return ParameterSpace(std::move(parameters));
}

}  // namespace

GaussianProcess::GaussianProcess(ParameterSpace box, Config config)
    : box_(with_ends(box)), config_(config) {
  check_at_least("GaussianProcess", "parameters", box_.size(), 1);
  check_at_least("GaussianProcess", "starts", config_.starts, 1);
  check_at_least("GaussianProcess", "evaluations", config_.evaluations, 1);
  check_at_least("GaussianProcess", "search_points", config_.search_points, 10);
  check_positive("GaussianProcess", "mean_scale", config_.mean_scale);
  if (config_.noise) check_in_range("GaussianProcess", "noise", *config_.noise, 0.0, 1e300);
}

const GaussianProcess::State& GaussianProcess::state(const char* function) const {
  if (!state_) fail_argument(function, "process", "without observations", "fitted first");
  return *state_;
}

std::size_t GaussianProcess::observations() const { return state_ ? state_->y.size() : 0; }

const GaussianProcess::Hyperparameters& GaussianProcess::hyperparameters() const {
  return state("GaussianProcess::hyperparameters").hyperparameters;
}

GaussianProcess::Mean GaussianProcess::mean_used() const {
  return state("GaussianProcess::mean_used").problem.mean;
}

void GaussianProcess::fit(const Observations& observations) {
  auto next = std::make_shared<State>(box_, config_, observations, "GaussianProcess::fit");
  std::optional<Hyperparameters> previous;
  if (state_) previous = next->scaled(state_->hyperparameters);
  const std::size_t n = next->y.size();
  Hyperparameters found;
  if (n > config_.search_points) {
    std::vector<Index> rows(n);
    for (std::size_t i = 0; i < n; ++i) rows[i] = to_index(i);
    RandomStream random(config_.seed, "gaussian-process-rows");
    for (std::size_t i = 0; i < config_.search_points; ++i)
      std::swap(rows[i], rows[i + random.below(n - i)]);
    rows.resize(config_.search_points);
    std::sort(rows.begin(), rows.end());
    found = search(next->problem.take(rows), config_, previous);
  } else {
    found = search(next->problem, config_, previous);
  }
  next->hyperparameters = next->unscaled(found);
  // From the unscaled ones, so that a loaded process has the same bits.
  next->factor = factorise(next->problem, next->scaled(next->hyperparameters));
  state_ = std::move(next);
}

namespace {

void check_hyperparameters(const char* function, const Hyperparameters& hyperparameters,
                           std::size_t dimensions) {
  check_same_size(function, "lengths", hyperparameters.lengths.size(), dimensions,
                  "one a parameter");
  for (const double length : hyperparameters.lengths) check_positive(function, "length", length);
  check_positive(function, "amplitude", hyperparameters.amplitude);
  check_in_range(function, "noise", hyperparameters.noise, 0.0, 1e300);
}

}  // namespace

void GaussianProcess::condition(const Observations& observations,
                                const Hyperparameters& hyperparameters) {
  check_hyperparameters("GaussianProcess::condition", hyperparameters, box_.size());
  auto next = std::make_shared<State>(box_, config_, observations, "GaussianProcess::condition");
  next->hyperparameters = hyperparameters;
  next->factor = factorise(next->problem, next->scaled(hyperparameters));
  state_ = std::move(next);
}

double GaussianProcess::log_marginal_likelihood(const Hyperparameters& hyperparameters,
                                                std::span<double> gradient) const {
  const char* function = "GaussianProcess::log_marginal_likelihood";
  const auto& s = state(function);
  check_hyperparameters(function, hyperparameters, box_.size());
  const auto factor = factorise(s.problem, s.scaled(hyperparameters));
  if (!gradient.empty()) {
    check_same_size(function, "gradient", gradient.size(), box_.size() + 2,
                    "lengths, amplitude and noise");
    const VectorXd found = likelihood_gradient(s.problem, factor);
    std::copy_n(found.data(), gradient.size(), gradient.begin());
  }
  return factor.log_likelihood - static_cast<double>(s.y.size()) * std::log(s.problem.scale);
}

double GaussianProcess::log_marginal_likelihood() const {
  const auto& s = state("GaussianProcess::log_marginal_likelihood");
  return s.factor.log_likelihood - static_cast<double>(s.y.size()) * std::log(s.problem.scale);
}

GaussianProcess::Prediction GaussianProcess::predict(std::span<const double> point,
                                                     std::span<double> mean_gradient,
                                                     std::span<double> deviation_gradient) const {
  const char* function = "GaussianProcess::predict";
  const auto& s = state(function);
  check_same_size(function, "point", point.size(), box_.size(), "one for each parameter");
  check_finite(function, "point", point);
  const auto& [scaled, cholesky, coefficients, solved, alpha, beta, log_likelihood] = s.factor;
  const VectorXd u = s.unit(point);
  ArrayXd k, slope;
  const bool with_gradient = !mean_gradient.empty() || !deviation_gradient.empty();
  kernel_values(s.problem.kernel, scaled.amplitude,
                squared_distances(s.problem.u, u, scaled.lengths), k,
                with_gradient ? &slope : nullptr);
  const VectorXd h = basis(s.problem.mean, u);
  Prediction out;
  out.mean = s.problem.centre + s.problem.scale * (h.dot(beta) + k.matrix().dot(alpha));
  const VectorXd half = cholesky.matrixL().solve(k.matrix());
  const VectorXd remainder = h - solved.transpose() * k.matrix();
  const VectorXd weights = coefficients.solve(remainder);
  const double variance =
      scaled.amplitude * scaled.amplitude - half.squaredNorm() + remainder.dot(weights);
  out.deviation = s.problem.scale * std::sqrt(std::max(0.0, variance));
  if (!with_gradient) return out;

  MatrixXd dk(s.problem.size(), s.problem.dimensions());  // ∂k/∂u
  for (Index d = 0; d < dk.cols(); ++d) {
    const double length = scaled.lengths[static_cast<std::size_t>(d)];
    dk.col(d) = (slope * 2.0 * (u[d] - s.problem.u.col(d).array()) / (length * length)).matrix();
  }
  const MatrixXd dh = basis_gradient(s.problem.mean, u);
  if (!mean_gradient.empty()) {
    check_same_size(function, "mean_gradient", mean_gradient.size(), box_.size(),
                    "one for each parameter");
    const VectorXd slope_u = dh.transpose() * beta + dk.transpose() * alpha;
    for (std::size_t d = 0; d < box_.size(); ++d)
      mean_gradient[d] = s.problem.scale * slope_u[to_index(d)] / s.ranges[d];
  }
  if (!deviation_gradient.empty()) {
    check_same_size(function, "deviation_gradient", deviation_gradient.size(), box_.size(),
                    "one for each parameter");
    const VectorXd full = cholesky.matrixU().solve(half);  // K⁻¹k
    const VectorXd of_variance = -2.0 * (dk.transpose() * full) +
                                 2.0 * ((dh - solved.transpose() * dk).transpose() * weights);
    for (std::size_t d = 0; d < box_.size(); ++d)
      deviation_gradient[d] = variance > 0.0 ? s.problem.scale * of_variance[to_index(d)] /
                                                   (2.0 * std::sqrt(variance) * s.ranges[d])
                                             : 0.0;
  }
  return out;
}

GaussianProcess::Predictions GaussianProcess::predict(MatrixView points) const {
  const char* function = "GaussianProcess::predict";
  const auto& s = state(function);
  check_same_size(function, "points", points.cols(), box_.size(), "columns, one a parameter");
  Predictions out;
  out.means.resize(points.rows());
  out.deviations.resize(points.rows());
  constexpr std::size_t block_size = 128;
  parallel_blocks(points.rows(), block_size, [&](Block block) {
    const Index count = to_index(block.size());
    MatrixXd k(s.problem.size(), count), h(s.problem.h.cols(), count);
    ArrayXd column;
    for (Index i = 0; i < count; ++i) {
      const auto row = points.row(block.begin + static_cast<std::size_t>(i));
      check_finite(function, "points", row);
      const VectorXd u = s.unit(row);
      kernel_values(s.problem.kernel, s.factor.scaled.amplitude,
                    squared_distances(s.problem.u, u, s.factor.scaled.lengths), column, nullptr);
      k.col(i) = column;
      h.col(i) = basis(s.problem.mean, u);
    }
    const VectorXd means = h.transpose() * s.factor.beta + k.transpose() * s.factor.alpha;
    h.noalias() -= s.factor.solved.transpose() * k;
    s.factor.cholesky.matrixL().solveInPlace(k);
    s.factor.coefficients.matrixL().solveInPlace(h);
    const double prior = s.factor.scaled.amplitude * s.factor.scaled.amplitude;
    for (Index i = 0; i < count; ++i) {
      const std::size_t at = block.begin + static_cast<std::size_t>(i);
      const double variance = prior - k.col(i).squaredNorm() + h.col(i).squaredNorm();
      out.means[at] = s.problem.centre + s.problem.scale * means[i];
      out.deviations[at] = s.problem.scale * std::sqrt(std::max(0.0, variance));
    }
  });
  return out;
}

GaussianProcess::LeaveOneOut GaussianProcess::leave_one_out() const {
  const auto& s = state("GaussianProcess::leave_one_out");
  const Index n = s.problem.size();
  // With C = K + HBHᵀ: residual_i = [C⁻¹y]_i / [C⁻¹]_ii, variance 1/[C⁻¹]_ii.
  MatrixXd inverse_root = MatrixXd::Identity(n, n);
  s.factor.cholesky.matrixL().solveInPlace(inverse_root);
  const MatrixXd half =
      s.factor.coefficients.matrixL().solve(MatrixXd(s.factor.solved.transpose()));
  LeaveOneOut out;
  for (Index i = 0; i < n; ++i) {
    const double precision = std::max(inverse_root.col(i).squaredNorm() - half.col(i).squaredNorm(),
                                      std::numeric_limits<double>::min());
    out.residuals.push_back(s.problem.scale * s.factor.alpha[i] / precision);
    out.deviations.push_back(s.problem.scale / std::sqrt(precision));
  }
  return out;
}

// --- Archive --------------------------------------------------------------------------------

void GaussianProcess::save(Archive& archive) const {
  const auto& s = state("GaussianProcess::save");
  archive.set("kernel", to_string(config_.kernel));
  archive.set("mean", to_string(config_.mean));
  if (config_.noise) archive.set("fixed_noise", *config_.noise);
  archive.set("mean_scale", config_.mean_scale);
  archive.set("starts", config_.starts);
  archive.set("evaluations", config_.evaluations);
  archive.set("search_points", config_.search_points);
  archive.set("seed", static_cast<std::int64_t>(config_.seed));
  std::vector<std::string> names;
  std::vector<double> low, high;
  for (const auto& parameter : box_) {
    names.push_back(parameter.name);
    low.push_back(parameter.low);
    high.push_back(parameter.high);
  }
  archive.set("parameters", std::move(names));
  archive.set("low", std::move(low));
  archive.set("high", std::move(high));
  archive.set("x", s.x);
  archive.set("y", s.y);
  archive.set("variances", s.variances);
  archive.set("lengths", s.hyperparameters.lengths);
  archive.set("amplitude", s.hyperparameters.amplitude);
  archive.set("noise", s.hyperparameters.noise);
}

void GaussianProcess::load(const Archive& archive) {
  Config config;
  const auto& kernel = archive.text("kernel");
  if (kernel != "matern52" && kernel != "squared-exponential")
    throw FileError("GaussianProcess: unknown kernel '" + kernel + "'");
  config.kernel = kernel == "matern52" ? Kernel::matern52 : Kernel::squared_exponential;
  const auto& mean = archive.text("mean");
  if (mean != "constant" && mean != "linear" && mean != "quadratic")
    throw FileError("GaussianProcess: unknown mean '" + mean + "'");
  config.mean =
      mean == "constant" ? Mean::constant : (mean == "linear" ? Mean::linear : Mean::quadratic);
  if (archive.has("fixed_noise")) config.noise = archive.number("fixed_noise");
  config.mean_scale = archive.number("mean_scale");
  config.starts = static_cast<std::size_t>(archive.integer("starts"));
  config.evaluations = static_cast<std::size_t>(archive.integer("evaluations"));
  config.search_points = static_cast<std::size_t>(archive.integer("search_points"));
  config.seed = static_cast<std::uint64_t>(archive.integer("seed"));
  const auto& names = archive.get<std::vector<std::string>>("parameters");
  const auto& low = archive.numbers("low");
  const auto& high = archive.numbers("high");
  if (low.size() != names.size() || high.size() != names.size())
    throw FileError("GaussianProcess: low and high must have one value for each parameter");
  std::vector<Parameter> parameters;
  for (std::size_t i = 0; i < names.size(); ++i)
    parameters.push_back({names[i], low[i], high[i], {}});
  GaussianProcess loaded(ParameterSpace(std::move(parameters)), config);
  loaded.condition(
      {archive.get<Matrix>("x"), archive.numbers("y"), archive.numbers("variances")},
      {archive.numbers("lengths"), archive.number("amplitude"), archive.number("noise")});
  *this = std::move(loaded);
}

}  // namespace neyman
