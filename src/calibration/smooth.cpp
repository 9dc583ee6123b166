#include "neyman/calibration/smooth.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include "calibration/banded.hpp"
#include "calibration/cubic_spline.hpp"
#include "calibration/line.hpp"
#include "calibration/scores.hpp"
#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"

namespace neyman {

namespace calibration {

struct SplineFit {
  double centre = 0.0, scale = 1.0, low = 0.0, high = 0.0;
  std::vector<double> breaks, coefficients, covariance;
  double complexity = 0.0;
  double log_lambda = 0.0;
};

}  // namespace calibration

using namespace calibration;

namespace {

// The prior of f: normal about the score itself (less its mean, and within ±20), with this
// precision in all, spread over the sample.
constexpr double prior_precision = 0.2;
constexpr double largest_prior = 20.0;
constexpr double smallest_log_lambda = -8.0;
constexpr double search_step = 2.0;
constexpr double worth_a_bend = 1.0;  // what the criterion must gain over the straight line
constexpr double hopeless = 8.0;      // a criterion this far below the best ends the search
constexpr double search_tolerance = 1e-3, final_tolerance = 1e-10;  // Newton decrement
constexpr double rounding = 1e-13;                                  // of the objective, relative
constexpr int most_newton_steps = 60, most_halvings = 30, most_monotone_rounds = 50;
constexpr double longest_step = 4.0;  // most change of a coefficient (log-odds) in one step
constexpr std::size_t most_knots = 1000;
constexpr std::size_t guide_size = 512;

// Breaks spread as the square root of the density of scores: between equal distances, which
// would waste them in the tails, and equal probability, which would starve the tails.
std::vector<double> choose_breaks(const std::vector<double>& u, const std::vector<double>& share,
                                  std::size_t pieces) {
  const double low = u.front(), high = u.back();
  std::vector<double> cumulative{0.0};
  for (std::size_t i = 0; i + 1 < u.size(); ++i) {
    const double mass = 0.5 * (share[i] + share[i + 1]);
    cumulative.push_back(cumulative.back() + std::sqrt(mass * (u[i + 1] - u[i])));
  }
  std::vector<double> breaks{low};
  const double apart = 1e-6 * (high - low);
  std::size_t segment = 0;
  for (std::size_t k = 1; k < pieces; ++k) {
    const double target = cumulative.back() * static_cast<double>(k) / static_cast<double>(pieces);
    while (segment + 2 < cumulative.size() && cumulative[segment + 1] < target) ++segment;
    const double length = cumulative[segment + 1] - cumulative[segment];
    const double t = length > 0.0 ? (target - cumulative[segment]) / length : 0.5;
    const double at = u[segment] + t * (u[segment + 1] - u[segment]);
    if (at > breaks.back() + apart && at < high - apart) breaks.push_back(at);
  }
  breaks.push_back(high > low ? high : low + 1.0);
  return breaks;
}

std::size_t automatic_pieces(double n0, double n1) {
  const double n = 2.0 / (1.0 / n0 + 1.0 / n1);
  return static_cast<std::size_t>(std::clamp(4.0 * std::pow(n, 0.2), 5.0, 64.0));
}

// The penalised logistic regression on fixed cells and breaks; the counts in the cells may be
// exchanged, as a bootstrap does.
class Regression {
 public:
  Regression(const Cells& cells, std::size_t pieces)
      : spread_(spread(cells)), scores_(cells.score), low_(cells.low), high_(cells.high) {
    std::vector<double> u, share;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      u.push_back((cells.score[i] - spread_.centre) / spread_.scale);
      share.push_back(cells.share(i));
    }
    if (pieces == 0) pieces = automatic_pieces(cells.numerator_total, cells.denominator_total);
    pieces = std::clamp<std::size_t>(pieces, 1, std::max<std::size_t>(1, u.size() / 2));
    breaks_ = choose_breaks(u, share, pieces);
    const CubicSplines splines(breaks_);
    for (const double at : u) {
      const std::size_t piece = find_piece(breaks_, at);
      piece_.push_back(piece);
      basis_.push_back(splines.values(piece, at));
    }
    curvature_ = splines.curvature_penalty();
    for (std::size_t i = 0; i < breaks_.size(); ++i) bends_.push_back(splines.second_derivative(i));
    greville_ = splines.greville();
  }

