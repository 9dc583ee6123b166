#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "neyman/core/matrix.hpp"
#include "neyman/core/parameters.hpp"
#include "neyman/core/random.hpp"
#include "neyman/inference/constraint.hpp"
#include "neyman/inference/likelihood.hpp"
#include "neyman/measurements/unbinned_channel.hpp"
#include "neyman/measurements/workspace.hpp"

namespace neyman {

namespace detail {
struct CompiledModel;
}

/// What was observed, or could have been: the counts of every bin of every channel, in their order,
/// the auxiliary observation of every constraint, and the events of every unbinned channel.
struct MeasurementData {
  std::vector<double> counts = {};
  std::vector<double> auxiliary = {};
  std::vector<std::shared_ptr<const UnbinnedEvents>> events = {};
};

/// Where a bin of the data is.
struct BinName {
  std::string channel;
  std::size_t bin = 0;
};

/// The probability of data given parameters, p(n, a | θ) = Π_b Poisson(n_b | ν_b(θ)) Π_k p(a_k |
/// θ), where ν_b is the sum over the samples of a channel of (yield + Σ shifts) × Π factors, as
/// their modifiers say, times the extended likelihood of every unbinned channel
/// (unbinned_channel.hpp). Cheap to copy; may be used from several threads.
///
/// A parameter of one bin is called "name[bin]". One that is fixed is a parameter too, which fits
/// leave where it starts.
class StatisticalModel {
 public:
  /// The measurement of this name, or the first. Everything is checked here, before any fit.
  /// @throw ArgumentError that names channel, sample and modifier where
  ///   - a channel, sample or modifier occurs twice, or there are none;
  ///   - lists have not one value a bin, or a number is not finite or negative where it may not be;
  ///   - a variation (low or high) has no events where the sample has some, or a factor is not
  ///     positive;
  ///   - the total yield of a bin is negative at the start values, or with one
  ///     constrained parameter moved by one standard deviation;
  ///   - names are shared by modifiers that do not go together, or a luminosity has no uncertainty;
  ///   - settings (a constraint, a range, …) are for a parameter that no modifier has, or have the
  ///     wrong number of values;
  ///   - the parameter of interest is not one.
  explicit StatisticalModel(const Workspace& workspace, std::string_view measurement = {});
  /// The same with channels without bins, which share parameters with the others by name. The
  /// workspace may be without channels then.
  /// @throw ArgumentError also where a channel has no observed events, or needs simulated ones (for
  ///   shapes) and has none; where matrices have not one row a component or variation and one
  ///   column an event; where a number is not finite, a simulated weight negative, the total yield
  ///   negative at the start, or the density of an event not positive there.
  StatisticalModel(const Workspace& workspace, const std::vector<UnbinnedChannel>& unbinned,
                   std::string_view measurement = {});

  /// Names and ranges. All but the parameter of interest are nuisance parameters.
  const ParameterSpace& parameters() const;
  std::size_t size() const { return parameters().size(); }
  /// The index of the parameter of interest. @throw ArgumentError where there is none.
  std::size_t interest() const;
  const std::vector<double>& start() const;
  const std::vector<bool>& fixed() const;
  /// The constraints with the auxiliary observations of the measurement.
  const std::vector<Constraint>& constraints() const;
  /// The constraint of a parameter; its index among them.
  std::optional<std::size_t> constraint_of(std::size_t parameter) const;
  /// What was observed.
  const MeasurementData& observed() const;

  std::size_t bins() const;
  BinName bin_name(std::size_t bin) const;
  std::vector<std::string> sample_names() const;
  /// ν_b(θ), by bin.
  std::vector<double> expected(std::span<const double> point) const;
  /// The part of each sample in it: samples × bins, zero where a channel does not have the sample.
  Matrix expected_by_sample(std::span<const double> point) const;
  std::size_t unbinned_channels() const;
  /// ν(θ) of each unbinned channel.
  std::vector<double> expected_events(std::span<const double> point) const;
  /// The Asimov data set of a point: each count and auxiliary observation at its expectation, so
  /// that the best fit is this point. In unbinned channels, the simulated events with weights
  /// λ(x; θ); the best fit is the point where the channel normalises its ratios.
  /// @throw ArgumentError where an unbinned channel has no simulated events, or their density is
  ///   negative at the point.
  MeasurementData asimov(std::span<const double> point) const;
  /// Data drawn at a point: counts, then auxiliary observations, then events, which are drawn with
  /// replacement from the simulated ones.
  MeasurementData sampled(std::span<const double> point, RandomStream& random) const;

  /// @throw ArgumentError unless there is one count a bin and one auxiliary observation a
  ///   constraint, finite and not negative where they may not be.
  void check_data(std::string_view function, const MeasurementData& data) const;

  const detail::CompiledModel& compiled() const { return *compiled_; }

 private:
  std::shared_ptr<const detail::CompiledModel> compiled_;
};

/// ℓ(θ) = log p(n, a | θ), relative to its largest value for any ν and any constraint:
/// Σ_b [n_b log(ν_b / n_b) − (ν_b − n_b)] + Σ_k log c_k(θ). So −2 ℓ(θ̂) is the χ² of the saturated
/// model. Forbidden where the total yield of a bin is negative, or zero where something was
/// counted.
///
/// With exact gradients: everything in inference that takes a likelihood (scans, contours, …)
/// takes this one. Fits of measurements (model_fit.hpp) are faster and use second derivatives.
class ModelLikelihood final : public Likelihood {
 public:
  ModelLikelihood(StatisticalModel model, MeasurementData data);

  const ParameterSpace& parameters() const override { return model_.parameters(); }
  /// The counts together.
  std::size_t events() const override;
  double operator()(std::span<const double> point, std::span<double> gradient = {}) const override;
  /// −∂²ℓ/∂θ∂θ', the observed information.
  Matrix information(std::span<const double> point) const;

 private:
  StatisticalModel model_;
  MeasurementData data_;
};

}  // namespace neyman
