#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
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

/// A smooth function of some parameters, as log Z(φ) is, as polynomials over the cells of a grid
/// (products of Chebyshev polynomials, continuous at their faces). Cells are as small as one
/// parameter needs where the others are at an anchor, and end where higher derivatives jump. A cell
/// is filled when it is first asked for, and compared with the function between its nodes: one that
/// is not good enough gives no answers. Fits see few cells.
///
/// Up to four parameters have cells together. Of more, the function is the sum of what two of them
/// do together while the others stay at the anchor (the anchored decomposition of Kuo, Sloan,
/// Wasilkowski and Woźniakowski 2010), which is good where three of them hardly act together.
///
/// The same values whoever asks first; may be used from several threads.
class NormaliserTable {
 public:
  /// One parameter.
  struct Axis {
    double low, high, anchor;
    std::vector<double> breaks;  // ascending; those outside of (low, high) do not matter
  };
  /// The function at many points, one a row; asked from several threads.
  using Function = std::function<std::vector<double>(const Matrix& points)>;

  struct Config {
    double aim = 1e-8;      ///< difference to the function along each axis
    double allowed = 1e-6;  ///< cells with a larger one are not used
  };

  /// Null where the table is not as good as allowed near the anchor.
  static std::shared_ptr<const NormaliserTable> make(const std::vector<Axis>& axes, Function of,
                                                     const Config& config);

  NormaliserTable(const NormaliserTable&) = delete;
  NormaliserTable& operator=(const NormaliserTable&) = delete;
  ~NormaliserTable();

  /// Value and derivatives; false outside of the box, and in cells that are not good enough.
  bool evaluate(std::span<const double> point, LogNormaliser& out) const;

 private:
  struct Cell {
    std::vector<double> coefficients;  // a tensor, row-major
    bool good = true;
  };
  /// What some of the parameters do together.
  struct Part {
    double factor = 1.0;               // in the sum of all parts
    std::vector<std::size_t> members;  // of the axes
    std::size_t degree = 0;
    std::unique_ptr<std::atomic<const Cell*>[]> cells;  // row-major
    std::size_t count = 0;
  };
  struct Place;

  NormaliserTable(const std::vector<Axis>& axes, Function of, const Config& config);
  void add_part(double factor, std::vector<std::size_t> members);
  void refine(std::size_t axis);
  double along(std::size_t axis, std::size_t degree) const;
  bool good_near_anchor(double at_anchor) const;
  Place place_of(const Part& part, std::span<const double> point) const;
  const Cell& cell_at(const Part& part, const Place& place) const;
  std::unique_ptr<Cell> fill(const Part& part, const Place& place) const;
  void add(const Part& part, const Place& place, const Cell& cell, LogNormaliser& out) const;

  std::vector<Axis> axes_;
  Function of_;
  Config config_;
  std::vector<std::vector<double>> edges_;
  double constant_ = 0.0;
  std::vector<Part> parts_;
};

}  // namespace neyman::detail
