#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "measurements/compiled_model.hpp"
#include "measurements/evaluation_order.hpp"

namespace neyman::detail {

/// −ℓ of a model with its first and second derivatives. Has all memory that it needs: an evaluation
/// allocates nothing. One a thread.
class Evaluator {
 public:
  using Order = EvaluationOrder;

  /// `tables`: see UnbinnedTerms.
  explicit Evaluator(const CompiledModel& model, bool tables = false);

  /// −ℓ(θ), infinite where θ is forbidden; gradient and hessian are then not set.
  double operator()(std::span<const double> point, const MeasurementData& data, Order order);
  /// ν_b(θ) into `out`, and the parts of the samples where `parts` (samples × bins) is not null.
  void expected(std::span<const double> point, std::span<double> out, Matrix* parts = nullptr);

  std::span<const double> gradient() const { return gradient_; }
  /// Row-major; only the lower triangle is set.
  const std::vector<double>& hessian() const { return hessian_; }
  /// ν(θ) of each unbinned channel into `out`.
  void expected_events(std::span<const double> point, std::span<double> out);
  /// λ(x; θ) of events of an unbinned channel.
  void densities(std::span<const double> point, std::size_t channel, const UnbinnedEvents& events,
                 std::span<double> out);
  /// The part of each component in it: components × events.
  void parts(std::span<const double> point, std::size_t channel, const UnbinnedEvents& events,
             Matrix& out);
  /// Of the last evaluation that was forbidden: the bin, or no_parameter where a constraint or an
  /// unbinned channel was.
  std::size_t forbidden_bin() const { return forbidden_bin_; }

 private:
  struct Log {  // f'/f and f''/f of a factor
    double first, second;
  };
  /// What a sample expects in each bin, and the factors and shifts that made it.
  void expect(const CompiledChannel& channel, std::span<const double> point);
  double poisson(const CompiledChannel& channel, std::span<const double> counts);
  void add_first(const CompiledChannel& channel, std::span<const double> point);
  void add_products(const CompiledChannel& channel);
  void add_second(const CompiledChannel& channel, std::span<const double> point);
  double constraints(std::span<const double> point, std::span<const double> auxiliary, Order order);
  void add_pair(std::size_t a, std::size_t b, double value);

  const CompiledModel& model_;
  std::size_t size_;
  std::size_t forbidden_bin_ = no_parameter;
  std::vector<double> gradient_, hessian_;
  // Of the channel at hand. `parts` is ν of each sample, `levers` the product of its factors.
  std::vector<double> total_, slope_, curve_;  // ν_b, 1 − n_b / ν_b, n_b / ν_b²
  std::vector<double> parts_, levers_;         // samples × bins
  std::vector<Log> factors_;                   // of all samples, in their order
  std::vector<ShiftInterpolation> shifts_;     // the same
  std::vector<double> jacobian_;               // shared × bins: ∂ν_b/∂θ
  std::vector<double> bin_jacobian_;           // by entry of bin_parameters
  std::vector<UnbinnedTerms> unbinned_;
};

}  // namespace neyman::detail
