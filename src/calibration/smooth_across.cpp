#include "neyman/calibration/smooth_across.hpp"

#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <map>

#include "calibration/scores.hpp"
#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/polynomial_basis.hpp"
#include "neyman/core/random.hpp"

namespace neyman {

namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr std::size_t most_degree = 10, most_knots_across = 20;
constexpr std::size_t event_block = 2048;
/// Rows from which the curvature is computed; beyond, a random part of the events serves.
constexpr std::size_t curvature_rows = 200'000;
constexpr double offset_precision = 1e-4;  // of the one coefficient without a group
constexpr double least_precision = 1e-4, most_precision = 1e10;
constexpr double least_gain = 1.5;   // of the log evidence
constexpr double least_fall = 0.02;  // of log r, for one unit of z

Eigen::Index index(std::size_t i) { return static_cast<Eigen::Index>(i); }

std::size_t default_degree(std::size_t parameters) {
  return parameters <= 2 ? 4 : parameters <= 4 ? 3 : 2;
}

}  // namespace

/// The fitted curve and what is needed to evaluate it.
struct SmoothAcross::Model {
  std::vector<double> range_low, range_high;  // of the parameters
  std::size_t degrees[3] = {0, 0, 0};         // of offset, slope, bends
  double extrapolation = 0.0;
  double low = 0.0, high = 0.0;      // of the scores
  double centre = 0.0, scale = 1.0;  // t = (z − centre) / scale
  std::vector<double> knots;         // in t; empty: no bends
  Matrix transform;                  // lower triangle: q = transform · (1, t, splines)
  std::vector<double> coefficients;  // β, by shape, then by term
  Matrix covariance;                 // of β
  double complexity = 0.0;
  double shrinkage = 1.0;
  PolynomialBasis basis;                // made by prepare()
  std::vector<std::size_t> terms;       // how many P_k with each q_j
  std::vector<std::size_t> first_term;  // where those of q_j begin

  std::size_t parameters() const { return range_low.size(); }
  std::size_t shapes() const { return transform.rows(); }
  std::size_t size() const { return first_term.back(); }

  void prepare();
  void make_shapes(std::vector<double> logits);
  double held(double z) const { return std::clamp(z, low - extrapolation, high + extrapolation); }
  void raw(double z, double* value, double* slope) const;
  void shape(double z, double* value, double* slope) const;
  /// The constant and the P_k; slopes by rows k.
  void polynomials(std::span<const double> point, double* values, double* slopes) const;
  /// Σ_k β_jk P_k(θ) for each q_j, from values of the constant and the P_k.
  void collect(const double* polynomials, std::size_t stride, double* out) const;
  /// The degree in θ of each coefficient, and which of offset, slope and bends it belongs to.
  std::size_t group(std::size_t shape, std::size_t term) const;
  double falling_share() const;

  class Fitter;
};

void SmoothAcross::Model::prepare() {
  std::vector<Parameter> ranges;
  for (std::size_t p = 0; p < parameters(); ++p)
    ranges.push_back({fmt::format("p{}", p), range_low[p], range_high[p], {}});
  basis = PolynomialBasis(ParameterSpace(ranges), degrees[0]);
  terms.clear();
  first_term = {0};
  for (std::size_t j = 0; j < shapes(); ++j) {
    const std::size_t degree = degrees[std::min<std::size_t>(j, 2)];
    terms.push_back(1 + (degree == 0 ? 0 : PolynomialBasis::count(parameters(), degree)));
    first_term.push_back(first_term.back() + terms.back());
  }
}

/// (1, t, splines): truncated cubes combined so that they are straight outside of the knots.
void SmoothAcross::Model::raw(double z, double* value, double* slope) const {
  const double t = (z - centre) / scale;
  value[0] = 1.0;
  slope[0] = 0.0;
  if (shapes() < 2) return;
  value[1] = t;
  slope[1] = 1.0 / scale;
  const std::size_t count = shapes() - 2;
  if (count == 0) return;
  const double last = knots.back(), before = knots[knots.size() - 2];
  const double width = knots.back() - knots.front();
  const auto cube = [](double u) { return u > 0.0 ? u * u * u : 0.0; };
  const auto square = [](double u) { return u > 0.0 ? 3.0 * u * u : 0.0; };
  for (std::size_t j = 0; j < count; ++j) {
    const double a = (last - knots[j]) / (last - before), b = (before - knots[j]) / (last - before);
    value[2 + j] =
        (cube(t - knots[j]) - a * cube(t - before) + b * cube(t - last)) / (width * width);
    slope[2 + j] = (square(t - knots[j]) - a * square(t - before) + b * square(t - last)) /
                   (width * width * scale);
  }
}

