#include "neyman/core/parameters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"

namespace neyman {

double Parameter::wrapped(double value) const {
  // The upper end stays, as that of a range would; it is the lower one all the same.
  if (!periodic || (value >= low && value <= high)) return value;
  const double inside = value - range() * std::floor((value - low) / range());
  return inside >= low && inside < high ? inside : low;  // rounding may lead to an end
}

double Parameter::difference(double a, double b) const {
  const double d = a - b;
  return periodic ? d - range() * std::round(d / range()) : d;
}

ParameterSpace::ParameterSpace(std::vector<Parameter> parameters)
    : parameters_(std::move(parameters)) {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const auto& p = parameters_[i];
    check_finite("ParameterSpace", p.name + ".low", p.low);
    check_finite("ParameterSpace", p.name + ".high", p.high);
    if (!(p.low < p.high))
      fail_argument("ParameterSpace", p.name + ".range", fmt::format("[{}, {}]", p.low, p.high),
                    "a lower and a higher value");
    for (std::size_t j = 0; j < i; ++j)
      if (parameters_[j].name == p.name)
        fail_argument("ParameterSpace", "name", "'" + p.name + "' twice", "different for each");
  }
}

std::vector<std::string> ParameterSpace::names() const {
  std::vector<std::string> out;
  for (const auto& p : parameters_) out.push_back(p.name);
  return out;
}

std::vector<double> ParameterSpace::middle() const {
  std::vector<double> point;
  for (const auto& parameter : parameters_) point.push_back(0.5 * (parameter.low + parameter.high));
  return point;
}

std::vector<std::size_t> ParameterSpace::of_interest() const {
  std::vector<std::size_t> indices;
  for (std::size_t p = 0; p < size(); ++p)
    if (!parameters_[p].nuisance) indices.push_back(p);
  return indices;
}

bool ParameterSpace::periodic() const {
  return std::any_of(begin(), end(), [](const Parameter& p) { return p.periodic; });
}

std::vector<double> ParameterSpace::wrapped(std::span<const double> point) const {
  std::vector<double> out(point.begin(), point.end());
  for (std::size_t i = 0; i < std::min(size(), out.size()); ++i)
    out[i] = parameters_[i].wrapped(out[i]);
  return out;
}

std::optional<std::size_t> ParameterSpace::find(std::string_view name) const {
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (parameters_[i].name == name) return i;
  return std::nullopt;
}

std::size_t ParameterSpace::index(std::string_view name) const {
  if (const auto found = find(name)) return *found;
  throw ArgumentError("ParameterSpace::index: " + unknown_name(name, "a parameter", names()));
}

void ParameterSpace::check_inside(std::string_view function, std::span<const double> point) const {
  check_same_size(function, "point", point.size(), size(), "one for each parameter");
  for (std::size_t i = 0; i < size(); ++i)
    if (const auto& p = parameters_[i]; p.periodic)
      check_finite(function, p.name, point[i]);
    else
      check_in_range(function, p.name, point[i], p.low, p.high);
}

}  // namespace neyman
