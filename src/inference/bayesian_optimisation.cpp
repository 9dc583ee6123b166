#include "neyman/inference/bayesian_optimisation.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <limits>
#include <nlopt.hpp>
#include <numbers>
#include <numeric>
#include <utility>

#include "neyman/core/check.hpp"
#include "neyman/core/progress.hpp"
#include "neyman/core/random.hpp"

namespace neyman {

namespace {

using Point = std::vector<double>;
/// Value and gradient (where not empty) of something to maximise over the unit box.
using Objective = std::function<double(const Point&, std::vector<double>&)>;

/// log(φ(z) + z Φ(z)): the expected improvement in units of the standard deviation.
double log_improvement(double z) {
  const double log_density = -0.5 * z * z - 0.5 * std::log(2.0 * std::numbers::pi);
  if (z < -20.0) {  // the two terms cancel; their series does not
    const double w = 1.0 / (z * z);
    return log_density + std::log(w * (1.0 - 3.0 * w + 15.0 * w * w));
  }
  return std::log(std::exp(log_density) + z * 0.5 * std::erfc(-z / std::numbers::sqrt2));
}

/// Φ(z) / (φ(z) + z Φ(z)), the derivative of log_improvement.
double log_improvement_slope(double z) {
  if (z < -20.0) return -z - 2.0 / z;
  return 0.5 * std::erfc(-z / std::numbers::sqrt2) / std::exp(log_improvement(z));
}

/// A Latin hypercube of n points in the unit box: of several, the one whose nearest points are
/// furthest apart.
std::vector<Point> latin_hypercube(std::size_t n, std::size_t dimensions, RandomStream& random) {
  std::vector<Point> best;
  double best_distance = -1.0;
  for (int trial = 0; trial < 30; ++trial) {
    std::vector<Point> points(n, Point(dimensions));
    for (std::size_t d = 0; d < dimensions; ++d) {
      std::vector<std::size_t> cell(n);
      std::iota(cell.begin(), cell.end(), 0);
      for (std::size_t i = n; i > 1; --i) std::swap(cell[i - 1], cell[random.below(i)]);
      for (std::size_t i = 0; i < n; ++i)
        points[i][d] = (static_cast<double>(cell[i]) + random.uniform()) / static_cast<double>(n);
    }
    double distance = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < i; ++j) {
        double sum = 0.0;
        for (std::size_t d = 0; d < dimensions; ++d)
          sum += (points[i][d] - points[j][d]) * (points[i][d] - points[j][d]);
        distance = std::min(distance, sum);
      }
    if (distance > best_distance) {
      best_distance = distance;
      best = std::move(points);
    }
  }
  return best;
}

/// A part of the unit box.
struct Region {
  Point low, high;
};

/// The best point that a local search from `start` sees.
Point climb(const Objective& objective, const Point& start, const Region& region) {
  Point best = start;
  double best_value = -std::numeric_limits<double>::infinity();
  struct Seen {
    const Objective& objective;
    Point& best;
    double& best_value;
  } seen{objective, best, best_value};
  nlopt::opt optimiser(nlopt::LD_SLSQP, static_cast<unsigned>(start.size()));
  optimiser.set_lower_bounds(region.low);
  optimiser.set_upper_bounds(region.high);
  optimiser.set_xtol_abs(1e-7);
  optimiser.set_maxeval(60);
  optimiser.set_max_objective(
      [](const Point& unit, std::vector<double>& gradient, void* data) {
        auto& s = *static_cast<Seen*>(data);
        const double value = s.objective(unit, gradient);
        if (value > s.best_value) {
          s.best_value = value;
          s.best = unit;
        }
        return value;
      },
      &seen);
  Point unit = start;
  double value = 0.0;
  try {
    optimiser.optimize(unit, value);
  } catch (const std::runtime_error&) {
    // A search that ends in rounding keeps the best point it has seen.
  }
  return best;
}

double distance(const Point& a, const Point& b) {
  double largest = 0.0;
  for (std::size_t d = 0; d < a.size(); ++d) largest = std::max(largest, std::abs(a[d] - b[d]));
  return largest;
}

/// What a Gaussian process says of where to go, within a region of the unit box.
class Guide {
 public:
  Guide(const ParameterSpace& box, GaussianProcess process)
      : box_(box), process_(std::move(process)) {}

  struct Proposal {
    Point unit;
    double log_improvement = 0.0;
  };

