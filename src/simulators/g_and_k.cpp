#include "neyman/simulators/g_and_k.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/math/special_functions/erf.hpp>
#include <boost/math/tools/roots.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <tuple>
#include <utility>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "simulators/infinity.hpp"
#include "simulators/reading.hpp"
#include "simulators/shapes.hpp"

namespace neyman {

namespace {

constexpr double always_rising_c = 0.83;  // with k >= 0 (Rayner and MacGillivray 2002)

/// log(1 + z²) without overflow.
double log_one_plus_square(double z) {
  return std::abs(z) < 1e8 ? std::log1p(z * z) : 2.0 * std::log(std::abs(z));
}

/// The distribution at one θ.
struct Shape {
  double a, b, g, k, c;

  double skew(double z) const { return g == 0.0 ? 1.0 : 1.0 + c * std::tanh(0.5 * g * z); }

  double quantile(double z) const {
    if (z == 0.0) return a;
    return a + b * skew(z) * std::exp(k * log_one_plus_square(z)) * z;
  }

  /// Q'(z) / (B (1 + z²)^k).
  double slope(double z) const {
    const double w = g == 0.0 ? 0.0 : 0.5 * g * z;
    const double bend = std::abs(w) < 350.0 ? c * w / (std::cosh(w) * std::cosh(w)) : 0.0;
    return skew(z) * (1.0 + 2.0 * k / (1.0 + 1.0 / (z * z))) + bend;
  }

  double log_density(double x) const {
    const double z = inverse(x);
    if (std::isinf(z)) return -infinity;
    const double rise = slope(z);
    return -0.5 * z * z - 0.5 * std::log(2.0 * std::numbers::pi) - std::log(b) -
           k * log_one_plus_square(z) - std::log(rise);
  }

  /// The z with Q(z) = x. In u = log |z| the equation log q(z) = log |t|, t = (x − A) / B, is
  /// close to a straight line both near 0 and in the tails, so Newton's method is at home
  /// everywhere and a bracket is known.
  double inverse(double x) const {
    const double t = (x - a) / b;
    if (t == 0.0) return 0.0;
    if (t < 0.0) return -Shape{a, b, -g, k, c}.inverse_of_positive(-t);
    return inverse_of_positive(t);
  }

  double inverse_of_positive(double t) const {
    if (std::isinf(t)) return infinity;
    const double log_t = std::log(t);
    const auto tail = [&](double l) { return l < 0.0 ? l : l / (1.0 + 2.0 * k); };
    const double bend = k * std::numbers::ln2;
    const double low = k >= 0.0 ? tail(log_t - std::log1p(c) - bend) : log_t - std::log1p(c);
    const double high = k >= 0.0 ? log_t - std::log1p(-c) : tail(log_t - std::log1p(-c) - bend);
    const auto equation = [&](double u) {
      const double z = std::exp(u), s = skew(z);
      const double grow = u < 18.0 ? std::log1p(z * z) : 2.0 * u;
      return std::make_tuple(std::log(s) + k * grow + u - log_t, slope(z) / s);
    };
    std::uintmax_t steps = 200;
    const double u = boost::math::tools::newton_raphson_iterate(
        equation, 0.5 * (low + high), std::nextafter(low, -infinity),
        std::nextafter(high, infinity), std::numeric_limits<double>::digits - 2, steps);
    return std::exp(u);
  }

  /// Throws where Q does not rise everywhere.
  void check() const {
    check_positive("g-and-k", "B", b);
    if (!(k > -0.5)) fail_argument("g-and-k", "k", fmt::format("{}", k), "above -0.5");
    if (!(c >= 0.0 && c < 1.0))
      fail_argument("g-and-k", "c", fmt::format("{}", c), "at least 0 and below 1");
    if (k >= 0.0 && c <= always_rising_c) return;
    const double scale = g == 0.0 ? 1.0 : std::min(1.0, 1.0 / std::abs(g));
    const double top = g == 0.0 ? 1.0 : std::max(1.0, 1.0 / std::abs(g));
    for (double z = 1e-2 * scale; z < 1e2 * top; z *= 1.05)
      if (!(slope(z) > 0.0 && slope(-z) > 0.0))
        fail_argument("g-and-k", "(g, k, c)", fmt::format("({}, {}, {})", g, k, c),
                      "such that the quantile rises");
  }
};

/// log p of many x of one shape. Nodes between which z(x) is interpolated give a z so close to the
/// right one that a step of Newton's method, and log p to first order in it, are exact to double
/// precision; where they are not, and in the tails, each x is solved on its own.
class ManyDensities {
 public:
  explicit ManyDensities(const Shape& shape)
      : shape_(shape), constant_(-0.5 * std::log(2.0 * std::numbers::pi) - std::log(shape.b)) {
    for (std::size_t j = 0; j < nodes; ++j) {
      z_[j] = most * (2.0 * static_cast<double>(j) / (nodes - 1) - 1.0);
      const Local here = at(z_[j]);
      x_[j] = here.x;
      rate_[j] = 1.0 / here.x_slope;
    }
  }

  double operator()(double x) const {
    if (!(x > x_.front() && x < x_.back())) return shape_.log_density(x);
    double z = start(x);
    for (int step = 0; step < 3; ++step) {
      const Local here = at(z);
      const double move = (here.x - x) / here.x_slope;
      // What is left is of the order of the square.
      if (std::abs(move) < 3e-8) return here.log_density - move * here.log_density_slope;
      z -= move;
    }
    return shape_.log_density(x);
  }

 private:
  static constexpr std::size_t nodes = 513;
  static constexpr double most = 6.0;  // |z| at the last nodes

  /// x and log p at a z, with their derivatives by z.
  struct Local {
    double x, x_slope, log_density, log_density_slope;
  };

