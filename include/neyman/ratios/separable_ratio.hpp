#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "neyman/core/polynomial_basis.hpp"
#include "neyman/core/progress.hpp"
#include "neyman/core/settings.hpp"
#include "neyman/data/samples.hpp"
#include "neyman/ratios/parameterized_ratio.hpp"
#include "neyman/simulators/design.hpp"

namespace neyman {

namespace across {
class FeatureRanges;
class PeriodicColumns;
class Recentring;
}  // namespace across

/// A parameterised ratio whose logarithm is a sum of products of functions of x and of θ,
///
///   log r(x; θ, θ1) = h(x, θ) − c(θ) − h(x, θ1) + c(θ1),   h(x, θ) = Σ_k f_k(x) P_k(θ),
///
/// with P_k the polynomials of PolynomialBasis and f_k(x) = Σ_j φ_j(x) A_jk, where the φ_j are the
/// last hidden layer of a network, the inputs themselves, and 1. Once f(x) is summed over a
/// dataset, its likelihood at any θ costs no pass over the events.
///
/// A periodic parameter has harmonics cos kθ and sin kθ in the place of polynomials, and a periodic
/// feature is told by its cosine and sine.
///
/// Of more than 64 features the φ_j are, in the place of the inputs, at most 64 directions among
/// them, which tell most of the P_k(θ) of the training events (partial least squares, de Jong
/// 1993); the network sees all features. Time and memory are then linear in their number.
///
/// The events are drawn at θ ~ π (the design). Four steps, with cross-fitting over folds: each
/// fold's network is trained on the other folds, and all that follows uses the fold itself.
///
/// 1. Training: the classifier tells which θ an event came from, out of all of the design,
///      loss = −h(x_i, θ_i) + log ∫ π(θ) exp h(x_i, θ) dθ,
///    the integral over a randomly shifted lattice of `nodes` points, another for each batch.
///    Compared with telling (x_i, θ_i) from (x_i, one other θ), all θ at once leave a fraction
///    of the noise. Adam trains network and A together, after A's linear part is fitted.
/// 2. Calibration: A is fitted again, to all held-out events at once, by Newton's method on the
///    same loss with normal priors whose widths the marginal likelihood chooses, one for each
///    degree in θ and each kind of φ, so that terms that are not needed vanish (MacKay 1992).
/// 3. Normalisation: c(θ) = log mean_i exp(h(x_i, θ)) / ∫ π exp h(x_i, ·), over the same
///    held-out events, makes exp(h − c) a density at every θ; c is kept as a polynomial in θ.
///
/// 4. Recentring: log r is taken at θ + ε(θ) and θ1 + ε(θ1), with a smooth ε such that the mean
/// score
///    of events at each θ is zero (as for a DensityRatio). Terms that are too weak to be told from
///    noise event by event are held back by step 2, and add up over the events of a dataset.
///
/// The uncertainty from finite simulation is that of steps 2 and 3: the influence of each of some
/// 50 groups of events on A and c, to first order, or the noise of ε where that is larger. What the
/// features φ themselves lose is not in it.
///
/// Where single events tell θ to much less than the ranges (below a hundredth of their volume, as
/// they easily do with many parameters), a lattice has too few nodes in each event's region. That
/// shows while a fold is trained, which is then begun again with ten times as many random θ in the
/// place of the lattice, and the event's own θ_i among them: the loss of telling which of them an
/// event came from, least for the true ratio however few nodes there are (van den Oord et al.
/// 2018). Without step 3, which would divide by a poor integral.
///
/// Weights of both signs: |w| times the mean sign of events at x and θ is what w is expected to be
/// there, so that events with these weights have the same density, and none is negative. With
/// `mean_signs`, which are learned from the same events, steps 1 to 3 weigh the events so, and
/// there is no step 4. The uncertainty is that of the weights w themselves: each mean sign is a
/// mean over events, and what their signs fluctuate by is what it fluctuates by (Newey, The
/// asymptotic variance of semiparametric estimators, 1994).
///
/// Known weaknesses: log r must be near a polynomial of the degree in θ over the ranges for each x;
/// where it is not, a DensityRatio is for it. Of more than 64 features, what is not linear in them
/// is up to the network, which then has inputs that may be correlated.
class SeparableRatio final : public ParameterizedRatio {
 public:
  struct Config {
    std::vector<std::size_t> hidden = {32, 32};  ///< widths; multiples of 16 (rounded up); {}: none
    std::size_t degree = 0;       ///< in θ; 0: 4 for one or two parameters, 3 to four, else 2
    std::size_t nodes = 96;       ///< of the lattice over θ; multiples of 16 (rounded up)
    std::size_t folds = 2;        ///< each event trains in all but one, which it calibrates
    std::size_t epochs = 0;       ///< passes over the data; 0: 10^6 events in all, 2 to 60 passes
    std::size_t batch_size = 0;   ///< rows a step; 0: 1/200 of the events, between 64 and 1024
    double learning_rate = 3e-3;  ///< the highest of a cosine with a short rise
    bool normalise = true;        ///< step 3
    bool recentre = true;         ///< step 4
    std::uint64_t seed = 0;
    std::vector<PeriodicFeature> periodic = {};  ///< angles among the features

