#include "neyman/simulators/mixture.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <utility>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "simulators/infinity.hpp"
#include "simulators/invert_cdf.hpp"
#include "simulators/reading.hpp"
#include "simulators/shapes.hpp"

namespace neyman {

namespace {

std::vector<std::string> default_names(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back(fmt::format("c{}", i));
  return names;
}

/// θ where the weights must be allowed for a study to make sense: where they depend on one
/// parameter alone, the trial points and the ends of its range. (With several, the allowed region
/// is rarely a box, and a fit counts what lies outside as impossible: the truth alone.)
std::vector<std::vector<double>> points_to_check(const ParameterSpace& parameters,
                                                 const std::vector<Expression>& weights) {
  auto points = detail::trial_points(parameters);
  std::set<std::size_t> used;
  for (const auto& weight : weights) used.insert(weight.uses().begin(), weight.uses().end());
  if (used.size() > 1) {
    const bool known = std::all_of(used.begin(), used.end(),
                                   [&](std::size_t i) { return parameters[i].truth.has_value(); });
    points.erase(points.begin(), known ? points.end() - 1 : points.end());
  }
  if (used.size() == 1) {
    const std::size_t i = *used.begin();
    for (const double end : {parameters[i].low, parameters[i].high}) {
      points.push_back(points.front());
      points.back()[i] = end;
    }
  }
  return points;
}

/// The ends of the ranges of the parameters that a yield depends on and the middles between them,
/// at most 3^8 points: where it must not be negative.
std::vector<std::vector<double>> yield_points(const ParameterSpace& parameters,
                                              const Expression& yield) {
  auto points = detail::trial_points(parameters);
  std::vector<std::vector<double>> grid = {points.back()};
  constexpr std::size_t most = 8;
  for (std::size_t u = 0; u < std::min(most, yield.uses().size()); ++u) {
    const std::size_t p = yield.uses()[u];
    const double low = parameters[p].low, high = parameters[p].high;
    std::vector<std::vector<double>> next;
    for (const auto& point : grid)
      for (const double value : {low, 0.5 * (low + high), high}) {
        next.push_back(point);
        next.back()[p] = value;
      }
    grid = std::move(next);
  }
  points.insert(points.end(), grid.begin(), grid.end());
  return points;
}

/// Notes the first yield that is negative, or not defined, somewhere in the ranges.
void check_yields(Settings& settings, const ParameterSpace& parameters,
                  const std::vector<Expression>& yields) {
  for (std::size_t c = 0; c < yields.size(); ++c) {
    const auto key = fmt::format("yields[{}]", c);
    for (const auto& point : yield_points(parameters, yields[c])) {
      try {
        const double value = yields[c](point);
        if (value >= 0.0) continue;
        settings.problem(
            key, yields[c].constant()
                     ? fmt::format("is {}, but must not be negative", value)
                     : fmt::format("is \"{}\", which is {} at {}, but must not be negative "
                                   "anywhere in the ranges",
                                   yields[c].text(), value,
                                   detail::describe_point(parameters, point, yields[c].uses())));
      } catch (const ArgumentError& error) {
        settings.problem(key, "does not hold: " + error.reason());
      }
      break;
    }
  }
}

/// νᵢ / Σ ν.
std::vector<Expression> shares_of(const std::vector<Expression>& yields,
                                  const ParameterSpace& parameters) {
  const auto written = [](const Expression& yield) {
    return yield.constant() ? fmt::format("({:.17g})", yield({}))
                            : fmt::format("({})", yield.text());
  };
  std::string sum;
  for (const auto& yield : yields) {
    if (!sum.empty()) sum += '+';
    sum += written(yield);
  }
  std::vector<Expression> out;
  for (const auto& yield : yields)
    out.emplace_back(fmt::format("{}/({})", written(yield), sum), parameters);
  return out;
}

}  // namespace

std::shared_ptr<const Mixture> Mixture::of_yields(std::vector<DistributionPtr> components,
                                                  std::vector<Expression> yields,
                                                  const ParameterSpace& parameters,
                                                  std::vector<std::string> names) {
  check_same_size("mixture", "yields", yields.size(), components.size(), "one for each component");
  auto made = std::make_shared<Mixture>(std::move(components), shares_of(yields, parameters),
                                        std::move(names));
  made->yields_ = std::move(yields);
  return made;
}

namespace {

/// What is wrong where a component that names its features has others than one before, or in
/// another order; empty: nothing.
std::string other_features(const std::vector<DistributionPtr>& components) {
  std::vector<std::string> first;
  for (const auto& component : components) {
    const auto own = component == nullptr ? first : component->feature_names();
    if (first.empty()) first = own;
    if (!own.empty() && own != first)
      return fmt::format(
          "has the features {}, but must have {} in this order, as those before; columns (or "
          "names, "
          "for files without) says so",
          fmt::join(own, ", "), fmt::join(first, ", "));
  }
  return {};
}

}  // namespace

Mixture::Mixture(std::vector<DistributionPtr> components, std::vector<Expression> weights,
                 std::vector<std::string> names)
    : components_(std::move(components)),
      weights_(std::move(weights), components_.size()),
      names_(std::move(names)) {
  for (const auto& component : components_) {
    if (component == nullptr) fail_argument("mixture", "a component", "null", "a distribution");
    check_same_size("mixture", "a component", component->dimension(), dimension(),
                    "the dimension of the first");
  }
  if (const auto other = other_features(components_); !other.empty())
    throw ArgumentError("mixture: a component " + other);
  if (names_.empty()) names_ = default_names(components_.size());
  check_same_size("mixture", "names", names_.size(), components_.size(), "one for each component");
  if (std::set<std::string>(names_.begin(), names_.end()).size() != names_.size())
    throw ArgumentError("mixture: names has one twice, but must differ");
  if (weights_.uses().empty()) weights_({});
}

std::vector<std::string> Mixture::feature_names() const {
  for (const auto& component : components_)
    if (auto own = component->feature_names(); !own.empty()) return own;
  return {};
}

std::optional<bool> Mixture::depends_on(std::size_t parameter) const {
  const auto used = weights_.uses();
  if (std::find(used.begin(), used.end(), parameter) != used.end()) return true;
  bool known = true;
  for (const auto& component : components_) {
    const auto own = component->depends_on(parameter);
    if (own.value_or(false)) return true;
    known &= own.has_value();
  }
  return known ? std::optional(false) : std::nullopt;
}

DistributionPtr Mixture::make(Settings settings, const ParameterSpace& parameters,
                              const std::string& folder) {
  std::vector<DistributionPtr> components;
  std::vector<std::string> names;
  const std::size_t before = settings.problems().size();
  auto tables = settings.tables(
      {"components", "distributions, all with the same number of features", Key::required});
  for (auto& table : tables) {
    const auto name = table.text({"name", "of the component; by default c0, c1, …"},
                                 fmt::format("c{}", names.size()));
    if (std::find(names.begin(), names.end(), name) != names.end())
      table.problem("name", fmt::format("is \"{}\", which is another component's, but must "
                                        "differ",
                                        name));
    names.push_back(name);
    components.push_back(make_distribution(table, parameters, folder));
    if (components.back() && components[0] &&
        components.back()->dimension() != components[0]->dimension())
      table.problem("", fmt::format("makes {} features, but must make {}, as components[0] does",
                                    components.back()->dimension(), components[0]->dimension()));
    else if (components.back())
      if (const auto other = other_features(components); !other.empty()) table.problem("", other);
  }
  auto weights = detail::read_expressions(
      settings,
      {"weights", "share of each component; one fewer than components: the last is what is left"},
      parameters);
  const bool has_yields = settings.has("yields");
  auto yields = detail::read_expressions(
      settings,
      {"yields",
       "expected events of each component, in the place of weights: the study is a measurement"},
      parameters);
  if (has_yields && settings.has("weights") && !settings.describing())
    settings.problem("yields", "stands beside weights, but only one of them can be given");
  if (tables.empty() && settings.problems().size() == before)
    settings.problem("components", "is missing or empty, but must be a list of tables");
  if (settings.problems().size() > before) return nullptr;
  if (has_yields) {
    if (yields.size() != components.size())
      settings.problem("yields", fmt::format("has {} values, but must have {}, one for each "
                                             "component",
                                             yields.size(), components.size()));
    else
      check_yields(settings, parameters, yields);
    if (settings.problems().size() > before) return nullptr;
    return of_yields(std::move(components), std::move(yields), parameters, std::move(names));
  }
  if (weights.size() != components.size() && weights.size() + 1 != components.size()) {
    const auto found = settings.has("weights") ? fmt::format("has {} values", weights.size())
                                               : std::string("is missing");
    settings.problem("weights", fmt::format("{}, but must have {}, one for each component; the "
                                            "last may be left out",
                                            found, components.size()));
    return nullptr;
  }
  const MixtureWeights allowed(weights, components.size());
  for (const auto& point : points_to_check(parameters, weights)) {
    try {
      allowed(point);
    } catch (const ArgumentError& error) {
      const auto used = allowed.uses();
      const auto at = used.empty() ? "" : " at " + detail::describe_point(parameters, point, used);
      settings.problem("weights", fmt::format("are not allowed{}: {}", at, error.reason()));
      return nullptr;
    }
  }
  return std::make_shared<Mixture>(std::move(components), std::move(weights), std::move(names));
}

namespace {

/// Σ w up to each component; those after the last with a weight, which takes what rounding leaves
/// of the sum, are never reached.
void accumulate(std::span<double> weights) {
  std::size_t last = 0;
  double sum = 0.0;
  for (std::size_t k = 0; k < weights.size(); ++k) {
    if (weights[k] > 0.0) last = k;
    weights[k] = sum += weights[k];
  }
  std::fill(weights.begin() + static_cast<std::ptrdiff_t>(last), weights.end(), infinity);
}

/// The component of each row, and how many rows each component has.
struct Choice {
  std::vector<std::uint32_t> component;
  std::vector<std::size_t> sizes;
};

/// `threshold(i, c)` is Σ w up to component c at row i. What a row chooses cannot be predicted, so
/// nothing branches on it.
template <class Threshold>
Choice choose(std::size_t rows, std::size_t components, RandomStream& random,
              const Threshold& threshold) {
  std::vector<double> uniform(rows);
  random.fill_uniform(uniform);
  Choice out{std::vector<std::uint32_t>(rows), std::vector<std::size_t>(components)};
  std::size_t left = rows;
  for (std::size_t c = 0; c + 1 < components; ++c) {
    std::size_t beyond = 0;
    for (std::size_t i = 0; i < rows; ++i) {
      const std::uint32_t one = uniform[i] >= threshold(i, c) ? 1 : 0;
      out.component[i] += one;
      beyond += one;
    }
    out.sizes[c] = left - beyond;
    left = beyond;
  }
  out.sizes.back() = left;
  return out;
}

}  // namespace

void Mixture::sample(std::span<const double> point, RandomStream& random, Matrix& out) const {
  detail::check_shape(*this, out);
  auto cumulative = weights(point);
  accumulate(cumulative);
  const auto choice = choose(out.rows(), components_.size(), random,
                             [&](std::size_t, std::size_t c) { return cumulative[c]; });
  draw(choice.component, choice.sizes, out,
       [&](std::size_t k, Matrix& drawn) { components_[k]->sample(point, random, drawn); });
}

void Mixture::sample_each(MatrixView points, RandomStream& random, Matrix& out) const {
  detail::check_shape(*this, points, out);
  auto cumulative = weights_.each(points);
  for (std::size_t i = 0; i < cumulative.rows(); ++i) accumulate(cumulative.row(i));
  const auto choice = choose(out.rows(), components_.size(), random,
                             [&](std::size_t i, std::size_t c) { return cumulative(i, c); });
  std::vector<Matrix> own;
  for (const std::size_t size : choice.sizes) own.emplace_back(size, points.cols());
  std::vector<double*> next;
  for (Matrix& its_points : own) next.push_back(its_points.data());
  for (std::size_t i = 0; i < out.rows(); ++i) {
    double*& to = next[choice.component[i]];
    to = std::copy_n(points.row(i).begin(), points.cols(), to);
  }
  draw(choice.component, choice.sizes, out,
       [&](std::size_t k, Matrix& drawn) { components_[k]->sample_each(own[k], random, drawn); });
}

/// Each component draws all its rows at once, and each row takes the next of its component.
void Mixture::draw(std::span<const std::uint32_t> choice, std::span<const std::size_t> sizes,
                   Matrix& out, const DrawComponent& draw_component) const {
  const std::size_t d = dimension();
  std::vector<Matrix> drawn;
  std::vector<const double*> next;
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    drawn.emplace_back(sizes[k], d);
    if (sizes[k] > 0) draw_component(k, drawn.back());
    next.push_back(drawn.back().data());
  }
  double* to = out.data();
  for (const std::uint32_t k : choice) {
    for (std::size_t j = 0; j < d; ++j) *to++ = next[k][j];
    next[k] += d;
  }
}

