#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "neyman/core/matrix.hpp"

namespace neyman::detail {

/// log Z of a shape with its derivatives.
struct LogNormaliser {
  double value = 0.0;
  std::vector<double> first;   // moving
  std::vector<double> second;  // moving × moving
};

/// A smooth function of some parameters, as log Z(φ) is, as polynomials: products of Chebyshev
/// polynomials over a box, which is cut where higher derivatives jump. Continuous.
///
/// Up to three parameters have one polynomial together. Of more, the function is the sum of what
/// two, or three, of them do together while the others stay at an anchor (the anchored
/// decomposition of Kuo, Sloan, Wasilkowski and Woźniakowski 2010), which is good where more of
/// them hardly act together.
class NormaliserTable {
 public:
  /// One parameter.
  struct Axis {
    double low, high, anchor;
    std::vector<double> breaks;  // ascending; those outside of (low, high) do not matter
  };
  /// The function at many points, one a row.
  using Function = std::function<std::vector<double>(const Matrix& points)>;

  struct Config {
    double aim = 1e-9;           ///< largest difference at the points where it is checked
    double allowed = 1e-6;       ///< a table with a larger one is refused
    std::size_t points = 60000;  ///< at which the function may be asked for
  };

  /// Nothing where no table is as good as allowed.
  static std::optional<NormaliserTable> make(const std::vector<Axis>& axes, const Function& of,
                                             const Config& config);

  bool contains(std::span<const double> point) const;
  /// Value and derivatives at a point of the box.
  void evaluate(std::span<const double> point, LogNormaliser& out) const;
  /// The largest difference that was seen.
  double error() const { return error_; }

 private:
  /// The polynomial of up to three of the parameters, with those that it does not have as
  /// constants.
  struct Part {
    double factor = 1.0;               // in the sum of all parts
    std::vector<std::size_t> members;  // of the axes
    std::vector<std::size_t> degrees;
    std::vector<std::size_t> cells;    // by member
    std::vector<double> coefficients;  // cells × tensor, both row-major
  };
  void fill(Part& part, const Function& of) const;
  void add(const Part& part, std::span<const double> point, LogNormaliser& out) const;
  std::size_t degree_of(std::size_t axis, const Function& of, double aim) const;
  double largest_difference(const std::vector<Part>& parts, double constant, const Matrix& points,
                            const std::vector<double>& exact) const;
  std::size_t lay_out(std::size_t together, const std::vector<std::size_t>& degrees,
                      double at_anchor);

  std::vector<Axis> axes_;
  std::vector<std::vector<double>> edges_;
  double constant_ = 0.0;
  std::vector<Part> parts_;
  double error_ = 0.0;
};

}  // namespace neyman::detail