  SplineFit fit(const Cells& cells, bool monotone) {
    set_counts(cells);
    start_from_line(cells);
    return fit_at(scan(), cells, monotone);
  }

  // The same with given smoothness, for a bootstrap: a resampled sample is rougher than its size
  // says and would choose too little.
  SplineFit refit(const Cells& cells, bool monotone, const SplineFit& whole) {
    set_counts(cells);
    state_.coefficients = whole.coefficients;
    return fit_at(whole.log_lambda, cells, monotone);
  }

 private:
  SplineFit fit_at(double log_lambda, const Cells& cells, bool monotone) {
    solve(log_lambda, final_tolerance);
    const Banded information = state_.information;
    if (monotone) make_monotone(log_lambda);
    return result(log_lambda, information, cells);
  }

  struct State {
    std::vector<double> coefficients, gradient;
    double objective = -std::numeric_limits<double>::infinity();
    Banded information;  // BᵀWB, without the penalty
  };

  void set_counts(const Cells& cells) {
    prior_odds_ = std::log(cells.denominator_total / cells.numerator_total);
    sum_.resize(cells.size());
    ones_ = cells.denominator;
    precision_.resize(cells.size());
    target_.resize(cells.size());
    for (std::size_t i = 0; i < cells.size(); ++i) {
      sum_[i] = cells.numerator[i] + cells.denominator[i];
      precision_[i] = prior_precision * cells.share(i);
      target_[i] = std::clamp(scores_[i] - spread_.centre, -largest_prior, largest_prior);
    }
    total_ = cells.numerator_total + cells.denominator_total;
  }

  void start_from_line(const Cells& cells) {
    const Line line = fit_line(cells);
    state_.coefficients.resize(greville_.size());
    for (std::size_t j = 0; j < greville_.size(); ++j) {
      state_.coefficients[j] = -line.log_ratio(spread_.centre + spread_.scale * greville_[j]);
    }
  }

  // Log-likelihood with the prior, its gradient and information at the coefficients, without
  // the penalties.
  void evaluate(State& state) const {
    const std::size_t m = greville_.size();
    state.gradient.assign(m, 0.0);
    state.information = Banded(m);
    state.objective = 0.0;
    for (std::size_t i = 0; i < sum_.size(); ++i) {
      const auto& b = basis_[i];
      const std::size_t first = piece_[i];
      double f = 0.0;
      for (std::size_t r = 0; r < 4; ++r) f += b[r] * state.coefficients[first + r];
      const double eta = f + prior_odds_, off = f - target_[i];
      const double e = std::exp(-std::abs(eta)), inverse = 1.0 / (1.0 + e);
      const double p = eta >= 0.0 ? inverse : e * inverse;
      state.objective += ones_[i] * eta - sum_[i] * (std::max(eta, 0.0) + std::log1p(e)) -
                         0.5 * precision_[i] * off * off;
      const double residual = ones_[i] - sum_[i] * p - precision_[i] * off;
      const double w = sum_[i] * e * inverse * inverse + precision_[i];
      for (std::size_t r = 0; r < 4; ++r) {
        state.gradient[first + r] += residual * b[r];
        for (std::size_t s = 0; s <= r; ++s) {
          state.information.at(first + r, first + s) += w * b[r] * b[s];
        }
      }
    }
  }

  // The quadratic penalty of a solve: λ ∫ f''², and stiff springs on steps between neighbouring
  // coefficients that are held from falling.
  struct Penalty {
    double lambda = 0.0, stiff = 0.0;
    std::vector<bool> held;  // step j is from coefficient j − 1 to j
    Banded matrix;
  };

  Penalty make_penalty(double log_lambda) const {
    Penalty penalty;
    penalty.lambda = std::exp(log_lambda);
    penalty.held.assign(greville_.size(), false);
    penalty.matrix = Banded(greville_.size());
    penalty.matrix.add_scaled(curvature_, penalty.lambda);
    return penalty;
  }