    /// Reads the keys of a [classifier] table, which have these fields' names.
    static Config from(Settings settings);
  };

  /// Trains on events with θ drawn from the design. Only ratios of their weights matter: the events
  /// count as their effective size. Each fold is one of the `tasks` where others share them.
  /// Weights may be negative where there are `mean_signs`, one an event, of which only ratios
  /// matter.
  /// @throw ArgumentError where the events have no θ, sizes disagree, a value is not finite, a
  ///   weight is negative without mean signs, one of these or the sum of the weights is not
  ///   positive, there are fewer than 20 events a fold, or the design is one point.
  SeparableRatio(const Samples& events, const Design& design, const Config& config,
                 Progress* progress = nullptr, Tasks* tasks = nullptr,
                 std::span<const double> mean_signs = {});
  /// What `save` wrote.
  SeparableRatio(const Archive& archive, ParameterSpace parameters);
  ~SeparableRatio() override;

  std::string kind() const override { return "separable"; }
  std::size_t features() const override;
  LogRatios log_ratios(MatrixView x, std::span<const double> numerator,
                       std::span<const double> denominator) const override;
  std::unique_ptr<SummedRatio> over(MatrixView x,
                                    std::span<const double> event_weights = {}) const override;
  /// Events with a feature outside the range of the training events.
  std::size_t count_outside(MatrixView x) const override;
  void save(Archive& archive) const override;

  /// For so many events, where the configuration leaves it open.
  static std::size_t default_epochs(std::size_t events);
  /// The polynomials P_k(θ).
  const PolynomialBasis& basis() const { return basis_; }
  /// f_k(x), averaged over the folds, without step 4: one row a polynomial, one column an event.
  /// @throw ArgumentError where x has other columns.
  Matrix functions(MatrixView x) const;
  /// The same as they might be had other events been simulated: replica b has its own normal
  /// fluctuation of the coefficients.
  Matrix functions(MatrixView x, std::uint64_t replica) const;

  /// The effective number of nodes in an event's region, averaged over events. Of a lattice, below
  /// 5 are too few; among random θ, the event's own is one of them.
  double resolution() const;
  /// Whether random θ took the place of the lattice, in any fold.
  bool by_contrast() const;
  /// Whether step 2 found the best coefficients in every fold.
  bool converged() const;
  /// How many of the coefficients the events determine, and how many there are, of all folds.
  double effective_coefficients() const;
  std::size_t coefficients() const;

  struct Fold;

 private:
  Matrix functions_of(MatrixView x, const std::vector<std::vector<double>>& coefficients) const;
  void recentre(const Samples& events, const std::vector<std::vector<std::size_t>>& partition);

  PolynomialBasis basis_, normaliser_;
  std::unique_ptr<across::FeatureRanges> ranges_;
  std::unique_ptr<across::PeriodicColumns> angles_;
  std::unique_ptr<across::Recentring> recentring_;
  std::vector<std::unique_ptr<Fold>> folds_;
};

}  // namespace neyman
