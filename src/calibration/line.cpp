#include "calibration/line.hpp"

#include <algorithm>
#include <cmath>

namespace neyman::calibration {

namespace {

// A ridge that decides the slope where there is only one score, and is felt nowhere else.
constexpr double ridge = 1e-6;
constexpr int most_steps = 100;
constexpr double steepest_after = 0.9;  // after a step, of the slope before it

struct Derivatives {
  double g0 = 0.0, g1 = 0.0;
  double h00 = 0.0, h01 = 0.0, h11 = ridge;
};

struct Model {
  std::vector<double> u, ones, zeros;  // standardised score; weights of label 1 and of label 0
  double prior_odds = 0.0;             // log n1/n0

  Derivatives at(double offset, double slope) const {
    Derivatives d;
    for (std::size_t i = 0; i < u.size(); ++i) {
      const double eta = offset + slope * u[i] + prior_odds;
      const double e = std::exp(-std::abs(eta));
      const double p = eta >= 0.0 ? 1.0 / (1.0 + e) : e / (1.0 + e);
      const double n = ones[i] + zeros[i];
      const double residual = ones[i] - n * p, w = n * e / ((1.0 + e) * (1.0 + e));
      d.g0 += residual;
      d.g1 += residual * u[i];
      d.h00 += w;
      d.h01 += w * u[i];
      d.h11 += w * u[i] * u[i];
    }
    d.g1 -= ridge * slope;
    return d;
  }
};

}  // namespace

double Line::error(double logit) const {
  const double u = (logit - centre) / scale;
  const double variance = variance_offset + u * (2.0 * covariance + u * variance_slope);
  return std::sqrt(std::max(variance, 0.0));
}

std::vector<double> Line::values() const {
  return {centre, scale, offset, slope, variance_offset, covariance, variance_slope};
}

Line Line::from(const std::vector<double>& v) {
  return {v.at(0), v.at(1), v.at(2), v.at(3), v.at(4), v.at(5), v.at(6)};
}

Spread spread(const Cells& cells) {
  Spread result;
  double mean = 0.0, variance = 0.0;
  for (std::size_t i = 0; i < cells.size(); ++i) mean += cells.share(i) * cells.score[i];
  result.centre = std::clamp(mean, cells.low, cells.high);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const double d = cells.score[i] - result.centre;
    variance += cells.share(i) * d * d;
  }
  const double resolution = 1e-12 * std::max(1e-100, std::abs(result.centre));
  if (variance > resolution * resolution) result.scale = std::sqrt(variance);
  return result;
}

Line fit_line(const Cells& cells) {
  const double n0 = cells.numerator_total, n1 = cells.denominator_total;
  const auto [centre, scale] = spread(cells);
  const double target0 = 1.0 / (n0 + 2.0), target1 = (n1 + 1.0) / (n1 + 2.0);
  Model model;
  model.prior_odds = std::log(n1 / n0);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const double a = cells.numerator[i], b = cells.denominator[i];
    model.u.push_back((cells.score[i] - centre) / scale);
    model.ones.push_back(a * target0 + b * target1);
    model.zeros.push_back(a * (1.0 - target0) + b * (1.0 - target1));
  }

  double offset = 0.0, slope = 0.0;
  Derivatives now = model.at(offset, slope);
  for (int step = 0; step < most_steps; ++step) {
    const double det = now.h00 * now.h11 - now.h01 * now.h01;
    if (!(det > 0.0)) break;
    const double d0 = (now.h11 * now.g0 - now.h01 * now.g1) / det;
    const double d1 = (now.h00 * now.g1 - now.h01 * now.g0) / det;
    if (std::abs(d0) + std::abs(d1) < 1e-10 * (1.0 + std::abs(offset) + std::abs(slope))) {
      offset += d0;
      slope += d1;
      break;
    }
    // Concave: a step is too long where the slope along it has turned round and is as steep.
    const double rise = now.g0 * d0 + now.g1 * d1;
    double part = 1.0;
    Derivatives next = model.at(offset + d0, slope + d1);
    for (int half = 0; half < 40 && !(next.g0 * d0 + next.g1 * d1 >= -steepest_after * rise);
         ++half) {
      part *= 0.5;
      next = model.at(offset + part * d0, slope + part * d1);
    }
    offset += part * d0;
    slope += part * d1;
    now = next;
  }

  Line line{centre, scale, offset, slope};
  const double det = now.h00 * now.h11 - now.h01 * now.h01;
  if (det > 0.0) {
    line.variance_offset = now.h11 / det - 1.0 / n0 - 1.0 / n1;
    line.covariance = -now.h01 / det;
    line.variance_slope = now.h00 / det;
  }
  return line;
}

}  // namespace neyman::calibration