  /// As Shape does it, with few transcendental functions: |z| is at most `most`.
  Local at(double z) const {
    const auto& [a, b, g, k, c] = shape_;
    const double square = 1.0 + z * z, log_square = std::log(square);
    const double power = std::exp(k * log_square);
    const double tanh = 1.0 - 2.0 / (std::exp(g * z) + 1.0);
    const double skew = 1.0 + c * tanh, skew_slope = 0.5 * c * g * (1.0 - tanh * tanh);
    const double part = 1.0 + 2.0 * k * z * z / square;
    const double rise = skew * part + skew_slope * z;  // Q'(z) / (B (1 + z²)^k)
    const double rise_slope =
        skew_slope * (part + 1.0 - g * z * tanh) + skew * 4.0 * k * z / (square * square);
    return {a + b * skew * power * z, b * power * rise,
            constant_ - 0.5 * z * z - k * log_square - std::log(rise),
            -z - 2.0 * k * z / square - rise_slope / rise};
  }

  /// Cubic Hermite interpolation.
  double start(double x) const {
    const auto above = std::upper_bound(x_.begin(), x_.end(), x) - x_.begin();
    const auto j = static_cast<std::size_t>(above - 1);
    const double width = x_[j + 1] - x_[j], t = (x - x_[j]) / width, u = 1.0 - t;
    return u * u * ((1.0 + 2.0 * t) * z_[j] + t * width * rate_[j]) +
           t * t * ((3.0 - 2.0 * t) * z_[j + 1] - u * width * rate_[j + 1]);
  }

  const Shape& shape_;
  double constant_;
  std::array<double, nodes> z_{}, x_{}, rate_{};
};

Shape shape_at(std::span<const double> point, const Expression& a, const Expression& b,
               const Expression& g, const Expression& k, const Expression& c) {
  const Shape shape{a(point), b(point), g(point), k(point), c(point)};
  shape.check();
  return shape;
}

}  // namespace

GAndK::GAndK(Expression a, Expression b, Expression g, Expression k, Expression c)
    : a_(std::move(a)), b_(std::move(b)), g_(std::move(g)), k_(std::move(k)), c_(std::move(c)) {
  const auto number = [](const Expression& e, double otherwise) {
    return e.constant() ? e({}) : otherwise;
  };
  Shape{0.0, number(b_, 1.0), g_.constant() && k_.constant() ? g_({}) : 0.0, number(k_, 0.0),
        number(c_, 0.0)}
      .check();
}

DistributionPtr GAndK::make(Settings settings, const ParameterSpace& parameters,
                            const std::string&) {
  const std::size_t before = settings.problems().size();
  auto a = detail::read_expression(settings, {"A", "location"}, parameters);
  auto b = detail::read_expression(settings, {"B", "scale"}, parameters, Limits::positive());
  auto g = detail::read_expression(settings, {"g", "skewness"}, parameters);
  auto k = detail::read_expression(settings, {"k", "weight of the tails"}, parameters,
                                   {-0.5, infinity, true, true});
  auto c = detail::read_expression(settings, {"c", "overall asymmetry"}, parameters,
                                   {0.0, 1.0, false, true}, 0.8);
  if (settings.problems().size() > before) return nullptr;
  for (const auto& point : detail::trial_points(parameters)) {
    try {
      shape_at(point, a, b, g, k, c);
    } catch (const ArgumentError& error) {
      settings.problem("g", fmt::format("does not hold: {}", error.reason()));
      return nullptr;
    }
  }
  return std::make_shared<GAndK>(std::move(a), std::move(b), std::move(g), std::move(k),
                                 std::move(c));
}

void GAndK::sample(std::span<const double> point, RandomStream& random, Matrix& out) const {
  detail::check_shape(*this, out);
  const auto shape = shape_at(point, a_, b_, g_, k_, c_);
  random.fill_normal(out.values());
  for (double& value : out.values()) value = shape.quantile(value);
}

void GAndK::sample_each(MatrixView points, RandomStream& random, Matrix& out) const {
  detail::check_shape(*this, points, out);
  const std::size_t rows = out.rows();
  std::vector<double> a(rows), b(rows), g(rows), k(rows), c(rows);
  a_.each(points, a);
  b_.each(points, b);
  g_.each(points, g);
  k_.each(points, k);
  c_.each(points, c);
  random.fill_normal(out.values());
  for (std::size_t i = 0; i < rows; ++i) {
    const Shape shape{a[i], b[i], g[i], k[i], c[i]};
    shape.check();
    out(i, 0) = shape.quantile(out(i, 0));
  }
}

void GAndK::log_density(std::span<const double> point, MatrixView x, std::span<double> out) const {
  detail::check_shape(*this, x, out);
  const auto shape = shape_at(point, a_, b_, g_, k_, c_);
  constexpr std::size_t many = 1000;  // for which nodes are worth it
  if (out.size() < many) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = shape.log_density(x(i, 0));
    return;
  }
  const ManyDensities densities(shape);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = densities(x(i, 0));
}

double GAndK::cdf(std::span<const double> point, double x) const {
  const auto shape = shape_at(point, a_, b_, g_, k_, c_);
  return 0.5 * std::erfc(-shape.inverse(x) / std::numbers::sqrt2);
}

double GAndK::quantile(std::span<const double> point, double probability) const {
  detail::check_probability(*this, probability);
  const auto shape = shape_at(point, a_, b_, g_, k_, c_);
  if (probability == 0.0) return -infinity;
  if (probability == 1.0) return infinity;
  return shape.quantile(-std::numbers::sqrt2 * boost::math::erfc_inv(2.0 * probability));
}

}  // namespace neyman