  GaussianProcess& process() { return process_; }
  const GaussianProcess& process() const { return process_; }
  void set_region(Region region) { region_ = std::move(region); }
  /// Of the points evaluated, the one with the largest posterior mean.
  void set_incumbent(const std::vector<Point>& units, const std::vector<std::uint8_t>& allowed);
  /// Where the expected improvement is largest.
  Proposal propose(std::size_t candidates, RandomStream& random) const;
  /// Where the posterior mean is largest. `unit_value` is about the function's range.
  Point mean_maximum(std::size_t candidates, double unit_value, RandomStream& random) const;
  Matrix covariance_at(const Point& unit) const;

 private:
  std::size_t dimensions() const { return box_.size(); }
  double range(std::size_t d) const { return box_[d].high - box_[d].low; }
  Point to_point(const Point& unit) const;
  Matrix to_points(const std::vector<Point>& units) const;
  std::vector<Point> draw(std::size_t count, RandomStream& random) const;
  /// The `count` best of the points drawn, by the expected improvement.
  std::vector<Point> best_drawn(std::size_t count, std::size_t candidates,
                                RandomStream& random) const;
  double log_acquisition(double mean, double deviation) const;
  double log_acquisition(const Point& unit, std::vector<double>& gradient) const;

  const ParameterSpace& box_;
  GaussianProcess process_;
  Region region_;
  double incumbent_ = 0.0;
  Point incumbent_unit_;
};

Point Guide::to_point(const Point& unit) const {
  Point point(unit.size());
  for (std::size_t d = 0; d < unit.size(); ++d)
    point[d] = std::clamp(box_[d].low + unit[d] * range(d), box_[d].low, box_[d].high);
  return point;
}

Matrix Guide::to_points(const std::vector<Point>& units) const {
  Matrix out(units.size(), dimensions());
  for (std::size_t i = 0; i < units.size(); ++i) {
    const auto point = to_point(units[i]);
    std::copy(point.begin(), point.end(), out.row(i).begin());
  }
  return out;
}

void Guide::set_incumbent(const std::vector<Point>& units,
                          const std::vector<std::uint8_t>& allowed) {
  incumbent_ = -std::numeric_limits<double>::infinity();
  const auto predictions = process_.predict(to_points(units));
  for (std::size_t i = 0; i < units.size(); ++i)
    if (allowed[i] && predictions.means[i] > incumbent_) {
      incumbent_ = predictions.means[i];
      incumbent_unit_ = units[i];
    }
}

/// Points over the whole region, and as many around the incumbent at all distances.
std::vector<Point> Guide::draw(std::size_t count, RandomStream& random) const {
  std::vector<Point> out(count, Point(dimensions()));
  for (std::size_t i = 0; i < count; ++i) {
    const double reach = std::pow(10.0, -3.5 + 3.0 * random.uniform());
    for (std::size_t d = 0; d < dimensions(); ++d) {
      const double low = region_.low[d], high = region_.high[d];
      out[i][d] = i % 2 == 0 ? low + (high - low) * random.uniform()
                             : incumbent_unit_[d] + reach * random.normal();
      out[i][d] = std::clamp(out[i][d], low, high);
    }
  }
  return out;
}

double Guide::log_acquisition(double mean, double deviation) const {
  if (!(deviation > 0.0)) return -std::numeric_limits<double>::infinity();
  const double noise = process_.hyperparameters().noise;
  // 1 − σ/√(σ² + s²), without cancellation.
  const double total = std::hypot(noise, deviation);
  return std::log(deviation) + log_improvement((mean - incumbent_) / deviation) +
         std::log(deviation / total * deviation / (total + noise));
}

double Guide::log_acquisition(const Point& unit, std::vector<double>& gradient) const {
  const auto point = to_point(unit);
  if (gradient.empty()) {
    const auto [mean, deviation] = process_.predict(point);
    return std::max(-1e300, log_acquisition(mean, deviation));
  }
  std::vector<double> of_mean(dimensions()), of_deviation(dimensions());
  const auto [mean, deviation] = process_.predict(point, of_mean, of_deviation);
  const double value = log_acquisition(mean, deviation);
  if (!std::isfinite(value)) {
    std::fill(gradient.begin(), gradient.end(), 0.0);
    return -1e300;
  }
  const double z = (mean - incumbent_) / deviation;
  const double slope = log_improvement_slope(z);
  const double noise = process_.hyperparameters().noise;
  const double total = std::hypot(noise, deviation);
  // ∂ log(1 − σ/T)/∂s with T² = σ² + s² is σ s / (T² (T − σ)), and T − σ = s²/(T + σ).
  const double of_noise = noise * (total + noise) / (total * total * deviation);
  for (std::size_t d = 0; d < dimensions(); ++d)
    gradient[d] = range(d) * (slope * (of_mean[d] - z * of_deviation[d]) / deviation +
                              of_deviation[d] * (1.0 / deviation + of_noise));
  return value;
}

std::vector<Point> Guide::best_drawn(std::size_t count, std::size_t candidates,
                                     RandomStream& random) const {
  auto units = draw(candidates, random);
  const auto predictions = process_.predict(to_points(units));
  std::vector<double> value(units.size());
  for (std::size_t i = 0; i < units.size(); ++i)
    value[i] = log_acquisition(predictions.means[i], predictions.deviations[i]);
  std::vector<std::size_t> order(units.size());
  std::iota(order.begin(), order.end(), 0);
  count = std::min(count, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    [&](std::size_t a, std::size_t b) {
                      return value[a] != value[b] ? value[a] > value[b] : a < b;
                    });
  std::vector<Point> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(std::move(units[order[i]]));
  return out;
}

Guide::Proposal Guide::propose(std::size_t candidates, RandomStream& random) const {
  const Objective acquisition = [&](const Point& unit, std::vector<double>& gradient) {
    return log_acquisition(unit, gradient);
  };
  Proposal best;
  std::vector<double> none;
  for (const auto& start : best_drawn(3, candidates, random)) {
    auto found = climb(acquisition, start, region_);
    const double value = log_acquisition(found, none);
    if (best.unit.empty() || value > best.log_improvement) best = {std::move(found), value};
  }
  return best;
}

Point Guide::mean_maximum(std::size_t candidates, double unit_value, RandomStream& random) const {
  // The optimiser wants a function of about one.
  const Objective mean = [&](const Point& unit, std::vector<double>& gradient) {
    const auto point = to_point(unit);
    if (gradient.empty()) return (process_.predict(point).mean - incumbent_) / unit_value;
    const double value = process_.predict(point, gradient).mean;
    for (std::size_t d = 0; d < gradient.size(); ++d) gradient[d] *= range(d) / unit_value;
    return (value - incumbent_) / unit_value;
  };
  auto starts = best_drawn(4, candidates, random);
  starts.push_back(incumbent_unit_);
  Point best;
  double best_value = -std::numeric_limits<double>::infinity();
  std::vector<double> none;
  for (auto& start : starts) {
    for (std::size_t d = 0; d < dimensions(); ++d)
      start[d] = std::clamp(start[d], region_.low[d], region_.high[d]);
    auto found = climb(mean, start, region_);
    const double value = mean(found, none);
    if (best.empty() || value > best_value) {
      best_value = value;
      best = std::move(found);
    }
  }
  return best;
}

Matrix Guide::covariance_at(const Point& unit) const {
  const std::size_t n = dimensions();
  Matrix out(n, n);
  const auto point = to_point(unit);
  // Differences first over a thousandth of the box, then over half a standard error.
  std::vector<double> step(n);
  for (std::size_t d = 0; d < n; ++d) step[d] = 1e-3 * range(d);
  for (int pass = 0; pass < 2; ++pass) {
    Eigen::MatrixXd information(n, n);
    std::vector<double> up(n), down(n);
    for (std::size_t d = 0; d < n; ++d) {
      auto moved = point;
      moved[d] = point[d] + step[d];
      process_.predict(moved, up);
      moved[d] = point[d] - step[d];
      process_.predict(moved, down);
      for (std::size_t e = 0; e < n; ++e)
        information(static_cast<Eigen::Index>(d), static_cast<Eigen::Index>(e)) =
            (down[e] - up[e]) / (2.0 * step[d]) * range(d) * range(e);
    }
    information = 0.5 * (information + information.transpose()).eval();
    const Eigen::LLT<Eigen::MatrixXd> cholesky(information);
    if (cholesky.info() != Eigen::Success) return Matrix(n, n);
    const Eigen::MatrixXd inverse = cholesky.solve(
        Eigen::MatrixXd::Identity(static_cast<Eigen::Index>(n), static_cast<Eigen::Index>(n)));
    for (std::size_t d = 0; d < n; ++d)
      for (std::size_t e = 0; e < n; ++e)
        out(d, e) = inverse(static_cast<Eigen::Index>(d), static_cast<Eigen::Index>(e)) * range(d) *
                    range(e);
    for (std::size_t d = 0; d < n; ++d)
      step[d] = std::clamp(0.5 * std::sqrt(out(d, d)), 1e-6 * range(d), 0.1 * range(d));
  }
  return out;
}

/// The search. Without `top` one process models the function over the box. With it there are two:
/// one over the box whose values are compressed beyond `top`, so that depths of thousands do not
/// drown the top, and one near the top, which models the values themselves.
class Search {
 public:
  Search(const std::function<double(std::span<const double>)>& function, const ParameterSpace& box,
         const BayesianConfig& config)
      : function_(function),
        box_(box),
        config_(config),
        random_(config.seed, "bayesian-optimisation"),
        wide_(box, GaussianProcess(box, process_config(2, !config.top))),
        near_(box, GaussianProcess(box, process_config(2, true))) {
    wide_.set_region(whole());
  }