void SmoothAcross::Model::shape(double z, double* value, double* slope) const {
  double raw_value[most_knots_across], raw_slope[most_knots_across];
  raw(z, raw_value, raw_slope);
  for (std::size_t j = 0; j < shapes(); ++j) {
    value[j] = slope[j] = 0.0;
    for (std::size_t i = 0; i <= j; ++i) {
      value[j] += transform(j, i) * raw_value[i];
      slope[j] += transform(j, i) * raw_slope[i];
    }
  }
}

/// Knots at quantiles of the scores, and functions that are orthonormal over them.
void SmoothAcross::Model::make_shapes(std::vector<double> logits) {
  std::sort(logits.begin(), logits.end());
  const auto quantile = [&](double share) {
    return logits[static_cast<std::size_t>(share * static_cast<double>(logits.size() - 1))];
  };
  centre = quantile(0.5);
  scale = 0.5 * (quantile(0.84) - quantile(0.16));
  if (!(scale > 0.0)) scale = logits.back() - logits.front();
  std::size_t shapes_wanted = scale > 0.0 ? knots.size() : 1;
  if (!(scale > 0.0)) scale = 1.0;
  if (shapes_wanted > 2) {
    const std::size_t count = knots.size();
    knots.clear();
    for (std::size_t k = 0; k < count; ++k) {
      const double share = 0.01 + 0.98 * static_cast<double>(k) / static_cast<double>(count - 1);
      const double knot = (quantile(share) - centre) / scale;
      if (knots.empty() || knot > knots.back() + 0.02) knots.push_back(knot);
    }
    shapes_wanted = knots.size() < 3 ? 2 : knots.size();
  } else {
    shapes_wanted = std::min<std::size_t>(shapes_wanted, 2);
  }
  if (shapes_wanted <= 2) knots.clear();
  const std::size_t n = shapes_wanted;
  transform = Matrix(n, n);
  // Cholesky factor of the mean of raw rawᵀ; its inverse makes them orthonormal.
  MatrixXd gram = MatrixXd::Zero(index(n), index(n));
  VectorXd value(index(most_knots_across)), slope(index(most_knots_across));
  const std::size_t step = std::max<std::size_t>(1, logits.size() / 20'000);
  double used = 0.0;
  for (std::size_t i = 0; i < logits.size(); i += step, ++used) {
    raw(logits[i], value.data(), slope.data());
    gram += value.head(index(n)) * value.head(index(n)).transpose();
  }
  gram /= used;
  gram.diagonal() *= 1.0 + 1e-9;
  const MatrixXd inverse = MatrixXd(gram.llt().matrixL())
                               .triangularView<Eigen::Lower>()
                               .solve(MatrixXd::Identity(index(n), index(n)));
  for (std::size_t j = 0; j < n; ++j)
    for (std::size_t i = 0; i <= j; ++i) transform(j, i) = inverse(index(j), index(i));
}

void SmoothAcross::Model::polynomials(std::span<const double> point, double* values,
                                      double* slopes) const {
  values[0] = 1.0;
  const std::size_t p = parameters();
  if (slopes == nullptr) {
    basis.values(point, {values + 1, basis.size()});
    return;
  }
  std::fill_n(slopes, p, 0.0);
  basis.values(point, {values + 1, basis.size()}, {slopes + p, basis.size() * p});
}

void SmoothAcross::Model::collect(const double* polynomials, std::size_t stride,
                                  double* out) const {
  for (std::size_t j = 0; j < shapes(); ++j) {
    double sum = 0.0;
    for (std::size_t k = 0; k < terms[j]; ++k)
      sum += coefficients[first_term[j] + k] * polynomials[k * stride];
    out[j] = sum;
  }
}

std::size_t SmoothAcross::Model::group(std::size_t shape, std::size_t term) const {
  const std::size_t degree = term == 0 ? 0 : basis.degree(term - 1);
  return std::min<std::size_t>(shape, 2) * (most_degree + 1) + degree;
}

/// Newton's method on the likelihood of all rows, with precisions by the evidence.
class SmoothAcross::Model::Fitter {
 public:
  Fitter(Model& model, const Rows& rows) : model_(model), rows_(rows) {
    find_events();
    balance();
    choose_subset();
    group_coefficients();
  }

  void run() {
    VectorXd beta = improve(start(), subset_, 30);
    if (subset_.size() < events()) {
      std::vector<std::uint32_t> all(events());
      for (std::size_t e = 0; e < all.size(); ++e) all[e] = static_cast<std::uint32_t>(e);
      beta = improve(beta, all, 6);
    }
    store(beta);
  }

  /// Fits the offsets again with the other coefficients as they are.
  void refit_offsets() {
    const auto count = index(model_.terms[0]);
    VectorXd beta = Eigen::Map<const VectorXd>(model_.coefficients.data(), index(model_.size()));
    auto sums = accumulate(beta, subset_, true);
    for (int step = 0; step < 10; ++step) {
      MatrixXd curvature = sums.curvature.topLeftCorner(count, count) * likelihood_scale_;
      curvature.diagonal() += precision_.head(count);
      const VectorXd gradient = sums.gradient.head(count) * likelihood_scale_ -
                                precision_.head(count).cwiseProduct(beta.head(count));
      VectorXd next = beta;
      next.head(count) += curvature.llt().solve(gradient);
      sums = walk(beta, next, sums, subset_, true);
      const double change = (next - beta).cwiseAbs().maxCoeff();
      beta = next;
      if (change < 1e-6) break;
    }
    std::copy(beta.begin(), beta.end(), model_.coefficients.begin());
  }

  /// Leaves the score as it is where the coefficients make the rows less likely.
  void keep_if_likelier() {
    const VectorXd zero = VectorXd::Zero(index(model_.size()));
    const VectorXd beta =
        Eigen::Map<const VectorXd>(model_.coefficients.data(), index(model_.size()));
    if (accumulate(beta, subset_, false).log_likelihood >=
        accumulate(zero, subset_, false).log_likelihood)
      return;
    covariance_ = MatrixXd::Zero(zero.size(), zero.size());
    store(zero);
    model_.complexity = 0.0;
  }

 private:
  struct Sums {
    double log_likelihood = 0.0;
    VectorXd gradient;
    MatrixXd curvature, scatter;  // −∂²; Σ over events of the gradient's square
  };

  std::size_t events() const { return first_row_.size() - 1; }

  /// What is the same at all θ, fitted by itself. Where the score saturates most rows, a step from
  /// zero would lead far away, and precisions chosen there mean nothing.
  VectorXd start() const {
    Model same(model_);
    same.terms.assign(same.shapes(), 1);
    for (std::size_t j = 0; j <= same.shapes(); ++j) same.first_term[j] = j;
    const VectorXd found = Fitter(same, rows_).climb();
    VectorXd beta = VectorXd::Zero(index(model_.size()));
    for (std::size_t j = 0; j < model_.shapes(); ++j)
      beta[index(model_.first_term[j])] = found[index(j)];
    return beta;
  }

  /// The maximum with precisions as they are, by steps of Newton's method that never lead down.
  VectorXd climb() const {
    VectorXd beta = VectorXd::Zero(index(model_.size()));
    auto sums = accumulate(beta, subset_, true);
    for (int step = 0; step < 30; ++step) {
      MatrixXd curvature = sums.curvature;
      curvature.diagonal() += precision_;
      const VectorXd gradient = sums.gradient - precision_.cwiseProduct(beta);
      VectorXd next = curvature.llt().solve(gradient);
      const double expected = 0.5 * gradient.dot(next);
      if (expected < 1e-3) break;
      next += beta;
      sums = walk(beta, next, sums, subset_, true);
      beta = next;
    }
    return beta;
  }

  void find_events() {
    for (std::size_t i = 0; i < rows_.logits.size(); ++i)
      if (i == 0 || rows_.events.empty() || rows_.events[i] != rows_.events[i - 1])
        first_row_.push_back(i);
    first_row_.push_back(rows_.logits.size());
  }

  double weight(std::size_t row) const { return rows_.weights.empty() ? 1.0 : rows_.weights[row]; }

  /// Each side's weights are scaled to its effective number of events.
  void balance() {
    double sum[2] = {0.0, 0.0}, squares[2] = {0.0, 0.0};
    for (std::size_t e = 0; e < events(); ++e) {
      double own[2] = {0.0, 0.0};
      for (std::size_t i = first_row_[e]; i < first_row_[e + 1]; ++i)
        own[rows_.denominator[i] != 0] += weight(i);
      for (int side = 0; side < 2; ++side) {
        sum[side] += own[side];
        squares[side] += own[side] * own[side];
      }
    }
    if (!(sum[0] > 0.0 && sum[1] > 0.0))
      throw ArgumentError(fmt::format("SmoothAcross::fit: the {} has no weight, but must have some",
                                      sum[0] > 0.0 ? "denominator" : "numerator"));
    for (int side = 0; side < 2; ++side) side_scale_[side] = sum[side] / squares[side];
    offset_ = std::log(side_scale_[0] * sum[0]) - std::log(side_scale_[1] * sum[1]);
  }

  void choose_subset() {
    const double share = static_cast<double>(curvature_rows) /
                         static_cast<double>(std::max<std::size_t>(1, rows_.logits.size()));
    RandomStream random(0, "calibration/smooth-across");
    for (std::size_t e = 0; e < events(); ++e)
      if (share >= 1.0 || random.uniform() < share)
        subset_.push_back(static_cast<std::uint32_t>(e));
  }

  void group_coefficients() {
    std::map<std::size_t, std::vector<Eigen::Index>> members;
    for (std::size_t j = 0; j < model_.shapes(); ++j)
      for (std::size_t k = 0; k < model_.terms[j]; ++k)
        members[model_.group(j, k)].push_back(index(model_.first_term[j] + k));
    members.erase(members.begin());  // the constant offset is always there
    for (auto& [group, indices] : members) groups_.push_back(std::move(indices));
    precision_ = VectorXd::Constant(index(model_.size()), 1.0);
    precision_[0] = offset_precision;
  }

  /// Sums over these events, scaled up to all.
  Sums accumulate(const VectorXd& beta, const std::vector<std::uint32_t>& chosen,
                  bool second_order) const {
    const auto size = index(model_.size());
    Sums zero{0.0, VectorXd::Zero(size), MatrixXd(), MatrixXd()};
    if (second_order) zero.curvature = zero.scatter = MatrixXd::Zero(size, size);
    auto sums = reduce_blocks(
        chosen.size(), event_block, zero,
        [&](Block block) {
          Sums own = zero;
          std::vector<double> polynomials(1 + model_.basis.size());
          double q[most_knots_across], slope[most_knots_across];
          VectorXd features(size), event_gradient(size);
          for (std::size_t c = block.begin; c < block.end; ++c) {
            event_gradient.setZero();
            for (std::size_t i = first_row_[chosen[c]]; i < first_row_[chosen[c] + 1]; ++i) {
              const bool denominator = rows_.denominator[i] != 0;
              const double w = weight(i) * side_scale_[denominator];
              if (w == 0.0) continue;
              const double z = std::clamp(rows_.logits[i], -calibration::largest_logit,
                                          calibration::largest_logit);
              model_.polynomials(rows_.points.row(i), polynomials.data(), nullptr);
              model_.shape(z, q, slope);
              double* at = features.data();
              for (std::size_t j = 0; j < model_.shapes(); ++j)
                for (std::size_t k = 0; k < model_.terms[j]; ++k) *at++ = q[j] * polynomials[k];
              const double eta = offset_ - z + beta.dot(features);  // log odds of the numerator
              const double odds = std::exp(-std::abs(eta));
              const double p = (eta > 0.0 ? 1.0 : odds) / (1.0 + odds);
              own.log_likelihood +=
                  w * (std::min(denominator ? -eta : eta, 0.0) - std::log1p(odds));
              event_gradient.noalias() += (w * ((denominator ? 0.0 : 1.0) - p)) * features;
              if (second_order)
                own.curvature.selfadjointView<Eigen::Lower>().rankUpdate(
                    features, w * odds / ((1.0 + odds) * (1.0 + odds)));
            }
            own.gradient += event_gradient;
            if (second_order)
              own.scatter.selfadjointView<Eigen::Lower>().rankUpdate(event_gradient);
          }
          return own;
        },
        [](Sums total, Sums own) {
          total.log_likelihood += own.log_likelihood;
          total.gradient += own.gradient;
          if (total.curvature.size() > 0) {
            total.curvature += own.curvature;
            total.scatter += own.scatter;
          }
          return total;
        });
    const double scale = static_cast<double>(events()) / static_cast<double>(chosen.size());
    sums.log_likelihood *= scale;
    sums.gradient *= scale;
    if (second_order) {
      sums.curvature = scale * MatrixXd(sums.curvature.selfadjointView<Eigen::Lower>());
      sums.scatter = scale * MatrixXd(sums.scatter.selfadjointView<Eigen::Lower>());
    }
    return sums;
  }

  /// How much information the rows hold beside what the likelihood takes them for.
  void scale_likelihood(const Sums& sums) {
    MatrixXd curvature = sums.curvature;
    curvature.diagonal().array() += 1e-9 * curvature.diagonal().maxCoeff() + 1e-12;
    const double trace = curvature.llt().solve(sums.scatter).trace();
    const double scale = static_cast<double>(model_.size()) / std::max(trace, 1e-12);
    likelihood_scale_ = std::clamp(scale, 0.2, 5.0);
  }

  struct Posterior {
    VectorXd mean;
    MatrixXd covariance;
    double evidence = 0.0;  // log, up to a constant
  };

  /// Of the quadratic form κ (target·β − β·C β/2) with the precisions.
  Posterior posterior(const VectorXd& target, const VectorXd& precision) const {
    MatrixXd inverse = likelihood_scale_ * curvature_;
    inverse.diagonal() += precision;
    const Eigen::LLT<MatrixXd> llt(inverse);
    Posterior out;
    out.mean = llt.solve(target);
    out.covariance = llt.solve(MatrixXd::Identity(inverse.rows(), inverse.cols()));
    out.evidence = 0.5 * target.dot(out.mean) + 0.5 * precision.array().log().sum() -
                   llt.matrixLLT().diagonal().array().log().sum();
    return out;
  }

  /// MacKay's updates of the precisions of the groups that are not switched off.
  Posterior raise_evidence(const VectorXd& target, VectorXd& precision,
                           const std::vector<bool>& off) const {
    auto current = posterior(target, precision);
    for (int step = 0; step < 50; ++step) {
      double change = 0.0;
      for (std::size_t g = 0; g < groups_.size(); ++g) {
        if (off[g]) continue;
        double determined = 0.0, squares = 0.0;
        for (const auto m : groups_[g]) {
          determined += 1.0 - precision[m] * current.covariance(m, m);
          squares += current.mean[m] * current.mean[m];
        }
        const double updated =
            std::clamp(determined / std::max(squares, 1e-300), least_precision, most_precision);
        change = std::max(change, std::abs(std::log(updated / precision[groups_[g][0]])));
        for (const auto m : groups_[g]) precision[m] = updated;
      }
      current = posterior(target, precision);
      if (change < 1e-2) break;
    }
    return current;
  }

  /// The maximum of the quadratic form at β with the precisions of the greatest evidence, without
  /// the groups that raise it by less than `least_gain`: they would mostly follow noise.
  VectorXd solve(const VectorXd& beta, const VectorXd& gradient) {
    const VectorXd target = likelihood_scale_ * (gradient + curvature_ * beta);
    std::vector<bool> off(groups_.size(), false);
    VectorXd precision = precision_.cwiseMin(1e4);
    auto current = raise_evidence(target, precision, off);
    for (std::size_t turn = 0; turn < groups_.size(); ++turn) {
      double least = least_gain;
      std::size_t weakest = groups_.size();
      for (std::size_t g = 0; g < groups_.size(); ++g) {
        if (off[g]) continue;
        VectorXd without = precision;
        for (const auto m : groups_[g]) without[m] = most_precision;
        const double gain = current.evidence - posterior(target, without).evidence;
        if (gain < least) {
          least = gain;
          weakest = g;
        }
      }
      if (weakest == groups_.size()) break;
      off[weakest] = true;
      for (const auto m : groups_[weakest]) precision[m] = most_precision;
      current = raise_evidence(target, precision, off);
    }
    precision_ = precision;
    covariance_ = current.covariance;
    return current.mean;
  }

  double objective(const Sums& sums, const VectorXd& beta) const {
    return likelihood_scale_ * sums.log_likelihood - 0.5 * precision_.dot(beta.cwiseProduct(beta));
  }

  /// Goes from β towards `next`, half as far until the objective is no lower; stays where it
  /// always is: a full step may lead to where all rows are saturated, and from there anywhere.
  Sums walk(const VectorXd& beta, VectorXd& next, const Sums& here,
            const std::vector<std::uint32_t>& chosen, bool second_order) const {
    const double before = objective(here, beta);
    for (int half = 0; half < 30; ++half) {
      auto sums = accumulate(next, chosen, second_order);
      if (objective(sums, next) >= before - 1e-9 * std::abs(before)) return sums;
      next = 0.5 * (next + beta);
    }
    next = beta;
    return here;
  }

  VectorXd improve(VectorXd beta, const std::vector<std::uint32_t>& chosen, int steps) {
    const bool whole = &chosen != &subset_;  // the curvature is then that of the subset already
    auto sums = accumulate(beta, chosen, !whole);
    for (int step = 0; step < steps; ++step) {
      if (!whole) {
        curvature_ = sums.curvature;
        if (step > 0) scale_likelihood(sums);
      }
      VectorXd next = solve(beta, sums.gradient);
      sums = walk(beta, next, sums, chosen, !whole);
      const VectorXd change = next - beta;
      beta = next;
      const double moved =
          change.cwiseAbs().cwiseQuotient(covariance_.diagonal().cwiseSqrt()).maxCoeff();
      if (step >= (whole ? 1 : 2) && moved < 0.02) break;
    }
    return beta;
  }

  void store(const VectorXd& beta) {
    const std::size_t size = model_.size();
    model_.coefficients.assign(beta.begin(), beta.end());
    model_.covariance = Matrix(size, size);
    model_.complexity = 0.0;
    for (std::size_t m = 0; m < size; ++m) {
      model_.complexity += 1.0 - precision_[index(m)] * covariance_(index(m), index(m));
      for (std::size_t n = 0; n < size; ++n)
        model_.covariance(m, n) = covariance_(index(m), index(n));
    }
  }

  Model& model_;
  const Rows& rows_;
  std::vector<std::size_t> first_row_;  // of each event, and the end
  double side_scale_[2] = {1.0, 1.0};
  double offset_ = 0.0;                            // log of numerator over denominator
  std::vector<std::uint32_t> subset_;              // of the events, for the curvature
  std::vector<std::vector<Eigen::Index>> groups_;  // of coefficients with one precision
  VectorXd precision_;
  MatrixXd curvature_, covariance_;
  double likelihood_scale_ = 1.0;
};

namespace {

/// Points that fill the ranges: the corners of few parameters, and random ones.
std::vector<std::vector<double>> places(const std::vector<double>& low,
                                        const std::vector<double>& high) {
  std::vector<std::vector<double>> out;
  const std::size_t p = low.size();
  if (p <= 8)
    for (std::size_t corner = 0; corner < (std::size_t{1} << p); ++corner) {
      out.emplace_back(p);
      for (std::size_t i = 0; i < p; ++i) out.back()[i] = (corner >> i) % 2 == 0 ? low[i] : high[i];
    }
  RandomStream random(0, "calibration/smooth-across/places");
  for (int k = 0; k < 300; ++k) {
    out.emplace_back(p);
    for (std::size_t i = 0; i < p; ++i)
      out.back()[i] = low[i] + (high[i] - low[i]) * random.uniform();
  }
  return out;
}

}  // namespace

SmoothAcross::SmoothAcross(ParameterSpace parameters, Config config)
    : parameters_(std::move(parameters)), config_(config) {
  check_at_least("SmoothAcross", "number of parameters", parameters_.size(), 1);
  if (config_.offset_degree == 0) config_.offset_degree = default_degree(parameters_.size());
  const auto check = [](const char* name, std::size_t value, std::size_t most) {
    if (value > most)
      fail_argument("SmoothAcross", name, fmt::format("{}", value),
                    fmt::format("at most {}", most));
  };
  check("offset_degree", config_.offset_degree, most_degree);
  check("slope_degree", config_.slope_degree, config_.offset_degree);
  check("bend_degree", config_.bend_degree, config_.slope_degree);
  check("knots", config_.knots, most_knots_across);
  if (config_.knots == 1 || config_.knots == 2)
    fail_argument("SmoothAcross", "knots", fmt::format("{}", config_.knots), "0 or at least 3");
  const double extrapolation[] = {config_.extrapolation};
  check_finite("SmoothAcross", "extrapolation", config_.extrapolation);
  check_non_negative("SmoothAcross", "extrapolation", extrapolation);
}

void SmoothAcross::fit(const Rows& rows) {
  const char* function = "SmoothAcross::fit";
  const std::size_t count = rows.logits.size();
  check_at_least(function, "number of parameters", parameters_.size(), 1);
  check_at_least(function, "number of rows", count, 1);
  check_same_size(function, "points", rows.points.rows(), count, "one for each logit");
  check_same_size(function, "a point", rows.points.cols(), parameters_.size(),
                  "one for each parameter");
  check_same_size(function, "denominator", rows.denominator.size(), count, "one for each logit");
  check_finite(function, "logits", rows.logits);
  for (std::size_t i = 0; i < count; ++i) check_finite(function, "a point", rows.points.row(i));
  if (!rows.weights.empty()) {
    check_same_size(function, "weights", rows.weights.size(), count, "one for each logit");
    check_finite(function, "weights", rows.weights);
    check_non_negative(function, "weights", rows.weights);
  }
  if (!rows.events.empty())
    check_same_size(function, "events", rows.events.size(), count, "one for each logit");

  auto made = std::make_shared<Model>();
  for (const auto& parameter : parameters_) {
    made->range_low.push_back(parameter.low);
    made->range_high.push_back(parameter.high);
  }
  made->degrees[0] = config_.offset_degree;
  made->degrees[1] = config_.slope_degree;
  made->degrees[2] = config_.bend_degree;
  made->extrapolation = config_.extrapolation;
  made->knots.resize(std::max<std::size_t>(config_.knots, 2));
  std::vector<double> logits(rows.logits.begin(), rows.logits.end());
  for (double& z : logits)
    z = std::clamp(z, -calibration::largest_logit, calibration::largest_logit);
  const auto [low, high] = std::minmax_element(logits.begin(), logits.end());
  made->low = *low;
  made->high = *high;
  made->make_shapes(std::move(logits));
  made->prepare();
  Model::Fitter fitter(*made, rows);
  fitter.run();
  const double shrink = made->falling_share();
  if (shrink < 1.0) {
    for (std::size_t m = made->first_term[1]; m < made->size(); ++m)
      made->coefficients[m] *= shrink;
    made->shrinkage = shrink;
    fitter.refit_offsets();
    fitter.keep_if_likelier();
  }
  model_ = std::move(made);
}

/// The largest share of slope and bends with which log r falls with z everywhere.
double SmoothAcross::Model::falling_share() const {
  double steepest = 0.0;  // the largest rise of Σ β q' P, beside the fall by one of −z
  std::vector<double> values(1 + basis.size());
  double along[most_knots_across], q[most_knots_across], slope[most_knots_across];
  for (const auto& point : places(range_low, range_high)) {
    polynomials(point, values.data(), nullptr);
    collect(values.data(), 1, along);
    constexpr int steps = 60;
    for (int i = 0; i <= steps; ++i) {
      // Between the knots; outside the slope stays.
      const double t = knots.empty() ? 0.0
                                     : knots.front() + (knots.back() - knots.front()) *
                                                           static_cast<double>(i) / steps;
      shape(centre + scale * t, q, slope);
      double rise = 0.0;
      for (std::size_t j = 1; j < shapes(); ++j) rise += along[j] * slope[j];
      steepest = std::max(steepest, rise);
    }
  }
  return steepest <= 1.0 - least_fall ? 1.0 : (1.0 - least_fall) / steepest;
}

const SmoothAcross::Model& SmoothAcross::model(const char* function, const Logits& logits,
                                               std::span<const double> point) const {
  if (!fitted()) throw ArgumentError(fmt::format("{}: not fitted yet", function));
  check_same_size(function, "point", point.size(), model_->parameters(), "one for each parameter");
  check_finite(function, "point", point);
  check_finite(function, "logits", logits.values());
  return *model_;
}

LogRatios SmoothAcross::log_ratios(const Logits& logits, std::span<const double> point) const {
  const auto& m = model("SmoothAcross::log_ratios", logits, point);
  std::vector<double> values(1 + m.basis.size());
  m.polynomials(point, values.data(), nullptr);
  double along[most_knots_across];
  m.collect(values.data(), 1, along);
  LogRatios out(logits.size());
  parallel_blocks(logits.size(), default_block, [&](Block block) {
    double q[most_knots_across], slope[most_knots_across];
    for (std::size_t i = block.begin; i < block.end; ++i) {
      const double z = m.held(logits[i]);
      m.shape(z, q, slope);
      double sum = -z;
      for (std::size_t j = 0; j < m.shapes(); ++j) sum += along[j] * q[j];
      out[i] = sum;
    }
  });
  return out;
}

CalibrationAcross::Derivatives SmoothAcross::derivatives(const Logits& logits,
                                                         std::span<const double> point) const {
  const auto& m = model("SmoothAcross::derivatives", logits, point);
  const std::size_t p = m.parameters();
  std::vector<double> values(1 + m.basis.size()), slopes(values.size() * p);
  m.polynomials(point, values.data(), slopes.data());
  std::vector<double> along((1 + p) * most_knots_across);
  m.collect(values.data(), 1, along.data());
  for (std::size_t a = 0; a < p; ++a)
    m.collect(slopes.data() + a, p, along.data() + (1 + a) * most_knots_across);
  Derivatives out{LogRatios(logits.size()), std::vector<double>(logits.size()),
                  Matrix(logits.size(), p)};
  parallel_blocks(logits.size(), default_block, [&](Block block) {
    double q[most_knots_across], slope[most_knots_across];
    for (std::size_t i = block.begin; i < block.end; ++i) {
      const double z = m.held(logits[i]);
      m.shape(z, q, slope);
      double sum = -z, by_logit = -1.0;
      for (std::size_t j = 0; j < m.shapes(); ++j) {
        sum += along[j] * q[j];
        by_logit += along[j] * slope[j];
      }
      out.value[i] = sum;
      out.by_logit[i] = z == logits[i] ? by_logit : 0.0;
      for (std::size_t a = 0; a < p; ++a) {
        double by_point = 0.0;
        for (std::size_t j = 0; j < m.shapes(); ++j)
          by_point += along[(1 + a) * most_knots_across + j] * q[j];
        out.by_point(i, a) = by_point;
      }
    }
  });
  return out;
}

std::size_t SmoothAcross::count_outside(const Logits& logits, std::span<const double> point) const {
  const auto& m = model("SmoothAcross::count_outside", logits, point);
  return static_cast<std::size_t>(std::count_if(logits.begin(), logits.end(),
                                                [&](double z) { return z < m.low || z > m.high; }));
}

std::vector<double> SmoothAcross::errors(const Logits& logits,
                                         std::span<const double> point) const {
  const auto& m = model("SmoothAcross::errors", logits, point);
  std::vector<double> values(1 + m.basis.size()), out(logits.size());
  m.polynomials(point, values.data(), nullptr);
  // The covariance of Σ_k β_jk P_k between the q_j.
  Matrix between(m.shapes(), m.shapes());
  for (std::size_t j = 0; j < m.shapes(); ++j)
    for (std::size_t l = 0; l < m.shapes(); ++l)
      for (std::size_t k = 0; k < m.terms[j]; ++k)
        for (std::size_t n = 0; n < m.terms[l]; ++n)
          between(j, l) +=
              values[k] * values[n] * m.covariance(m.first_term[j] + k, m.first_term[l] + n);
  double q[most_knots_across], slope[most_knots_across];
  for (std::size_t i = 0; i < out.size(); ++i) {
    m.shape(m.held(logits[i]), q, slope);
    double variance = 0.0;
    for (std::size_t j = 0; j < m.shapes(); ++j)
      for (std::size_t l = 0; l < m.shapes(); ++l) variance += q[j] * q[l] * between(j, l);
    out[i] = std::sqrt(std::max(variance, 0.0));
  }
  return out;
}

Matrix SmoothAcross::gradient_covariance(const Logits& logits, std::span<const double> point,
                                         MatrixView logit_gradients,
                                         std::span<const double> weights) const {
  const char* function = "SmoothAcross::gradient_covariance";
  const auto& m = model(function, logits, point);
  const std::size_t p = m.parameters();
  check_same_size(function, "logit_gradients", logit_gradients.rows(), logits.size(),
                  "one for each logit");
  check_same_size(function, "a row of logit_gradients", logit_gradients.cols(), p,
                  "one for each parameter");
  if (!weights.empty())
    check_same_size(function, "weights", weights.size(), logits.size(), "one for each logit");
  std::vector<double> values(1 + m.basis.size()), slopes(values.size() * p);
  m.polynomials(point, values.data(), slopes.data());
  // Σ_i u_i q_j and, for each parameter, Σ_i u_i q_j' ∂z_i/∂θ_p.
  std::vector<double> sum(m.shapes(), 0.0);
  Matrix moved(p, m.shapes());
  double q[most_knots_across], slope[most_knots_across];
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double z = m.held(logits[i]), u = weights.empty() ? 1.0 : weights[i];
    m.shape(z, q, slope);
    for (std::size_t j = 0; j < m.shapes(); ++j) {
      sum[j] += u * q[j];
      if (z == logits[i])
        for (std::size_t a = 0; a < p; ++a) moved(a, j) += u * slope[j] * logit_gradients(i, a);
    }
  }
  MatrixXd by_coefficient(index(p), index(m.size()));
  for (std::size_t j = 0; j < m.shapes(); ++j)
    for (std::size_t k = 0; k < m.terms[j]; ++k)
      for (std::size_t a = 0; a < p; ++a)
        by_coefficient(index(a), index(m.first_term[j] + k)) =
            values[k] * moved(a, j) + slopes[k * p + a] * sum[j];
  const Eigen::Map<const MatrixXd> covariance(m.covariance.data(), index(m.size()),
                                              index(m.size()));
  const MatrixXd result = by_coefficient * covariance * by_coefficient.transpose();
  Matrix out(p, p);
  for (std::size_t a = 0; a < p; ++a)
    for (std::size_t b = 0; b < p; ++b) out(a, b) = result(index(a), index(b));
  return out;
}

