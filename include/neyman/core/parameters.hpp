#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace neyman {

/// A named parameter of a study with the range in which it may lie.
struct Parameter {
  std::string name;
  double low = 0.0;
  double high = 1.0;
  std::optional<double> truth;  ///< known where the data are simulated
  bool nuisance = false;        ///< not of interest: profiled, and reported after the others
  bool periodic = false;        ///< a phase or an angle: the range is its period, its ends are one

  double range() const { return high - low; }
  /// A value of a periodic parameter goes into its period by whole turns; others stay.
  double wrapped(double value) const;
  /// a − b, the shorter way round where the parameter is periodic.
  double difference(double a, double b) const;
  bool operator==(const Parameter&) const = default;
};

/// The parameters of a study, in order. A point θ is a vector with one value for each.
class ParameterSpace {
 public:
  ParameterSpace() = default;
  explicit ParameterSpace(std::vector<Parameter> parameters);

  std::size_t size() const { return parameters_.size(); }
  bool empty() const { return parameters_.empty(); }
  const Parameter& operator[](std::size_t i) const { return parameters_[i]; }
  auto begin() const { return parameters_.begin(); }
  auto end() const { return parameters_.end(); }
  std::vector<std::string> names() const;
  /// The middle of every range.
  std::vector<double> middle() const;
  /// The indices of those that are not nuisance parameters.
  std::vector<std::size_t> of_interest() const;
  std::optional<std::size_t> find(std::string_view name) const;
  /// The index of a name; throws ArgumentError with the candidates.
  std::size_t index(std::string_view name) const;
  /// Whether any of them is periodic.
  bool periodic() const;
  /// A point with the values of periodic parameters in their periods.
  std::vector<double> wrapped(std::span<const double> point) const;
  /// Throws ArgumentError unless `point` has one finite value inside the range of each; a periodic
  /// one may have any.
  void check_inside(std::string_view function, std::span<const double> point) const;
  bool operator==(const ParameterSpace&) const = default;

 private:
  std::vector<Parameter> parameters_;
};

}  // namespace neyman