  BayesianFit run();

 private:
  std::size_t dimensions() const { return box_.size(); }
  double range(std::size_t d) const { return box_[d].high - box_[d].low; }
  Region whole() const { return {Point(dimensions(), 0.0), Point(dimensions(), 1.0)}; }
  GaussianProcess::Config process_config(std::size_t starts, bool with_mean) const;
  std::size_t initial_points() const;
  void evaluate(const Point& unit);
  /// Values with the refused ones as bad as the worst, and the largest first below 0.
  std::vector<double> depths() const;
  double best_value() const;
  double spread() const;
  void model(GaussianProcess& process, const std::vector<double>& y,
             const std::vector<double>& variances, bool search_hyperparameters) const;
  void model_wide(bool search_hyperparameters);
  void model_near(double tail, bool search_hyperparameters);
  /// Around the points near the top; empty where they are too few.
  Region near_region() const;
  Point next();
  void finish(BayesianFit& out);

  const std::function<double(std::span<const double>)>& function_;
  const ParameterSpace& box_;
  const BayesianConfig& config_;
  RandomStream random_;
  Guide wide_, near_;
  std::vector<Point> units_, points_;
  std::vector<double> values_;
  std::vector<std::uint8_t> usable_;
  // Evaluations when hyperparameters were last searched.
  std::size_t modelled_wide_ = 0, modelled_near_ = 0;
};

GaussianProcess::Config Search::process_config(std::size_t starts, bool with_mean) const {
  GaussianProcess::Config out;
  out.kernel = config_.kernel;
  out.mean = with_mean ? config_.mean : GaussianProcess::Mean::constant;
  out.noise = config_.noise;
  out.starts = starts;
  out.seed = config_.seed;
  return out;
}

std::size_t Search::initial_points() const {
  const std::size_t d = dimensions();
  const std::size_t wanted = (d + 1) * (d + 2) / 2 + d + 1;
  const std::size_t automatic = std::min(wanted, std::max<std::size_t>(2, config_.evaluations / 2));
  const std::size_t count = config_.initial > 0 ? config_.initial : automatic;
  return std::min(count, config_.evaluations);
}

void Search::evaluate(const Point& unit) {
  check_stop();
  Point point(unit.size());
  for (std::size_t d = 0; d < unit.size(); ++d)
    point[d] = std::clamp(box_[d].low + unit[d] * range(d), box_[d].low, box_[d].high);
  const double value = function_(point);
  units_.push_back(unit);
  points_.push_back(std::move(point));
  values_.push_back(value);
  usable_.push_back(std::isfinite(value) && value > Likelihood::forbidden);
}

double Search::best_value() const {
  double best = -std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < values_.size(); ++i)
    if (usable_[i]) best = std::max(best, values_[i]);
  return best;
}