  // Subtracts the penalty from objective and gradient. From bends and steps, not by the matrix:
  // the penalty of an almost straight line is a small difference of large numbers there.
  void penalise(State& state, const Penalty& penalty) const {
    const auto& c = state.coefficients;
    std::vector<double> bend(breaks_.size()), force(breaks_.size(), 0.0);
    for (std::size_t i = 0; i < bend.size(); ++i) {
      bend[i] = bends_[i][0] * c[i] + bends_[i][1] * c[i + 1] + bends_[i][2] * c[i + 2];
    }
    for (std::size_t i = 0; i + 1 < bend.size(); ++i) {
      const double third = penalty.lambda * (breaks_[i + 1] - breaks_[i]) / 3.0;
      force[i] += third * (bend[i] + 0.5 * bend[i + 1]);
      force[i + 1] += third * (bend[i + 1] + 0.5 * bend[i]);
    }
    for (std::size_t i = 0; i < bend.size(); ++i) {
      state.objective -= 0.5 * force[i] * bend[i];
      for (std::size_t k = 0; k < 3; ++k) state.gradient[i + k] -= force[i] * bends_[i][k];
    }
    for (std::size_t j = 1; j < c.size(); ++j) {
      if (!penalty.held[j]) continue;
      const double step = c[j] - c[j - 1];
      state.objective -= 0.5 * penalty.stiff * step * step;
      state.gradient[j] -= penalty.stiff * step;
      state.gradient[j - 1] += penalty.stiff * step;
    }
  }

  BandedCholesky factor(const Banded& information, const Banded& penalty) const {
    Banded matrix = information;
    matrix.add_scaled(penalty, 1.0);
    // Felt only where neither events nor curvature decide a coefficient.
    const double ridge = 1e-10 * (1.0 + information.trace()) / static_cast<double>(matrix.size());
    for (std::size_t i = 0; i < matrix.size(); ++i) matrix.at(i, i) += ridge;
    return BandedCholesky(matrix);
  }

  // One Newton step with halving; false when nothing more is to be gained.
  bool newton_step(const Penalty& penalty, double tolerance) {
    const BandedCholesky cholesky = factor(state_.information, penalty.matrix);
    std::vector<double> step = state_.gradient;
    cholesky.solve(step);
    double decrement = 0.0, longest = 0.0;
    for (std::size_t j = 0; j < step.size(); ++j) {
      decrement += step[j] * state_.gradient[j];
      longest = std::max(longest, std::abs(step[j]));
    }
    if (!std::isfinite(longest)) return false;
    // Separated sides leave the information almost singular beside a stiff penalty; a step far
    // along its null space would end where rounding of the penalty looks like an improvement.
    State next;
    double size = longest > longest_step ? longest_step / longest : 1.0;
    for (int half = 0; half < most_halvings; ++half, size *= 0.5) {
      next.coefficients = state_.coefficients;
      for (std::size_t j = 0; j < step.size(); ++j) next.coefficients[j] += size * step[j];
      evaluate(next);
      penalise(next, penalty);
      if (next.objective >= state_.objective) break;
      // A gain within the rounding of the objective cannot be seen: this is the maximum.
      if (decrement < rounding * (1.0 + std::abs(state_.objective))) return false;
    }
    if (!(next.objective >= state_.objective)) return false;
    state_ = std::move(next);
    return decrement > tolerance;
  }

  void maximise(const Penalty& penalty, double tolerance) {
    evaluate(state_);
    penalise(state_, penalty);
    for (int step = 0; step < most_newton_steps && newton_step(penalty, tolerance); ++step) {
    }
  }

  void solve(double log_lambda, double tolerance) { maximise(make_penalty(log_lambda), tolerance); }

  // Laplace's approximation of the log marginal likelihood, up to a constant.
  double criterion(double log_lambda) {
    const Penalty penalty = make_penalty(log_lambda);
    maximise(penalty, search_tolerance);
    const auto cholesky = factor(state_.information, penalty.matrix);
    const double rank = static_cast<double>(greville_.size()) - 2.0;
    return state_.objective + 0.5 * rank * log_lambda - 0.5 * cholesky.log_determinant();
  }

  double largest_log_lambda() const { return std::log(1e3 * (1.0 + total_)); }

  // From the straight line to ever more freedom, then a closer look around the best.
  double scan() {
    double best = largest_log_lambda(), best_value = criterion(best) + worth_a_bend;
    State best_state = state_;
    for (double at = best - search_step; at > smallest_log_lambda; at -= search_step) {
      const double value = criterion(at);
      if (value > best_value) {
        best = at;
        best_value = value;
        best_state = state_;
      } else if (value < best_value - hopeless) {
        break;
      }
    }
    state_ = std::move(best_state);
    return refine(best, best_value, 0.5 * search_step);
  }