double SmoothAcross::complexity() const { return fitted() ? model_->complexity : 0.0; }
std::size_t SmoothAcross::coefficients() const { return fitted() ? model_->size() : 0; }
double SmoothAcross::shrinkage() const { return fitted() ? model_->shrinkage : 1.0; }

void SmoothAcross::save(Archive& archive) const {
  if (!fitted()) throw ArgumentError("SmoothAcross::save: not fitted yet");
  const auto& m = *model_;
  archive.set("range_low", m.range_low);
  archive.set("range_high", m.range_high);
  archive.set("degrees", std::vector<std::int64_t>(std::begin(m.degrees), std::end(m.degrees)));
  archive.set("extrapolation", m.extrapolation);
  archive.set("scores", std::vector<double>{m.low, m.high, m.centre, m.scale});
  archive.set("knots", m.knots);
  archive.set("transform", m.transform);
  archive.set("coefficients", m.coefficients);
  archive.set("covariance", m.covariance);
  archive.set("complexity", m.complexity);
  archive.set("shrinkage", m.shrinkage);
}

void SmoothAcross::load(const Archive& archive) {
  auto made = std::make_shared<Model>();
  made->range_low = archive.numbers("range_low");
  made->range_high = archive.numbers("range_high");
  const auto& degrees = archive.get<std::vector<std::int64_t>>("degrees");
  made->extrapolation = archive.number("extrapolation");
  const auto& scores = archive.numbers("scores");
  made->knots = archive.numbers("knots");
  made->transform = archive.get<Matrix>("transform");
  made->coefficients = archive.numbers("coefficients");
  made->covariance = archive.get<Matrix>("covariance");
  made->complexity = archive.number("complexity");
  made->shrinkage = archive.number("shrinkage");
  const std::size_t shapes = made->transform.rows();
  const auto fits = [&] {
    if (made->range_low.empty() || made->range_low.size() != made->range_high.size()) return false;
    if (degrees.size() != 3 || scores.size() != 4 || shapes == 0 || shapes > most_knots_across)
      return false;
    for (const auto degree : degrees)
      if (degree < 0 || degree > static_cast<std::int64_t>(most_degree)) return false;
    if (degrees[0] < 1 || degrees[1] > degrees[0] || degrees[2] > degrees[1]) return false;
    return made->transform.cols() == shapes && made->knots.size() == (shapes > 2 ? shapes : 0) &&
           scores[3] > 0.0;
  };
  if (!fits()) throw FileError("smooth calibration: its entries do not belong together");
  std::copy(degrees.begin(), degrees.end(), made->degrees);
  made->low = scores[0];
  made->high = scores[1];
  made->centre = scores[2];
  made->scale = scores[3];
  made->prepare();
  if (made->coefficients.size() != made->size() || made->covariance.rows() != made->size() ||
      made->covariance.cols() != made->size())
    throw FileError("smooth calibration: its entries do not belong together");
  model_ = std::move(made);
}

}  // namespace neyman
