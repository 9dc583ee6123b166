#include "measurements/held_out_evidence.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace neyman::detail {

namespace {

// Beyond, calibrations are not to be helped.
constexpr double most_strength = 4.0;

double sum(const std::vector<double>& values) {
  double out = 0.0;
  for (const double value : values) out += value;
  return out;
}

/// The logistic likelihood of one comparison, each side with weight one; the constant is free.
class Logistic {
 public:
  explicit Logistic(const Comparison& of) : of_(of) {}

  /// Calls back with side (1: numerator), row, weight, and the probability of the numerator.
  template <class Visit>
  void visit(double strength, Visit&& see) const {
    const auto over = [&](const Comparison::Side& side, double label) {
      const double scale = 1.0 / sum(side.weights);
      for (std::size_t i = 0; i < side.weights.size(); ++i) {
        if (side.weights[i] == 0.0) continue;
        const double at =
            constant_ + (side.offset.empty() ? 0.0 : side.offset[i]) + strength * side.direction[i];
        see(side, label, i, scale * side.weights[i], 1.0 / (1.0 + std::exp(-at)));
      }
    };
    over(of_.numerator, 1.0);
    over(of_.denominator, 0.0);
  }

  /// Moves the constant to the maximum.
  void settle(double strength) {
    constexpr int most_steps = 50;
    for (int step = 0; step < most_steps; ++step) {
      double slope = 0.0, curvature = 0.0;
      visit(strength, [&](const auto&, double label, std::size_t, double weight, double p) {
        slope += weight * (label - p);
        curvature += weight * p * (1.0 - p);
      });
      if (!(curvature > 0.0)) return;
      const double move = std::clamp(slope / curvature, -2.0, 2.0);
      constant_ += move;
      if (std::abs(move) < 1e-9) return;
    }
  }

  double log_likelihood(double strength) {
    settle(strength);
    double out = 0.0;
    visit(strength, [&](const auto&, double label, std::size_t, double weight, double p) {
      out += weight * std::log(std::max(label > 0.0 ? p : 1.0 - p, 1e-300));
    });
    return out;
  }

  double slope(double strength) {
    settle(strength);
    double out = 0.0;
    visit(strength, [&](const auto& side, double label, std::size_t i, double weight, double p) {
      out += weight * (label - p) * side.direction[i];
    });
    return out;
  }

  /// The direction where the constant is free: its mean at strength 0 is to be taken out.
  double mean_direction() {
    settle(0.0);
    double total = 0.0, all = 0.0;
    visit(0.0, [&](const auto& side, double, std::size_t i, double weight, double p) {
      all += weight * p * (1.0 - p);
      total += weight * p * (1.0 - p) * side.direction[i];
    });
    return all > 0.0 ? total / all : 0.0;
  }

 private:
  const Comparison& of_;
  double constant_ = 0.0;
};

}  // namespace

double significance(const std::vector<Comparison>& comparisons) {
  std::map<std::size_t, std::vector<double>> contributions;
  for (const auto& comparison : comparisons) {
    Logistic model(comparison);
    const double mean = model.mean_direction();
    model.visit(0.0, [&](const auto& side, double label, std::size_t i, double weight, double p) {
      auto& rows = contributions[side.rows];
      rows.resize(std::max(rows.size(), side.weights.size()), 0.0);
      rows[i] += weight * (label - p) * (side.direction[i] - mean);
    });
  }
  double slope = 0.0, squares = 0.0, largest = 0.0;
  for (const auto& comparison : comparisons)
    for (const auto* side : {&comparison.numerator, &comparison.denominator}) {
      const double scale = 1.0 / sum(side->weights);
      for (std::size_t i = 0; i < side->weights.size(); ++i)
        largest = std::max(largest, std::abs(scale * side->weights[i] * side->direction[i]));
    }
  for (const auto& [_, rows] : contributions)
    for (const double value : rows) {
      slope += value;
      squares += value * value;
    }
  // What cancels row by row leaves its rounding.
  if (!(std::sqrt(squares) > 1e-12 * largest)) return 0.0;
  return slope / std::sqrt(2.0 * squares);
}

double best_strength(const std::vector<Comparison>& comparisons) {
  std::vector<Logistic> models;
  for (const auto& comparison : comparisons) models.emplace_back(comparison);
  const auto slope = [&](double strength) {
    double out = 0.0;
    for (auto& model : models) out += model.slope(strength);
    return out;
  };
  double low = 0.0, high = 1.0;
  while (slope(high) > 0.0) {
    if (high >= most_strength) return most_strength;
    low = high;
    high *= 2.0;
  }
  if (low == 0.0 && !(slope(low) > 0.0)) return 0.0;
  constexpr int halvings = 14;
  for (int step = 0; step < halvings; ++step) {
    const double middle = 0.5 * (low + high);
    (slope(middle) > 0.0 ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

double gain(const std::vector<Comparison>& comparisons, double strength) {
  double out = 0.0;
  for (const auto& comparison : comparisons) {
    Logistic model(comparison);
    out += model.log_likelihood(strength) - model.log_likelihood(0.0);
  }
  return out;
}

}  // namespace neyman::detail
