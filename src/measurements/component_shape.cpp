#include "measurements/component_shape.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/vector_math.hpp"
#include "neyman/core/random.hpp"

namespace neyman::detail {

ComponentShape::ComponentShape(std::vector<ShapePtr> shapes,
                               std::vector<std::vector<std::size_t>> places, std::size_t moving)
    : shapes_(std::move(shapes)), places_(std::move(places)), moving_(moving) {
  for (const auto& shape : shapes_) functions_ += shape->functions();
}

void ComponentShape::evaluate(std::span<const double> point, EvaluationOrder order,
                              Values& out) const {
  out.values.resize(functions_);
  if (order >= EvaluationOrder::gradient) out.first.assign(moving_ * functions_, 0.0);
  if (order >= EvaluationOrder::hessian) out.second.assign(moving_ * moving_ * functions_, 0.0);
  auto &own = out.point, &first = out.own_first, &second = out.own_second;
  std::size_t begin = 0;
  for (std::size_t s = 0; s < shapes_.size(); ++s) {
    const auto& shape = *shapes_[s];
    const auto& places = places_[s];
    const std::size_t count = shape.functions(), n = places.size();
    own.clear();
    for (const std::size_t place : places) own.push_back(point[place]);
    first.resize(order >= EvaluationOrder::gradient ? count * n : 0);
    second.resize(order >= EvaluationOrder::hessian ? count * n * n : 0);
    shape.evaluate(own, std::span(out.values).subspan(begin, count), first, second);
    for (std::size_t k = 0; k < count && !first.empty(); ++k)
      for (std::size_t p = 0; p < n; ++p) {
        out.first[places[p] * functions_ + begin + k] = first[k * n + p];
        for (std::size_t q = 0; q < n && !second.empty(); ++q)
          out.second[(places[p] * moving_ + places[q]) * functions_ + begin + k] =
              second[(k * n + p) * n + q];
      }
    begin += count;
  }
}

std::vector<double> ComponentShape::breaks(std::size_t moving) const {
  std::vector<double> out;
  for (std::size_t s = 0; s < shapes_.size(); ++s)
    for (std::size_t p = 0; p < places_[s].size(); ++p)
      if (places_[s][p] == moving) {
        const auto more = shapes_[s]->breaks(p);
        out.insert(out.end(), more.begin(), more.end());
      }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

ComponentWeights::ComponentWeights(const UnbinnedEvents& events, std::size_t component) {
  double count = 0.0;
  for (std::size_t j = 0; j < events.size(); ++j) {
    const double weight = events.weights.empty() ? 1.0 : events.weights[j];
    weights.push_back(weight * events.ratios(component, j));
    sum += weights.back();
    count += weight;
  }
  mean_ratio = sum / count;
  for (double& weight : weights) weight /= sum;
}

DirectNormaliser::DirectNormaliser(ComponentShape shape, const Matrix& functions,
                                   std::size_t first_row, std::vector<double> weights)
    : shape_(std::move(shape)), weights_(std::move(weights)) {
  for (std::size_t k = 0; k < shape_.functions(); ++k)
    rows_.push_back(functions.row(first_row + k).data());
}

void DirectNormaliser::evaluate(const ComponentShape::Values& at, EvaluationOrder order,
                                LogNormaliser& out) const {
  const std::size_t functions = rows_.size(), moving = shape_.moving();
  const bool gradient = order >= EvaluationOrder::gradient,
             hessian = order >= EvaluationOrder::hessian;
  const unbinned::Shape shape{rows_.data(), functions, at.values.data(), moving, at.first.data()};
  std::vector<double> room(unbinned::room_for(1, functions, moving, moving));
  std::vector<double> moments(functions), own(moving * moving);
  double sum = 0.0;
  unbinned::kernels().normalise(
      shape, weights_.data(), weights_.size(), vector_math::kernels().exponentiate, room.data(),
      &sum, gradient ? moments.data() : nullptr, hessian ? own.data() : nullptr);
  out.value = std::log(sum);
  if (!gradient) return;
  const auto moved = [&](const double* coefficients) {
    double total = 0.0;
    for (std::size_t k = 0; k < functions; ++k) total += coefficients[k] * moments[k];
    return total / sum;
  };
  out.first.resize(moving);
  for (std::size_t p = 0; p < moving; ++p) out.first[p] = moved(at.first.data() + p * functions);
  if (!hessian) return;
  out.second.resize(moving * moving);
  for (std::size_t p = 0; p < moving; ++p)
    for (std::size_t q = 0; q < moving; ++q)
      out.second[p * moving + q] = moved(at.second.data() + (p * moving + q) * functions) +
                                   own[std::max(p, q) * moving + std::min(p, q)] / sum -
                                   out.first[p] * out.first[q];
}

std::vector<double> DirectNormaliser::each(const Matrix& points) const {
  Matrix coefficients(points.rows(), rows_.size());
  ComponentShape::Values at;
  for (std::size_t n = 0; n < points.rows(); ++n) {
    shape_.evaluate(points.row(n), EvaluationOrder::value, at);
    std::copy(at.values.begin(), at.values.end(), coefficients.row(n).begin());
  }
  return of_coefficients(coefficients);
}

std::vector<double> DirectNormaliser::of_coefficients(const Matrix& coefficients, bool some) const {
  const std::size_t functions = rows_.size();
  std::vector<double> out(coefficients.rows());
  std::vector<double> room(unbinned::room_for(1, functions, 0, 0));
  unbinned::kernels().normalise_each(
      {rows_.data(), functions, nullptr, 0, nullptr}, coefficients.data(), coefficients.rows(),
      weights_.data(), count(some), vector_math::kernels().exponentiate, room.data(), out.data());
  for (double& value : out) value = std::log(value);
  return out;
}

std::vector<double> DirectNormaliser::on_lattice(std::span<const double> centre,
                                                 const Matrix& steps, std::span<const double> nodes,
                                                 bool some) const {
  const std::size_t functions = rows_.size(), dimensions = steps.rows();
  std::size_t points = 1;
  for (std::size_t d = 0; d < dimensions; ++d) points *= nodes.size();
  std::vector<double> out(points),
      room(unbinned::room_for_lattice(functions, dimensions, nodes.size()));
  unbinned::kernels().normalise_lattice(
      {rows_.data(), functions, centre.data(), dimensions, steps.data()}, nodes.data(),
      nodes.size(), weights_.data(), count(some), vector_math::kernels().exponentiate, room.data(),
      out.data());
  for (double& value : out) value = std::log(value);
  return out;
}

bool DirectNormaliser::has_some() const {
  constexpr std::size_t many = 20000;
  const std::size_t n = count(true);
  // Not where they are of another kind than the component's.
  const double share =
      std::accumulate(weights_.begin(), weights_.begin() + static_cast<std::ptrdiff_t>(n), 0.0);
  return weights_.size() >= many &&
         share * static_cast<double>(weights_.size()) > 0.25 * static_cast<double>(n);
}

Matrix DirectNormaliser::covariance() const {
  const std::size_t n = rows_.size();
  std::vector<double> means(n, 0.0);
  for (std::size_t k = 0; k < n; ++k)
    for (std::size_t j = 0; j < weights_.size(); ++j) means[k] += weights_[j] * rows_[k][j];
  Matrix out(n, n);
  for (std::size_t k = 0; k < n; ++k)
    for (std::size_t l = 0; l <= k; ++l) {
      double sum = 0.0;
      for (std::size_t j = 0; j < weights_.size(); ++j)
        sum += weights_[j] * (rows_[k][j] - means[k]) * (rows_[l][j] - means[l]);
      out(k, l) = out(l, k) = sum;
    }
  return out;
}

std::unique_ptr<const CumulantTable> TableOnDemand::by_coefficients() const {
  const auto& shape = direct_->shape();
  const std::size_t n = shape.functions(), parameters = axes_.size();
  if (n > parameters || n > CumulantTable::most_dimensions) return nullptr;
  // In β = Sᵀ b, of the covariance S Sᵀ, the exponents have the variance |β|².
  const auto size = static_cast<Eigen::Index>(n);
  const auto covariance = direct_->covariance();
  const Eigen::LLT<Eigen::MatrixXd> cholesky(
      Eigen::Map<const Eigen::MatrixXd>(covariance.data(), size, size));
  if (cholesky.info() != Eigen::Success) return nullptr;
  const Eigen::MatrixXd root = cholesky.matrixL();
  Matrix coordinates(n, n);
  for (std::size_t i = 0; i < n; ++i) {
    const auto row = static_cast<Eigen::Index>(i);
    if (!(root(row, row) > 1e-6 * std::sqrt(covariance(i, i)))) return nullptr;
    for (std::size_t k = i; k < n; ++k) coordinates(i, k) = root(static_cast<Eigen::Index>(k), row);
  }
  // The box of β at the corners of the ranges and at random points of them, and a little around it.
  constexpr std::size_t samples = 1000, most_corners = 256;
  std::vector<double> low(n, 0.0), high(n, 0.0), point(parameters);
  ComponentShape::Values at;
  const auto extend = [&] {
    shape.evaluate(point, EvaluationOrder::value, at);
    for (std::size_t i = 0; i < n; ++i) {
      double beta = 0.0;
      for (std::size_t k = 0; k < n; ++k) beta += coordinates(i, k) * at.values[k];
      low[i] = std::min(low[i], beta);
      high[i] = std::max(high[i], beta);
    }
  };
  RandomStream random(0, "points of a table");
  for (std::size_t s = 0; s < samples; ++s) {
    for (std::size_t p = 0; p < parameters; ++p)
      point[p] = axes_[p].low + (axes_[p].high - axes_[p].low) * random.uniform();
    extend();
  }
  for (std::size_t c = 0; c < most_corners && (parameters >= 8 || c >> parameters == 0); ++c) {
    for (std::size_t p = 0; p < parameters; ++p)
      point[p] = ((c >> (p % 8)) & 1) == 0 ? axes_[p].low : axes_[p].high;
    extend();
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (!std::isfinite(low[i]) || !std::isfinite(high[i])) return nullptr;
    const double margin = 0.02 * (high[i] - low[i]) + 1e-6;
    low[i] -= margin;
    high[i] += margin;
  }
  CumulantTable::Config config;
  config.rough = direct_->has_some();
  return std::make_unique<const CumulantTable>(
      coordinates, std::move(low), std::move(high),
      [direct = direct_](std::span<const double> centre, const Matrix& steps,
                         std::span<const double> nodes,
                         bool rough) { return direct->on_lattice(centre, steps, nodes, rough); },
      [direct = direct_](const Matrix& points, bool rough) {
        return direct->of_coefficients(points, rough);
      },
      config);
}

const TableOnDemand* TableOnDemand::get() const {
  std::call_once(once_, [&] {
    cumulants_ = by_coefficients();
    if (cumulants_ == nullptr)
      table_ = NormaliserTable::make(
          axes_, [direct = direct_](const Matrix& points) { return direct->each(points); }, {});
  });
  return cumulants_ != nullptr || table_ != nullptr ? this : nullptr;
}

bool TableOnDemand::evaluate(std::span<const double> point, const ComponentShape::Values& at,
                             EvaluationOrder order, LogNormaliser& out) const {
  if (cumulants_ == nullptr) return table_->evaluate(point, out);
  CumulantTable::Jet jet;
  if (!cumulants_->evaluate(at.values, jet)) return false;
  const std::size_t n = at.values.size(), moving = axes_.size();
  out.value = jet.value;
  if (order == EvaluationOrder::value) return true;
  out.first.assign(moving, 0.0);
  for (std::size_t p = 0; p < moving; ++p)
    for (std::size_t k = 0; k < n; ++k) out.first[p] += jet.first[k] * at.first[p * n + k];
  if (order == EvaluationOrder::gradient) return true;
  out.second.assign(moving * moving, 0.0);
  for (std::size_t p = 0; p < moving; ++p)
    for (std::size_t q = 0; q < moving; ++q)
      for (std::size_t k = 0; k < n; ++k) {
        double slope = 0.0;
        for (std::size_t l = 0; l < n; ++l) slope += jet.second[k][l] * at.first[q * n + l];
        out.second[p * moving + q] +=
            at.first[p * n + k] * slope + jet.first[k] * at.second[(p * moving + q) * n + k];
      }
  return true;
}

}  // namespace neyman::detail