std::vector<double> Search::depths() const {
  const double best = best_value();
  double worst = best;
  for (std::size_t i = 0; i < values_.size(); ++i)
    if (usable_[i]) worst = std::min(worst, values_[i]);
  std::vector<double> out;
  for (std::size_t i = 0; i < values_.size(); ++i)
    out.push_back(best - (usable_[i] ? values_[i] : worst));
  return out;
}

double Search::spread() const {
  auto sorted = depths();
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

void Search::model(GaussianProcess& process, const std::vector<double>& y,
                   const std::vector<double>& variances, bool search_hyperparameters) const {
  Matrix x(points_.size(), dimensions());
  for (std::size_t i = 0; i < points_.size(); ++i)
    std::copy(points_[i].begin(), points_[i].end(), x.row(i).begin());
  if (search_hyperparameters || !process.fitted())
    process.fit({x, y, variances});
  else
    process.condition({x, y, variances}, process.hyperparameters());
}

void Search::model_wide(bool search_hyperparameters) {
  const double best = best_value();
  auto y = depths();
  for (double& value : y) {
    if (config_.top && value > *config_.top)
      value = *config_.top * (1.0 + std::log(value / *config_.top));
    value = best - value;
  }
  model(wide_.process(), y, {}, search_hyperparameters);
  wide_.set_incumbent(units_, usable_);
}

void Search::model_near(double tail, bool search_hyperparameters) {
  const double best = best_value();
  auto y = depths();
  std::vector<double> variances;
  double largest = 0.0;
  for (double& value : y) {
    const double deviation = tail * std::max(0.0, value - *config_.top);
    largest = std::max(largest, deviation);
    variances.push_back(deviation * deviation);
    value = best - value;
  }
  // The deepest and the highest must not differ by more than doubles can tell apart.
  for (double& variance : variances) variance = std::max(variance, 1e-10 * largest * largest);
  model(near_.process(), y, variances, search_hyperparameters);
  near_.set_incumbent(units_, usable_);
}

Region Search::near_region() const {
  const auto depth = depths();
  Region region{Point(dimensions(), 1.0), Point(dimensions(), 0.0)};
  std::size_t count = 0;
  for (std::size_t i = 0; i < units_.size(); ++i) {
    if (!usable_[i] || depth[i] > 2.0 * *config_.top) continue;
    ++count;
    for (std::size_t d = 0; d < dimensions(); ++d) {
      region.low[d] = std::min(region.low[d], units_[i][d]);
      region.high[d] = std::max(region.high[d], units_[i][d]);
    }
  }
  if (count < dimensions() + 1) return {};
  for (std::size_t d = 0; d < dimensions(); ++d) {
    const double margin = std::max(0.25 * (region.high[d] - region.low[d]), 0.01);
    region.low[d] = std::max(0.0, region.low[d] - margin);
    region.high[d] = std::min(1.0, region.high[d] + margin);
  }
  return region;
}

constexpr double search_tail = 0.1;

Point Search::next() {
  const Region region = config_.top ? near_region() : Region{};
  const bool near = !region.low.empty() && units_.size() % 2 == 0;
  // Hyperparameters change little from point to point once there are many.
  std::size_t& last = near ? modelled_near_ : modelled_wide_;
  const bool search = last == 0 || 10 * (units_.size() - last) >= last;
  if (search) last = units_.size();
  if (near) {
    near_.set_region(region);
    model_near(search_tail, search);
  } else {
    model_wide(search);
  }
  auto& guide = near ? near_ : wide_;
  auto proposal = guide.propose(config_.candidates, random_);
  // A process may be sure of itself, as of a function that its mean describes exactly: then
  // rounding decides, and a point in the open is worth more.
  double nearest = std::numeric_limits<double>::infinity();
  for (const auto& unit : units_) nearest = std::min(nearest, distance(unit, proposal.unit));
  const bool repeats = nearest < 1e-6 && guide.process().hyperparameters().noise <= 1e-6 * spread();
  if (repeats || proposal.log_improvement < std::log(1e-9 * spread() + 1e-300)) {
    const auto open = near ? region : whole();
    for (std::size_t d = 0; d < dimensions(); ++d)
      proposal.unit[d] = open.low[d] + (open.high[d] - open.low[d]) * random_.uniform();
  }
  return proposal.unit;
}

void Search::finish(BayesianFit& out) {
  wide_.process() = GaussianProcess(box_, process_config(4, !config_.top));
  model_wide(true);
  out.expected_improvement = std::exp(wide_.propose(config_.candidates, random_).log_improvement);
  const Region region = config_.top ? near_region() : Region{};
  if (!region.low.empty()) {
    // How well the far values are described is judged by the marginal likelihood.
    near_.set_region(region);
    GaussianProcess best;
    for (const double tail : {0.01, 0.03, 0.1, 0.3}) {
      near_.process() = GaussianProcess(box_, process_config(2, true));
      model_near(tail, true);
      if (!best.fitted() ||
          near_.process().log_marginal_likelihood() > best.log_marginal_likelihood())
        best = near_.process();
    }
    near_.process() = std::move(best);
    near_.set_incumbent(units_, usable_);
    out.expected_improvement =
        std::max(out.expected_improvement,
                 std::exp(near_.propose(config_.candidates, random_).log_improvement));
  }
  const auto& guide = region.low.empty() ? wide_ : near_;
  const double unit_value = std::max(config_.top ? *config_.top : spread(), 1e-300);
  const auto unit = guide.mean_maximum(config_.candidates, unit_value, random_);
  for (std::size_t d = 0; d < dimensions(); ++d)
    out.point.push_back(std::clamp(box_[d].low + unit[d] * range(d), box_[d].low, box_[d].high));
  const auto [mean, deviation] = guide.process().predict(out.point);
  out.value = mean;
  out.deviation = deviation;
  out.covariance = guide.covariance_at(unit);
  out.surrogate = guide.process();
  const double tolerance = config_.tolerance ? *config_.tolerance : 1e-3 * spread();
  const bool bound =
      std::any_of(unit.begin(), unit.end(), [](double u) { return u < 1e-6 || u > 1.0 - 1e-6; });
  const bool found = out.expected_improvement <= tolerance && (!config_.top || !region.low.empty());
  out.status = !found ? FitStatus::failed : (bound ? FitStatus::at_bound : FitStatus::converged);
}

BayesianFit Search::run() {
  Progress progress("Bayesian optimisation", config_.evaluations, "evaluations");
  const auto step = [&](const Point& unit) {
    evaluate(unit);
    progress.advance();
  };
  const auto any_usable = [&] {
    return std::find(usable_.begin(), usable_.end(), std::uint8_t{1}) != usable_.end();
  };
  for (std::size_t i = 0; i < config_.first.rows() && units_.size() < config_.evaluations; ++i) {
    Point unit(dimensions());
    for (std::size_t d = 0; d < dimensions(); ++d)
      unit[d] = (config_.first(i, d) - box_[d].low) / range(d);
    step(unit);
  }
  for (const auto& unit : latin_hypercube(initial_points(), dimensions(), random_))
    if (units_.size() < config_.evaluations) step(unit);
  while (units_.size() < config_.evaluations) {
    if (any_usable()) {
      step(next());
    } else {
      Point unit(dimensions());
      random_.fill_uniform(unit);
      step(unit);
    }
  }

  BayesianFit out;
  out.points = Matrix(units_.size(), dimensions());
  std::size_t best = 0;
  for (std::size_t i = 0; i < units_.size(); ++i) {
    std::copy(points_[i].begin(), points_[i].end(), out.points.row(i).begin());
    if (usable_[i] && (!usable_[best] || values_[i] > values_[best])) best = i;
  }
  out.best_point = points_[best];
  out.best_value = values_[best];
  out.values = values_;
  out.refused =
      static_cast<std::size_t>(std::count(usable_.begin(), usable_.end(), std::uint8_t{0}));
  out.covariance = Matrix(dimensions(), dimensions());
  if (any_usable()) {
    finish(out);
  } else {
    out.point = out.best_point;
    out.value = out.best_value;
  }
  return out;
}

}  // namespace

BayesianFit maximise_bayesian(const std::function<double(std::span<const double>)>& function,
                              const ParameterSpace& box, const BayesianConfig& config) {
  const char* name = "maximise_bayesian";
  if (!function) fail_argument(name, "function", "empty", "a function");
  check_at_least(name, "parameters", box.size(), 1);
  check_at_least(name, "evaluations", config.evaluations, 2);
  check_at_least(name, "candidates", config.candidates, 10);
  if (config.noise) check_in_range(name, "noise", *config.noise, 0.0, 1e300);
  if (config.top) check_positive(name, "top", *config.top);
  if (config.tolerance) check_in_range(name, "tolerance", *config.tolerance, 0.0, 1e300);
  if (!config.first.empty())
    for (std::size_t i = 0; i < config.first.rows(); ++i)
      box.check_inside(name, config.first.row(i));
  return Search(function, box, config).run();
}

BayesianFit bayesian_fit(const Likelihood& likelihood, BayesianConfig config) {
  if (!config.top) config.top = 15.0;
  if (!config.tolerance) config.tolerance = 0.05;
  return maximise_bayesian([&](std::span<const double> point) { return likelihood(point); },
                           likelihood.parameters(), config);
}

}  // namespace neyman
