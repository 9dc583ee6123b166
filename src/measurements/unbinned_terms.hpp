#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measurements/component_shape.hpp"
#include "measurements/evaluation_order.hpp"
#include "measurements/interpolation.hpp"
#include "measurements/normaliser_table.hpp"
#include "measurements/unbinned_kernels.hpp"
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
  std::string name;
  double yield = 0.0;
  std::vector<Factor> factors;
  std::vector<PolynomialTerm> polynomial;
  std::optional<YieldFunction> function;
  std::vector<std::size_t> arguments;  // of the function: places in `local`
  ComponentShape shape;
  std::size_t first_row = 0;         // of the events' functions
  std::vector<std::size_t> local;    // the parameters that it depends on, each once
  std::vector<std::size_t> slots;    // of these in the channel's `shared`
  std::vector<std::size_t> moving;   // those of its shape: places in `local`
  std::vector<std::size_t> columns;  // the same: places in the channel's `moving`
  double normalisation = 1.0;        // what the ratios are divided by
  std::shared_ptr<const DirectNormaliser> direct = {};  // where it has a shape
  std::shared_ptr<const TableOnDemand> table = {};
};

struct CompiledUnbinned {
  std::string name;
  std::vector<CompiledComponent> components;
  std::vector<std::size_t> shared;  // parameters of all components, each once
  std::vector<std::size_t> moving;  // those of shapes
  std::size_t functions = 0;        // of all shapes
  std::shared_ptr<const UnbinnedEvents> simulated;
};

/// The part of one unbinned channel in −ℓ, with derivatives. Events go through in blocks, so that
/// the memory does not grow with their number.
class UnbinnedTerms {
 public:
  /// With `tables`, Z comes from tables where there are good ones, for many evaluations; else from
  /// sums over the simulated events.
  UnbinnedTerms(const CompiledUnbinned& channel, std::size_t parameters, bool tables);

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
  /// ν_c r_c of each component and event, into rows of `out`.
  void parts(std::span<const double> point, const UnbinnedEvents& events, Matrix& out);

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
    const TableOnDemand* table = nullptr;
    std::vector<double> point;
    ComponentShape::Values shape;
    LogNormaliser normaliser;
    std::vector<double> moved;        // Σ w u_c e_s, by moving parameter
    std::vector<std::size_t> places;  // of its functions among the channel's
  };

  void prepare(std::span<const double> point, EvaluationOrder order);
  void set_yield(const CompiledComponent& component, Component& out, std::span<const double> point);
  /// The scale from the yield and Z_c(φ).
  void normalise(const CompiledComponent& component, Component& out, std::span<const double> point,
                 EvaluationOrder order);
  /// The events as the kernels take them, at the point that was prepared.
  unbinned::Events view(const UnbinnedEvents& events);
  void add_gradient(std::span<double> gradient) const;
  void add_hessian(std::span<double> hessian);
  /// Of the functions of all shapes or the moving parameters.
  std::size_t directions() const {
    return by_functions_ ? channel_.functions : channel_.moving.size();
  }

  const CompiledUnbinned& channel_;
  std::size_t parameters_;
  // The sums over events of second derivatives run over the functions themselves where these are
  // not more than the moving parameters, else over what these parameters do to the exponents.
  bool by_functions_;
  std::vector<Component> components_;
  std::vector<unbinned::Component> view_;
  std::vector<const double*> rows_;  // of all functions
  std::vector<double> room_;
  std::vector<double> shares_, moments_, own_, gram_;  // sums over events
  std::vector<double> jacobian_, product_;             // (components, then directions) × shared
  std::vector<double> factor_first_, factor_second_;   // of one factor, local
};

}  // namespace neyman::detail