  double refine(double at, double value, double step) {
    for (; step > 0.3; step *= 0.5) {
      for (const double other : {at - step, at + step}) {
        const double other_value = criterion(other);
        if (other_value > value) {
          value = other_value;
          at = other;
          break;
        }
      }
    }
    return at;
  }

  // Non-decreasing coefficients make a non-decreasing spline. Falling steps get a stiff
  // penalty until none is left over, and a last running maximum takes what remains of them.
  void make_monotone(double log_lambda) {
    const std::size_t m = greville_.size();
    const Penalty smooth = make_penalty(log_lambda);
    Penalty penalty = smooth;
    penalty.stiff = 1e6 * (1.0 + state_.information.trace() / static_cast<double>(m));
    for (int round = 0; round < most_monotone_rounds; ++round) {
      std::vector<bool> falling(m, false);
      for (std::size_t j = 1; j < m; ++j) {
        falling[j] = state_.coefficients[j] < state_.coefficients[j - 1];
      }
      if (falling == penalty.held) break;
      penalty.held = std::move(falling);
      penalty.matrix = smooth.matrix;
      for (std::size_t j = 1; j < m; ++j) {
        if (!penalty.held[j]) continue;
        penalty.matrix.at(j, j) += penalty.stiff;
        penalty.matrix.at(j - 1, j - 1) += penalty.stiff;
        penalty.matrix.at(j, j - 1) -= penalty.stiff;
      }
      maximise(penalty, final_tolerance);
    }
    for (std::size_t j = 1; j < m; ++j) {
      state_.coefficients[j] = std::max(state_.coefficients[j], state_.coefficients[j - 1]);
    }
  }

  SplineFit result(double log_lambda, const Banded& information, const Cells& cells) const {
    const std::size_t m = greville_.size();
    const BandedCholesky cholesky = factor(information, make_penalty(log_lambda).matrix);
    const Banded inverse = cholesky.inverse_band();
    // What the events alone say of a constant: with given sizes of the sides they do not say it.
    std::vector<double> constant(m, 0.0);
    for (std::size_t i = 0; i < m; ++i) {
      for (std::size_t j = i >= 3 ? i - 3 : 0; j < std::min(m, i + 4); ++j) {
        constant[i] += information.element(i, j);
      }
    }
    for (std::size_t i = 0; i < sum_.size(); ++i) {
      for (std::size_t r = 0; r < 4; ++r) constant[piece_[i] + r] -= precision_[i] * basis_[i][r];
    }
    cholesky.solve(constant);
    const double given = 1.0 / cells.numerator_total + 1.0 / cells.denominator_total;
    SplineFit fit;
    fit.centre = spread_.centre;
    fit.scale = spread_.scale;
    fit.low = low_;
    fit.high = high_;
    fit.breaks = breaks_;
    fit.coefficients = state_.coefficients;
    fit.log_lambda = log_lambda;
    for (std::size_t i = 0; i < m; ++i) {
      for (std::size_t j = i >= 3 ? i - 3 : 0; j <= i; ++j) {
        fit.complexity += (i == j ? 1.0 : 2.0) * inverse.at(i, j) * information.at(i, j);
      }
      for (std::size_t k = 0; k < Banded::width; ++k) {
        fit.covariance.push_back(
            k <= i ? inverse.at(i, i - k) - given * constant[i] * constant[i - k] : 0.0);
      }
    }
    return fit;
  }

  Spread spread_;
  std::vector<double> scores_, breaks_, greville_;
  double low_, high_;
  std::vector<std::size_t> piece_;
  std::vector<std::array<double, 4>> basis_;
  Banded curvature_;
  std::vector<std::array<double, 3>> bends_;  // f'' at the breaks, of three coefficients each
  std::vector<double> sum_, ones_;            // events, and those of the denominator
  std::vector<double> precision_, target_;    // of the prior
  double prior_odds_ = 0.0, total_ = 0.0;
  State state_;
};

std::vector<std::uint32_t> find_cells(const Cells& cells, std::span<const double> scores) {
  std::vector<std::uint32_t> index(scores.size());
  parallel_blocks(scores.size(), default_block, [&](Block block) {
    for (std::size_t i = block.begin; i < block.end; ++i) {
      index[i] = static_cast<std::uint32_t>(cells.find(clamp_logit(scores[i])));
    }
  });
  return index;
}

// The counts of one side in the cells, with multiplicities; returns their sum.
double count_in_cells(const std::vector<std::uint32_t>& index,
                      std::span<const double> multiplicities, const SideWeights& weights,
                      std::vector<double>& counts) {
  std::fill(counts.begin(), counts.end(), 0.0);
  for (std::size_t i = 0; i < index.size(); ++i) {
    const double weight = weights.values.empty() ? 1.0 : weights.values[i];
    counts[index[i]] += multiplicities[i] * weight;
  }
  double total = 0.0;
  for (const double count : counts) total += count;
  return total;
}

}  // namespace

