#include "neyman/measurements/shape.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "measurements/chebyshev.hpp"
#include "measurements/interpolation.hpp"
#include "neyman/core/check.hpp"
#include "neyman/core/polynomial_basis.hpp"
#include "neyman/ratios/ratio.hpp"
#include "neyman/ratios/separable_ratio.hpp"

namespace neyman {

namespace {

// Of α: the line outside of [−1, 1] may be followed as far as anyone will.
constexpr double variation_range = 100.0;
constexpr std::size_t most_nodes = 100000;

class VariationShape final : public Shape {
 public:
  explicit VariationShape(std::string parameter)
      : parameters_({{std::move(parameter), -variation_range, variation_range, {}, true}}),
        nominal_{0.0} {}

  const ParameterSpace& parameters() const override { return parameters_; }
  const std::vector<double>& nominal() const override { return nominal_; }
  std::size_t functions() const override { return 2; }
  void evaluate(std::span<const double> point, std::span<double> values, std::span<double> first,
                std::span<double> second) const override {
    const ShiftInterpolation at(point[0]);
    values[0] = -at.down.value, values[1] = at.up.value;
    if (!first.empty()) first[0] = -at.down.first, first[1] = at.up.first;
    if (!second.empty()) second[0] = -at.down.second, second[1] = at.up.second;
  }
  std::vector<double> breaks(std::size_t) const override { return {-1.0, 1.0}; }

 private:
  ParameterSpace parameters_;
  std::vector<double> nominal_;
};

class SeparableShape final : public Shape {
 public:
  SeparableShape(const SeparableRatio& ratio, std::vector<double> nominal)
      : parameters_(ratio.parameters()),
        nominal_(std::move(nominal)),
        basis_(ratio.basis()),
        offset_(basis_.size()) {
    parameters_.check_inside("separable_shape", nominal_);
    basis_.values(nominal_, offset_);
  }

  const ParameterSpace& parameters() const override { return parameters_; }
  const std::vector<double>& nominal() const override { return nominal_; }
  std::size_t functions() const override { return basis_.size(); }
  void evaluate(std::span<const double> point, std::span<double> values, std::span<double> first,
                std::span<double> second) const override {
    basis_.values(point, values, first, second);
    for (std::size_t k = 0; k < values.size(); ++k) values[k] -= offset_[k];
  }

 private:
  ParameterSpace parameters_;
  std::vector<double> nominal_;
  PolynomialBasis basis_;
  std::vector<double> offset_;
};

}  // namespace

std::vector<double> Shape::breaks(std::size_t) const { return {}; }

ShapePtr variation(std::string parameter) {
  return std::make_shared<VariationShape>(std::move(parameter));
}

ShapePtr separable_shape(const SeparableRatio& ratio, std::vector<double> nominal) {
  return std::make_shared<SeparableShape>(ratio, std::move(nominal));
}

LatticeShape::LatticeShape(ParameterSpace parameters, std::vector<double> nominal,
                           std::vector<std::size_t> degrees)
    : parameters_(std::move(parameters)),
      nominal_(std::move(nominal)),
      degrees_(std::move(degrees)) {
  constexpr const char* function = "LatticeShape";
  check_at_least(function, "parameters", parameters_.size(), 1);
  parameters_.check_inside(function, nominal_);
  check_same_size(function, "degrees", degrees_.size(), parameters_.size(),
                  "one for each parameter");
  std::size_t count = 1;
  for (const std::size_t degree : degrees_) {
    check_in_range(function, "degree", static_cast<double>(degree), 1.0, 64.0);
    count *= degree + 1;
    check_in_range(function, "the number of nodes", static_cast<double>(count), 1.0, most_nodes);
  }
  nodes_ = Matrix(count, parameters_.size());
  for (std::size_t p = 0, inner = count; p < parameters_.size(); ++p) {
    inner /= degrees_[p] + 1;
    const auto& [low, high] = std::pair(parameters_[p].low, parameters_[p].high);
    const auto at = detail::chebyshev_nodes(degrees_[p]);
    for (std::size_t k = 0; k < count; ++k)
      nodes_(k, p) = std::clamp(
          0.5 * (low + high) + 0.5 * (high - low) * at[k / inner % (degrees_[p] + 1)], low, high);
  }
  offset_.resize(count);
  set_products(nominal_, offset_, {}, {});
}

void LatticeShape::set_products(std::span<const double> point, std::span<double> values,
                                std::span<double> first, std::span<double> second) const {
  const std::size_t n = parameters_.size(), count = nodes_.rows();
  // Of each parameter: the Lagrange polynomials of its nodes with two derivatives.
  std::vector<std::array<std::vector<double>, 3>> factors(n);
  detail::ChebyshevValues chebyshev;
  for (std::size_t p = 0; p < n; ++p) {
    const double low = parameters_[p].low, high = parameters_[p].high;
    const double scale = 2.0 / (high - low);
    chebyshev.set((point[p] - low) * scale - 1.0, scale, degrees_[p]);
    const auto coefficients = detail::chebyshev_coefficients(degrees_[p]);
    const std::size_t size = degrees_[p] + 1;
    for (auto& row : factors[p]) row.assign(size, 0.0);
    for (std::size_t j = 0; j < size; ++j)
      for (std::size_t k = 0; k < size; ++k) {
        factors[p][0][k] += coefficients[j * size + k] * chebyshev.values[j];
        factors[p][1][k] += coefficients[j * size + k] * chebyshev.first[j];
        factors[p][2][k] += coefficients[j * size + k] * chebyshev.second[j];
      }
  }
  for (std::size_t k = 0; k < count; ++k) {
    // Orders of derivatives of each factor: none, one, or two of them raised.
    const auto product = [&](std::size_t a, std::size_t b) {
      double out = 1.0;
      for (std::size_t p = 0, inner = count; p < n; ++p) {
        inner /= degrees_[p] + 1;
        out *= factors[p][(a == p ? 1u : 0u) + (b == p ? 1u : 0u)][k / inner % (degrees_[p] + 1)];
      }
      return out;
    };
    values[k] = product(n, n);
    for (std::size_t p = 0; p < n; ++p) {
      if (!first.empty()) first[k * n + p] = product(p, n);
      for (std::size_t q = 0; q < n && !second.empty(); ++q)
        second[(k * n + p) * n + q] = product(p, q);
    }
  }
}

void LatticeShape::evaluate(std::span<const double> point, std::span<double> values,
                            std::span<double> first, std::span<double> second) const {
  set_products(point, values, first, second);
  for (std::size_t k = 0; k < values.size(); ++k) values[k] -= offset_[k];
}

Matrix LatticeShape::describe(const Ratio& ratio, MatrixView x) const {
  Matrix out(functions(), x.rows());
  for (std::size_t k = 0; k < functions(); ++k) {
    const auto logs = ratio.log_ratios(x, nodes_.row(k), nominal_);
    std::copy(logs.begin(), logs.end(), out.row(k).begin());
  }
  return out;
}

}  // namespace neyman
