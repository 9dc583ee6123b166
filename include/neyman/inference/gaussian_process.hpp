#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "neyman/core/archive.hpp"
#include "neyman/core/matrix.hpp"
#include "neyman/core/parameters.hpp"

namespace neyman {

/// Regression of a function over a box with a Gaussian process,
///
///   y_i = h(x_i)ᵀβ + f(x_i) + e_i,   f ~ GP(0, k),   e_i ~ N(0, σ² + v_i),
///
/// where h is a polynomial (the mean), the coefficients β have a wide normal prior, σ is a noise
/// that is estimated and v_i are known variances. With r² = Σ_d ((x_d − x'_d)/ℓ_d)², the kernel is
///
///   squared exponential  a² exp(−r²/2)
///   Matérn 5/2           a² (1 + √5 r + 5r²/3) exp(−√5 r).
///
/// The hyperparameters (ℓ_d, a, σ) maximise the marginal likelihood, with β integrated out, times
/// wide log-normal priors (lengths of about half the box, amplitude of about the residuals, small
/// noise) that keep it finite and sensible with a handful of points. Rasmussen and Williams,
/// Gaussian Processes for Machine Learning (2006), chapters 2 and 5.
///
/// Known weaknesses: one length for each input over the whole box, so that a function that is
/// rough in one corner is thought rough everywhere; memory and time of an observation set grow
/// as n² and n³ (a second or so for 3000 points).
class GaussianProcess {
 public:
  enum class Kernel { squared_exponential, matern52 };
  enum class Mean { constant, linear, quadratic };

  struct Config {
    Kernel kernel = Kernel::matern52;
    /// The polynomial h. With fewer than (its terms + dimensions + 1) observations, the next
    /// lower degree is taken: see `mean_used`.
    Mean mean = Mean::constant;
    /// σ, in the unit of y. Absent: estimated. 0: the observations are interpolated.
    std::optional<double> noise;
    /// Standard deviation of the prior of β (for inputs scaled to [−1, 1]; its centre is the mean
    /// of y), in standard deviations of y.
    double mean_scale = 100.0;
    std::size_t starts = 4;           ///< of the search for hyperparameters
    std::size_t evaluations = 100;    ///< of the marginal likelihood, at most, from each start
    std::size_t search_points = 500;  ///< with more observations, the search uses so many of them
    std::uint64_t seed = 0;

    bool operator==(const Config&) const = default;
  };

  /// In the units of x and y.
  struct Hyperparameters {
    std::vector<double> lengths;  ///< ℓ, one a dimension
    double amplitude = 1.0;       ///< a
    double noise = 0.0;           ///< σ
    bool operator==(const Hyperparameters&) const = default;
  };

  struct Observations {
    MatrixView x;                            ///< points × dimensions
    std::span<const double> y;               ///< one a point
    std::span<const double> variances = {};  ///< v, known variances; empty: all 0
  };

  /// Of the function h(x)ᵀβ + f(x), without the noise.
  struct Prediction {
    double mean = 0.0;
    double deviation = 0.0;  ///< standard deviation
  };
  struct Predictions {
    std::vector<double> means, deviations;
  };

  /// What is said of an observation by all the others, with the hyperparameters kept.
  struct LeaveOneOut {
    std::vector<double> residuals;   ///< y_i less its prediction
    std::vector<double> deviations;  ///< standard deviation of that residual, noise included
  };

  GaussianProcess() = default;
  /// `box` scales the inputs: priors and bounds of the lengths are relative to its ranges. Points
  /// outside are allowed.
  /// @throw ArgumentError where the box is empty or a setting is out of its range.
  explicit GaussianProcess(ParameterSpace box) : GaussianProcess(std::move(box), Config{}) {}
  GaussianProcess(ParameterSpace box, Config config);

  const Config& config() const { return config_; }
  const ParameterSpace& box() const { return box_; }

  /// Finds the hyperparameters and conditions on the observations. The first start is where the
  /// last `fit` ended, or the priors' centre.
  /// @throw ArgumentError without observations, on sizes that disagree, on values that are not
  /// finite, or on negative variances.
  void fit(const Observations& observations);
  /// Conditions on the observations with hyperparameters that are given.
  /// @throw ArgumentError as `fit`, and unless lengths and amplitude are positive and the noise
  /// is not negative.
  void condition(const Observations& observations, const Hyperparameters& hyperparameters);

  bool fitted() const { return state_ != nullptr; }
  std::size_t observations() const;
  const Hyperparameters& hyperparameters() const;
  Mean mean_used() const;

  /// log p(y | hyperparameters) of the observations, β integrated out; and its derivatives with
  /// respect to log ℓ_1 … log ℓ_D, log a, log σ where `gradient` is not empty.
  double log_marginal_likelihood(const Hyperparameters& hyperparameters,
                                 std::span<double> gradient = {}) const;
  double log_marginal_likelihood() const;

  /// The posterior at one point and, where the spans are not empty, the derivatives of its mean
  /// and of its standard deviation with respect to x (zero where the deviation is zero).
  /// @throw ArgumentError before `fit`, or where the point is not finite or of another size.
  Prediction predict(std::span<const double> point, std::span<double> mean_gradient = {},
                     std::span<double> deviation_gradient = {}) const;
  Predictions predict(MatrixView points) const;
  LeaveOneOut leave_one_out() const;

  /// Observations, settings and hyperparameters; `load` restores the same predictions.
  void save(Archive& archive) const;
  void load(const Archive& archive);

 private:
  struct State;
  const State& state(const char* function) const;

  ParameterSpace box_;
  Config config_;
  std::shared_ptr<const State> state_;
};

std::string to_string(GaussianProcess::Kernel kernel);
std::string to_string(GaussianProcess::Mean mean);

}  // namespace neyman