bool Mixture::has_density() const {
  return std::all_of(components_.begin(), components_.end(),
                     [](const auto& c) { return c->has_density(); });
}

void Mixture::log_density(std::span<const double> point, MatrixView x,
                          std::span<double> out) const {
  detail::check_shape(*this, x, out);
  const auto weight = weights(point);
  std::vector<std::vector<double>> terms;
  for (std::size_t k = 0; k < weight.size(); ++k) {
    if (weight[k] == 0.0) continue;
    terms.emplace_back(x.rows());
    components_[k]->log_density(point, x, terms.back());
    const double log_weight = std::log(weight[k]);
    for (double& term : terms.back()) term += log_weight;
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    double largest = -infinity;
    for (const auto& term : terms) largest = std::max(largest, term[i]);
    double sum = 0.0;
    if (largest > -infinity)
      for (const auto& term : terms) sum += std::exp(term[i] - largest);
    out[i] = largest > -infinity ? largest + std::log(sum) : -infinity;
  }
}

bool Mixture::has_cdf() const {
  return std::all_of(components_.begin(), components_.end(),
                     [](const auto& c) { return c->has_cdf(); });
}

double Mixture::cdf(std::span<const double> point, double x) const {
  const auto weight = weights(point);
  double sum = 0.0;
  for (std::size_t k = 0; k < weight.size(); ++k)
    if (weight[k] > 0.0) sum += weight[k] * components_[k]->cdf(point, x);
  return std::min(sum, 1.0);
}

double Mixture::quantile(std::span<const double> point, double probability) const {
  detail::check_probability(*this, probability);
  const auto weight = weights(point);
  // At the smallest of the components' quantiles no cdf exceeds the probability, at the largest
  // none is below it.
  double low = infinity, high = -infinity;
  for (std::size_t k = 0; k < weight.size(); ++k) {
    if (weight[k] == 0.0) continue;
    const double quantile = components_[k]->quantile(point, probability);
    low = std::min(low, quantile);
    high = std::max(high, quantile);
  }
  if (probability == 0.0) return low;
  if (probability == 1.0) return high;
  return detail::invert_cdf([&](double x) { return cdf(point, x); }, low, high, probability);
}

}  // namespace neyman
