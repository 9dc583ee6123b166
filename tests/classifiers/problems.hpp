#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "neyman/classifiers/classifier.hpp"
#include "neyman/core/matrix.hpp"
#include "neyman/core/random.hpp"

// Problems whose exact logit is known.
namespace neyman::problems {

struct Labelled {
  Matrix x;
  std::vector<std::uint8_t> denominator;
  std::vector<double> weights = {};

  TrainingSet set(std::uint64_t seed = 1) const { return {x, denominator, weights, seed}; }
};

/// Numerator N(0, 1), denominator N(1, 1) in the first feature, further features N(0, 1) in
/// both: z = x₀ − ½.
inline Labelled two_normals(std::size_t numerator, std::size_t denominator,
                            std::size_t features = 1, std::uint64_t seed = 1) {
  const std::size_t n = numerator + denominator;
  Labelled data{Matrix(n, features), std::vector<std::uint8_t>(n)};
  RandomStream random(seed, "two normals");
  std::size_t left = numerator;
  for (std::size_t i = 0; i < n; ++i) {
    // The sides alternate as far as they go.
    const bool is_numerator = left > 0 && (i % 2 == 0 || n - i <= left);
    if (is_numerator) --left;
    data.denominator[i] = is_numerator ? 0 : 1;
    for (std::size_t j = 0; j < features; ++j) data.x(i, j) = random.normal();
    if (!is_numerator) data.x(i, 0) += 1.0;
  }
  return data;
}

inline double exact_logit(double x) { return x - 0.5; }

/// Mean of |z − z*| over rows drawn from both sides.
inline double mean_error(const Classifier& classifier, MatrixView x) {
  const Logits z = classifier.logits(x);
  double sum = 0.0;
  for (std::size_t i = 0; i < x.rows(); ++i) sum += std::abs(z[i] - exact_logit(x(i, 0)));
  return sum / static_cast<double>(x.rows());
}

inline double mean_difference(const Logits& a, const Logits& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::abs(a[i] - b[i]);
  return sum / static_cast<double>(a.size());
}

/// The rows of these indices.
inline Labelled take(const Labelled& data, const std::vector<std::size_t>& rows) {
  Labelled result{data.x.take(rows), {}, {}};
  for (const std::size_t i : rows) {
    result.denominator.push_back(data.denominator[i]);
    if (!data.weights.empty()) result.weights.push_back(data.weights[i]);
  }
  return result;
}

/// The rows of a table, with their numbers as groups, in windows: row i is in window i mod count.
template <class Table>
inline TrainingStream stream_of(const Table& table, std::size_t windows) {
  TrainingStream out;
  out.rows = table.x.rows();
  out.windows = windows;
  out.seed = 5;
  out.read = [&table, windows](std::size_t, std::size_t window) {
    std::vector<std::size_t> chosen;
    for (std::size_t i = window; i < table.x.rows(); i += windows) chosen.push_back(i);
    TrainingRows rows{table.x.take(chosen), {}, {}, {}};
    for (const std::size_t i : chosen) {
      rows.denominator.push_back(table.denominator[i]);
      if (!table.weights.empty()) rows.weights.push_back(table.weights[i]);
      rows.groups.push_back(static_cast<std::int64_t>(i));
    }
    return rows;
  };
  return out;
}

}  // namespace neyman::problems
