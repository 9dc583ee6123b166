#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "neyman/core/matrix.hpp"
#include "neyman/core/parameters.hpp"
#include "neyman/measurements/shape.hpp"
#include "neyman/measurements/workspace.hpp"

// A channel without bins: the likelihood of each event, as the ratio of each component's density to
// one reference, learned or exact.
namespace neyman {

/// A polynomial in parameters, Σ_t value_t Π_p θ_p^power: how often a component is there when
/// components interfere, for example μ − √μ, √μ and 1 − √μ. May be negative. No terms: 1.
///
/// Parameters that only coefficients have are free, from 0 to 10, unless the measurement says
/// otherwise. Where a power is not whole, values below 1e-12 count as 1e-12, so that derivatives
/// stay finite.
struct Coefficient {
  struct Term {
    double value = 1.0;
    std::vector<std::pair<std::string, double>> powers = {};

    bool operator==(const Term&) const = default;
  };
  std::vector<Term> terms = {};

  bool operator==(const Coefficient&) const = default;
};

/// Expected events as any smooth function of parameters, with the ranges in which it is defined.
/// Parameters that are `nuisance` are constrained by N(nominal, 1) unless the measurement's
/// settings say otherwise; the others are free. Derivatives are differences, exact for polynomials
/// up to the third degree.
struct YieldFunction {
  ParameterSpace parameters;
  std::vector<double> nominal;
  /// Of one value a parameter; called from several threads at once.
  std::function<double(std::span<const double>)> value;
};

/// What the model knows about some events x_i. Rows run along events.
struct UnbinnedEvents {
  Matrix ratios;  ///< components × events: r_c(x) = p_c(x) / p_ref(x) at nominal parameters
  /// Functions × events: f_k(x), a row for each function of each shape of each component, in their
  /// order.
  Matrix functions = {};
  std::vector<double> weights = {};  ///< one an event, or empty: all 1

  std::size_t size() const { return ratios.cols(); }
};

/// A part of the expected events: ν_c(θ) p_c(x; α), with
/// ν_c = yield × function × coefficient × factors.
///
/// The density moves with the parameters φ of its shapes, of which there may be several:
/// p_c(x; φ) = p_c(x) exp(Σ_k b_k(φ) f_k(x)) / Z_c(φ). It is positive for every φ, and Z_c, the
/// mean of the exponential over the simulated events of the component, keeps it normalised. For the
/// fits of toys Z_c is tabulated, to 1e-6 or better, so that they do not need the simulated events.
struct UnbinnedComponent {
  std::string name;
  double yield = 0.0;                    ///< expected events at nominal parameters
  std::vector<Modifier> modifiers = {};  ///< norm_factor, norm_sys and lumi
  std::vector<ShapePtr> shapes = {};     ///< with different parameters
  Coefficient coefficient = {};
  std::optional<YieldFunction> function = {};
};

/// Σ_i log Σ_c ν_c(θ) r_c(x_i; θ) − Σ_c ν_c(θ). The total density must be positive for every event:
/// points where it is not are forbidden.
struct UnbinnedChannel {
  std::string name;
  std::vector<UnbinnedComponent> components;
  std::shared_ptr<const UnbinnedEvents> observed;
  /// Events of the reference, with weights that are not negative: they normalise the shapes, make
  /// the Asimov data set, and toys are drawn from them. Their number limits all three.
  std::shared_ptr<const UnbinnedEvents> simulated;
  /// Divides the ratios of each component by their mean over the simulated events, which is 1 for
  /// exact ones but for the fluctuation of these events: learned ratios are normalised so, and the
  /// model fits its own toys and Asimov data exactly. False: ratios are taken as they are.
  bool normalise = true;
};

}  // namespace neyman
