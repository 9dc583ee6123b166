#include "measurements/component_shape.hpp"

#include <algorithm>
#include <cmath>

#include "core/vector_math.hpp"

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
  const std::size_t functions = rows_.size();
  std::vector<double> coefficients(points.rows() * functions), out(points.rows());
  ComponentShape::Values at;
  for (std::size_t n = 0; n < points.rows(); ++n) {
    shape_.evaluate(points.row(n), EvaluationOrder::value, at);
    std::copy(at.values.begin(), at.values.end(),
              coefficients.begin() + static_cast<std::ptrdiff_t>(n * functions));
  }
  std::vector<double> room(unbinned::room_for(1, functions, 0, 0));
  unbinned::kernels().normalise_each({rows_.data(), functions, nullptr, 0, nullptr},
                                     coefficients.data(), points.rows(), weights_.data(),
                                     weights_.size(), vector_math::kernels().exponentiate,
                                     room.data(), out.data());
  for (double& value : out) value = std::log(value);
  return out;
}

const NormaliserTable* TableOnDemand::get() const {
  std::call_once(once_, [&] {
    table_ = NormaliserTable::make(
        axes_, [direct = direct_](const Matrix& points) { return direct->each(points); }, {});
  });
  return table_.get();
}

}  // namespace neyman::detail
