#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measurements/evaluation_order.hpp"
#include "measurements/interpolation.hpp"
#include "neyman/measurements/unbinned_channel.hpp"

namespace neyman::detail {

/// A compiled Coefficient.
struct PolynomialTerm {
  double value = 1.0;
  std::vector<std::pair<std::size_t, double>> powers;  // place in the component's `local`, power
};

struct CompiledComponent {
  struct Factor {
    std::size_t place = 0;  // in `local`
    std::optional<FactorInterpolation> interpolation = {};
  };
  struct Shape {
    std::size_t place = 0;
    std::size_t row = 0;  // of log_low and log_high
  };
  std::string name;
  double yield = 0.0;
  std::vector<Factor> factors;
  std::vector<PolynomialTerm> polynomial;
  std::vector<Shape> shapes;
  std::vector<std::size_t> local;         // the parameters that it depends on, each once
  std::vector<std::size_t> slots;         // of these in the channel's `shared`
  double normalisation = 1.0;             // what the ratios are divided by
  std::vector<double> simulated_weights;  // w_j r_cj / Z of the simulated events, with sum 1
};

struct CompiledUnbinned {
  std::string name;
  std::vector<CompiledComponent> components;
  std::vector<std::size_t> shared;  // parameters of all components, each once
  std::shared_ptr<const UnbinnedEvents> simulated;
};

/// The part of one unbinned channel in −ℓ, with derivatives. Events go through in blocks, so that
/// the memory does not grow with their number.
class UnbinnedTerms {
 public:
  UnbinnedTerms(const CompiledUnbinned& channel, std::size_t parameters);

  /// Adds to gradient and hessian (lower triangle, row-major) as the order asks. Infinity where the
  /// density of an event is not positive.
  /// Relative to a Poisson count of N events: ν − N − Σ_i w_i log(λ_i / N).
  double add(std::span<const double> point, const UnbinnedEvents& events, EvaluationOrder order,
             std::span<double> gradient, std::span<double> hessian);
  /// ν(θ).
  double expected(std::span<const double> point);
  /// λ(x_i; θ) = Σ_c ν_c r_c of each event.
  void densities(std::span<const double> point, const UnbinnedEvents& events,
                 std::span<double> out);

 private:
  /// A positive or negative number with its derivatives relative to it: f_p / f and f_pq / f.
  struct Relative {
    double value = 1.0;
    std::vector<double> first, second;  // local, local × local
    void reset(std::size_t size);
    void multiply(std::span<const double> other_first, std::span<const double> other_second);
  };
  struct Component {
    Relative yield, scale;  // ν_c, and ν_c / Z_c
    std::vector<ShiftInterpolation> shifts;
    double sum = 0.0;  // Σ q, Σ q e and Σ q e² over events, where q = −w ν_c r_c / λ
    std::vector<double> sum_first, sum_second;
  };
  static constexpr std::size_t block_size = 256;

  void prepare(std::span<const double> point, EvaluationOrder order);
  void set_yield(const CompiledComponent& component, Component& out, std::span<const double> point);
  void normalise(const CompiledComponent& component, Component& out, EvaluationOrder order);
  /// Σ_s δ_s of a block of events.
  void set_exponents(const CompiledComponent& component, const Component& at,
                     const UnbinnedEvents& events, std::size_t begin, std::size_t count,
                     double* out) const;
  /// Adds Σ w e and Σ w e² of a block to the component's sums, and keeps the slopes e.
  void add_shape_sums(const CompiledComponent& component, Component& at,
                      const UnbinnedEvents& events, std::size_t begin, std::size_t count,
                      std::size_t first_slope, const double* weights, EvaluationOrder order);
  /// The densities of a block of events, and what each component has in them.
  void fill_block(const UnbinnedEvents& events, std::size_t begin, std::size_t count);
  void add_block(const UnbinnedEvents& events, std::size_t begin, std::size_t count,
                 EvaluationOrder order, std::span<double> gradient, std::span<double> hessian);
  void add_sums(std::span<double> gradient, std::span<double> hessian, EvaluationOrder order);

  const CompiledUnbinned& channel_;
  std::size_t parameters_;
  std::vector<Component> components_;
  std::vector<double> lambda_, curves_, pulls_, parts_, slopes_, jacobian_;  // of a block
  std::vector<double> factor_first_, factor_second_;                         // of one factor, local
};

}  // namespace neyman::detail
