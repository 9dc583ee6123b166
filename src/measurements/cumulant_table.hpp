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

/// A smooth function of a few numbers b, as log Z of a shape is of its coefficients (there it is
/// the cumulant generating function of the f_k), as polynomials over the cells of a tree. The
/// numbers are taken in the coordinates β = A b, in which the tree starts with one box. A cell is
/// filled when it is first asked for and compared with the function between its nodes; one that is
/// not good is halved, where its polynomial converges worst.
///
/// Where there are fewer functions than parameters that move them, this has fewer dimensions than
/// NormaliserTable, and the breaks of the b_k do not matter.
///
/// The same values whoever asks first; may be used from several threads.
class CumulantTable {
 public:
  static constexpr std::size_t most_dimensions = 3;

  /// The function at the lattice of points b = centre + Σ_i u_i step_i, each u_i at all `nodes`,
  /// the last one fastest; steps by rows.
  using Lattice =
      std::function<std::vector<double>(std::span<const double> centre, const Matrix& steps,
                                        std::span<const double> nodes, bool rough)>;
  /// The same at some points, one a row. A rough function costs little and is as smooth: cells that
  /// are not good for it are halved at once.
  using Points = std::function<std::vector<double>(const Matrix& points, bool rough)>;

  struct Config {
    double aim = 1e-8;         ///< cells with a larger difference to the function are halved
    double allowed = 1e-6;     ///< of the smallest cells: beyond it they are not used
    std::size_t halvings = 8;  ///< along each dimension, in the mean
    bool rough = false;        ///< whether there is a rough function
  };

  /// β = A b of `coordinates` A (square, invertible), in the box from `low` to `high`.
  CumulantTable(const Matrix& coordinates, std::vector<double> low, std::vector<double> high,
                Lattice lattice, Points points, const Config& config);
  CumulantTable(const CumulantTable&) = delete;
  CumulantTable& operator=(const CumulantTable&) = delete;
  ~CumulantTable();

  struct Jet {
    double value = 0.0;
    std::array<double, most_dimensions> first = {};
    std::array<std::array<double, most_dimensions>, most_dimensions> second = {};
  };
  /// Value and derivatives by b; false outside of the box, and where no cell is good enough.
  bool evaluate(std::span<const double> b, Jet& out) const;

 private:
  using Box = std::array<double, most_dimensions>;
  struct Cell {
    std::vector<double> coefficients;  // a tensor, row-major
    bool good = false;
    std::size_t halved = 0;  // dimension, where it is not good
    mutable std::array<std::atomic<const Cell*>, 2> halves = {};
    ~Cell();
  };

  const Cell& cell_at(std::atomic<const Cell*>& slot, const Box& low, const Box& high,
                      bool smallest) const;
  std::unique_ptr<Cell> fill(const Box& low, const Box& high, bool smallest) const;
  /// The polynomial of a box for the function or the rough one, and its largest difference to it.
  double approximate(const Box& low, const Box& high, bool rough, Cell& cell) const;

  std::size_t size_;
  Matrix coordinates_, inverse_;
  Box low_ = {}, high_ = {};
  Lattice lattice_;
  Points points_;
  Config config_;
  mutable std::atomic<const Cell*> root_ = nullptr;
};

}  // namespace neyman::detail
