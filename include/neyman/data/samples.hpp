#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "neyman/core/matrix.hpp"

namespace neyman {

/// Events: features x with names and, where they are known, the parameters θ that each event
/// was simulated at, a weight and a group.
struct Samples {
  std::vector<std::string> feature_names;
  Matrix x;                                  ///< events × features
  std::vector<std::string> parameter_names;  ///< empty where θ is not known
  Matrix theta;                              ///< events × parameters, or empty
  std::vector<double> weights;               ///< one an event, or empty: all 1
  std::vector<std::int64_t> groups;          ///< one an event, or empty: each its own

  std::size_t size() const { return x.rows(); }
  std::size_t features() const { return x.cols(); }
  bool weighted() const { return !weights.empty(); }
  double weight(std::size_t i) const { return weights.empty() ? 1.0 : weights[i]; }
  double total_weight() const;
  /// (Σw)² / Σw²: how many unweighted events the weighted ones are worth.
  double effective_size() const;

  /// The events with these indices, in this order.
  Samples take(std::span<const std::size_t> indices) const;
  /// Adds events with the same columns below; throws ArgumentError where the columns differ.
  void append(const Samples& other);
  /// Throws ArgumentError where sizes disagree or a weight is not finite, and, with row and
  /// column, where a feature or parameter is NaN or infinite.
  void check(const char* function) const;

  bool operator==(const Samples&) const = default;
};

/// A feature that is an angle, by its name: its values repeat after a period, from `low` to `high`.
struct PeriodicFeature {
  std::string name;
  double low = 0.0, high = 1.0;

  bool operator==(const PeriodicFeature&) const = default;
};

/// Default names x0, x1, … (or x alone for one feature).
std::vector<std::string> default_feature_names(std::size_t count);

}  // namespace neyman
