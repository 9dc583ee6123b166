#include "ratios/feature_scale.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "calibration/monotone_cubic.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/random.hpp"

namespace neyman::across {

namespace {

/// Quantiles are taken of at most this many events.
constexpr std::size_t quantile_events = 100000;
/// Distances between the knots of the map, in normal scores.
constexpr double knot_distance = 0.25;
/// So many events at least lie beyond the outermost knots.
constexpr double beyond = 5.0;
constexpr float farthest = 12.0f;
/// More values than these are no categories.
constexpr std::size_t most_categories = 12;
/// A share of the events at one value makes it an atom.
constexpr double atom_share = 0.01;
constexpr std::size_t most_atoms = 8;
/// Steps are looked for where this many events share each value on average.
constexpr double shared_by = 5.0;

double normal_cdf(double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }

/// The largest step of which all differences between neighbours are multiples; 0 where there is
/// none.
double common_step(const std::vector<double>& distinct) {
  double step = std::numeric_limits<double>::infinity();
  for (std::size_t i = 1; i < distinct.size(); ++i)
    step = std::min(step, distinct[i] - distinct[i - 1]);
  for (std::size_t i = 1; i < distinct.size(); ++i) {
    const double steps = (distinct[i] - distinct[i - 1]) / step;
    if (std::abs(steps - std::round(steps)) > 1e-6 * steps) return 0.0;
  }
  return step;
}

}  // namespace

FeatureScale::FeatureScale(std::vector<double> values) {
  if (values.size() > quantile_events) {
    const std::size_t stride = values.size() / quantile_events;
    std::vector<double> some;
    for (std::size_t i = 0; i < values.size(); i += stride) some.push_back(values[i]);
    values = std::move(some);
  }
  std::sort(values.begin(), values.end());
  std::vector<double> distinct, counts;
  for (const double value : values) {
    if (distinct.empty() || value != distinct.back()) {
      distinct.push_back(value);
      counts.push_back(0.0);
    }
    counts.back() += 1.0;
  }
  const auto n = static_cast<double>(values.size());
  if (distinct.size() < 2) {
    low_ = distinct.empty() ? 0.0 : distinct.front();
    return;
  }
  if (distinct.size() <= most_categories && n > shared_by * static_cast<double>(distinct.size())) {
    kind_ = Kind::categories;
    atoms_ = distinct;
  } else if (static_cast<double>(distinct.size()) * shared_by < n &&
             (step_ = common_step(distinct)) > 0.0) {
    kind_ = Kind::steps;
    // As if each value were spread evenly over its step.
    RandomStream random(0, "steps of a feature");
    for (double& value : values) value += step_ * (random.uniform() - 0.5);
    std::sort(values.begin(), values.end());
  } else {
    kind_ = Kind::continuous;
    std::vector<std::size_t> shared;
    for (std::size_t i = 0; i < distinct.size(); ++i)
      if (counts[i] > atom_share * n && counts[i] > shared_by) shared.push_back(i);
    std::sort(shared.begin(), shared.end(),
              [&](std::size_t a, std::size_t b) { return counts[a] > counts[b]; });
    shared.resize(std::min(shared.size(), most_atoms));
    for (const std::size_t i : shared) atoms_.push_back(distinct[i]);
    std::sort(atoms_.begin(), atoms_.end());
  }
  const auto size = static_cast<double>(values.size());
  for (double z = -6.0; z <= 6.0; z += knot_distance) {
    const double p = normal_cdf(z);
    if (p * size < beyond || (1.0 - p) * size < beyond) continue;
    const double x = values[static_cast<std::size_t>(p * (size - 1.0) + 0.5)];
    if (x_.empty() || x > x_.back()) {
      x_.push_back(x);
      z_.push_back(z);
    }
  }
  if (x_.size() < 2) {
    x_ = {values.front(), values.back()};
    z_ = {-1.0, 1.0};
  }
  prepare();
}

void FeatureScale::prepare() {
  // In units of the knots' range: squares of the column's own units may overflow.
  unit_ = 1.0 / (x_.back() - x_.front());
  const auto x = std::exchange(x_, {}), z = std::exchange(z_, {});
  const double first = x.front();
  knots_.clear();
  for (std::size_t k = 0; k < x.size(); ++k) {
    // Of a column over hundreds of powers of ten those next to the first one are the same.
    const double knot = (x[k] - first) * unit_;
    if (!knots_.empty() && !(knot > knots_.back())) continue;
    knots_.push_back(knot);
    x_.push_back(x[k]);
    z_.push_back(z[k]);
  }
  slopes_ = calibration::monotone_slopes(knots_, z_);
  lookup_ = std::make_shared<const calibration::Lookup>(knots_, 4 * knots_.size());
}

FeatureScale FeatureScale::of_range(double low, double high) {
  FeatureScale out;
  out.kind_ = Kind::continuous;
  out.low_ = low;
  out.slope_ = 1.0 / (high - low);
  return out;
}

FeatureScale FeatureScale::of_circle(double low, double high) {
  FeatureScale out = of_range(low, high);
  out.from_ = low;
  out.period_ = high - low;
  return out;
}

FeatureScale FeatureScale::of_circle(double low, double high, std::vector<double> values) {
  FeatureScale out = of_circle(low, high);
  for (double& value : values) value = out.wrapped(value);
  FeatureScale as_others(std::move(values));
  as_others.from_ = low;
  as_others.period_ = high - low;
  if (as_others.kind_ != Kind::continuous) return as_others;
  out.atoms_ = std::move(as_others.atoms_);
  return out;
}

double FeatureScale::wrapped(double value) const {
  if (!(period_ > 0.0)) return value;
  const double turns = std::floor((value - from_) / period_);
  return turns == 0.0 ? value : value - turns * period_;
}

double FeatureScale::score(double value) const {
  return calibration::evaluate_monotone_cubic(knots_, z_, slopes_, *lookup_,
                                              (value - x_.front()) * unit_);
}

float FeatureScale::operator()(double value) const {
  if (kind_ == Kind::constant) return 0.0f;
  value = wrapped(value);
  // Uniform in the range, with spread 1.
  if (bounded()) return static_cast<float>(((value - low_) * slope_ - 0.5) * per_place);
  return std::clamp(static_cast<float>(score(value)), -farthest, farthest);
}

Place FeatureScale::place(double value) const {
  Place out;
  if (kind_ == Kind::constant) return out;
  value = wrapped(value);
  out.at = bounded() ? static_cast<float>((value - low_) * slope_) : (*this)(value);
  if (kind_ == Kind::steps) {
    out.low = std::clamp(static_cast<float>(score(value - 0.5 * step_)), -farthest, farthest);
    out.high = std::clamp(static_cast<float>(score(value + 0.5 * step_)), -farthest, farthest);
    // Far outside of what was simulated the clamp leaves no width.
    if (!(out.high > out.low)) {
      out.low = out.at - 1e-3f;
      out.high = out.at + 1e-3f;
    }
  }
  if (atoms_.empty()) return out;
  const auto above = std::lower_bound(atoms_.begin(), atoms_.end(), value);
  if (above != atoms_.end() && *above == value)
    out.atom = static_cast<std::int32_t>(above - atoms_.begin());
  else if (kind_ == Kind::categories) {
    // A value that no simulated event has counts as the nearest one.
    auto nearest = above == atoms_.end() ? above - 1 : above;
    if (nearest != atoms_.begin() && value - *(nearest - 1) < *nearest - value) --nearest;
    out.atom = static_cast<std::int32_t>(nearest - atoms_.begin());
  }
  return out;
}

void FeatureScale::save(Archive& archive) const {
  archive.set("kind", static_cast<std::size_t>(kind_));
  archive.set("low", low_);
  archive.set("slope", slope_);
  archive.set("step", step_);
  archive.set("atoms", atoms_);
  archive.set("x", x_);
  archive.set("z", z_);
  if (!(period_ > 0.0)) return;
  archive.set("from", from_);
  archive.set("period", period_);
}

FeatureScale FeatureScale::load(const Archive& archive) {
  FeatureScale out;
  const auto kind = archive.integer("kind");
  if (kind < 0 || kind > static_cast<std::int64_t>(Kind::categories))
    throw FileError("the scale of a feature is of a kind that does not exist");
  out.kind_ = static_cast<Kind>(kind);
  out.low_ = archive.number("low");
  out.slope_ = archive.number("slope");
  out.step_ = archive.number("step");
  out.atoms_ = archive.numbers("atoms");
  out.x_ = archive.numbers("x");
  out.z_ = archive.numbers("z");
  if (archive.has("period")) {
    out.from_ = archive.number("from");
    out.period_ = archive.number("period");
    if (!std::isfinite(out.from_) || !std::isfinite(out.period_) || !(out.period_ > 0.0) ||
        (out.bounded() && out.low_ != out.from_))
      throw FileError("the scale of a feature has a period that is not allowed");
  }
  const bool mapped = out.kind_ != Kind::constant && !out.bounded();
  const auto ascend = [](const std::vector<double>& of) {
    return std::all_of(of.begin(), of.end(), [](double value) { return std::isfinite(value); }) &&
           std::is_sorted(of.begin(), of.end(), std::less_equal<>());
  };
  if (out.x_.size() != out.z_.size() || (mapped && out.x_.size() < 2) || !ascend(out.x_) ||
      !ascend(out.z_) || !ascend(out.atoms_) || out.atoms_.size() > 1000 ||
      (out.kind_ == Kind::categories && out.atoms_.empty()) ||
      (!mapped && !out.round() && !out.atoms_.empty()))
    throw FileError("the scale of a feature has parts that do not belong together");
  if (mapped) out.prepare();
  return out;
}

}  // namespace neyman::across