SmoothCalibrator::Config SmoothCalibrator::Config::from(Settings& settings) {
  Config config;
  config.knots = settings.count({"knots", "pieces of the spline; 0: chosen from the sample's size"},
                                config.knots, 0, most_knots);
  config.monotone =
      settings.flag({"monotone", "keep log r from rising with the score"}, config.monotone);
  config.extrapolation =
      settings.number({"extrapolation", "most change of log r outside the range of the scores"},
                      config.extrapolation, Limits::between(0.0, 1000.0));
  return config;
}

SmoothCalibrator::SmoothCalibrator(Config config) : config_(config) {
  check_in_range("SmoothCalibrator", "extrapolation", config_.extrapolation, 0.0, 1000.0);
  if (config_.knots > most_knots) {
    fail_argument("SmoothCalibrator", "knots", std::to_string(config_.knots), "at most 1000");
  }
}

std::unique_ptr<Calibrator> SmoothCalibrator::fresh() const {
  return std::make_unique<SmoothCalibrator>(config_);
}

void SmoothCalibrator::fit(const CalibrationSet& data) {
  const Cells cells = make_cells(sort_scores(data));
  Regression regression(cells, config_.knots);
  take(regression.fit(cells, config_.monotone));
}

std::vector<std::unique_ptr<Calibrator>> SmoothCalibrator::fit_replicas(
    const CalibrationSet& data, std::size_t count, const ReplicaWeights& fill) const {
  const Cells cells = make_cells(sort_scores(data));
  const SideWeights weights0 =
      scale_weights("numerator", data.numerator, data.numerator_weights, data.weight_meaning);
  const SideWeights weights1 =
      scale_weights("denominator", data.denominator, data.denominator_weights, data.weight_meaning);
  const auto index0 = find_cells(cells, data.numerator);
  const auto index1 = find_cells(cells, data.denominator);
  const Regression regression(cells, config_.knots);
  const SplineFit whole = Regression(regression).fit(cells, config_.monotone);

  std::vector<std::unique_ptr<Calibrator>> replicas(count);
  parallel_tasks(count, [&](std::size_t replica) {
    std::vector<double> numerator(index0.size()), denominator(index1.size());
    fill(replica, numerator, denominator);
    Cells counted = cells;
    counted.numerator_total = count_in_cells(index0, numerator, weights0, counted.numerator);
    counted.denominator_total = count_in_cells(index1, denominator, weights1, counted.denominator);
    const bool usable = counted.numerator_total > 0.0 && counted.denominator_total > 0.0;
    auto calibrator = std::make_unique<SmoothCalibrator>(config_);
    calibrator->take(usable ? Regression(regression).refit(counted, config_.monotone, whole)
                            : SplineFit(whole));
    replicas[replica] = std::move(calibrator);
  });
  return replicas;
}

void SmoothCalibrator::take(SplineFit&& fit) {
  low_ = fit.low;
  high_ = fit.high;
  centre_ = fit.centre;
  scale_ = fit.scale;
  breaks_ = std::move(fit.breaks);
  coefficients_ = std::move(fit.coefficients);
  covariance_ = std::move(fit.covariance);
  complexity_ = fit.complexity;
  prepare();
}

void SmoothCalibrator::prepare() {
  pieces_ = CubicSplines(breaks_).polynomials(coefficients_);
  guide_.resize(guide_size);
  const double first = breaks_.front(), length = breaks_.back() - first;
  for (std::size_t i = 0; i < guide_size; ++i) {
    const double u = first + length * static_cast<double>(i) / static_cast<double>(guide_size);
    guide_[i] = static_cast<std::uint16_t>(find_piece(breaks_, u));
  }
}

// The piece that holds a u of the range: from the guide, mostly at once.
std::size_t SmoothCalibrator::find(double u) const {
  const double part = (u - breaks_.front()) / (breaks_.back() - breaks_.front());
  const auto at = static_cast<std::size_t>(part * static_cast<double>(guide_size));
  std::size_t piece = guide_[std::min(at, guide_size - 1)];
  while (piece > 0 && u < breaks_[piece]) --piece;
  while (piece + 1 < pieces_.size() && u >= breaks_[piece + 1]) ++piece;
  return piece;
}

LogRatios SmoothCalibrator::log_ratios(const Logits& logits) const {
  check_evaluation(*this, "SmoothCalibrator::log_ratios", logits);
  const double first = breaks_.front(), last = breaks_.back();
  LogRatios result(logits.size());
  parallel_blocks(logits.size(), default_block, [&](Block block) {
    for (std::size_t i = block.begin; i < block.end; ++i) {
      const double u = (clamp_logit(logits[i]) - centre_) / scale_;
      const double inside = std::clamp(u, first, last);
      const std::size_t piece = find(inside);
      const auto& [c0, c1, c2, c3] = pieces_[piece];
      const double v = inside - breaks_[piece];
      double f = c0 + v * (c1 + v * (c2 + v * c3));
      if (u != inside) {
        const double slope = c1 + v * (2.0 * c2 + v * 3.0 * c3);
        f += std::clamp(slope * (u - inside), -config_.extrapolation, config_.extrapolation);
      }
      result[i] = -f;
    }
  });
  return result;
}

std::vector<double> SmoothCalibrator::errors(const Logits& logits) const {
  check_evaluation(*this, "SmoothCalibrator::errors", logits);
  const CubicSplines splines(breaks_);
  std::vector<double> result(logits.size());
  parallel_blocks(logits.size(), default_block, [&](Block block) {
    for (std::size_t i = block.begin; i < block.end; ++i) {
      const double u = (clamp_logit(logits[i]) - centre_) / scale_;
      const double inside = std::clamp(u, breaks_.front(), breaks_.back());
      const std::size_t piece = find(inside);
      std::array<double, 4> b = splines.values(piece, inside);
      if (u != inside) {
        const auto slope = splines.slopes(piece, inside);
        for (std::size_t r = 0; r < 4; ++r) b[r] += slope[r] * (u - inside);
      }
      double variance = 0.0;
      for (std::size_t r = 0; r < 4; ++r) {
        for (std::size_t s = 0; s < 4; ++s) {
          const std::size_t row = piece + std::max(r, s), back = r > s ? r - s : s - r;
          variance += b[r] * b[s] * covariance_[row * Banded::width + back];
        }
      }
      result[i] = std::sqrt(std::max(variance, 0.0));
    }
  });
  return result;
}

void SmoothCalibrator::save(Archive& archive) const {
  archive.set("knots", config_.knots);
  archive.set("monotone", config_.monotone);
  archive.set("extrapolation", config_.extrapolation);
  archive.set("low", low_);
  archive.set("high", high_);
  archive.set("centre", centre_);
  archive.set("scale", scale_);
  archive.set("breaks", breaks_);
  archive.set("coefficients", coefficients_);
  archive.set("covariance", covariance_);
  archive.set("complexity", complexity_);
}

void SmoothCalibrator::load(const Archive& archive) {
  Config config;
  config.knots = static_cast<std::size_t>(archive.integer("knots"));
  config.monotone = archive.flag("monotone");
  config.extrapolation = archive.number("extrapolation");
  *this = SmoothCalibrator(config);
  low_ = archive.number("low");
  high_ = archive.number("high");
  centre_ = archive.number("centre");
  scale_ = archive.number("scale");
  breaks_ = archive.numbers("breaks");
  coefficients_ = archive.numbers("coefficients");
  covariance_ = archive.numbers("covariance");
  complexity_ = archive.number("complexity");
  if (breaks_.empty()) return;
  const bool consistent = breaks_.size() >= 2 && coefficients_.size() == breaks_.size() + 2 &&
                          covariance_.size() == Banded::width * coefficients_.size();
  if (!consistent) {
    throw FileError("calibrator: breaks, coefficients and covariance do not belong together");
  }
  prepare();
}

}  // namespace neyman
