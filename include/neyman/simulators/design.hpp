#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "neyman/core/archive.hpp"
#include "neyman/core/matrix.hpp"
#include "neyman/core/parameters.hpp"
#include "neyman/core/settings.hpp"
#include "neyman/data/samples.hpp"
#include "neyman/simulators/distribution.hpp"

namespace neyman {

/// A distribution π(θ) over the ranges of the parameters: where the θ of training events come
/// from.
///
/// - `uniform`: independent and uniform in the ranges.
/// - `sobol`: uniform, by a Sobol sequence (Joe and Kuo's direction numbers) with a random digital
///   shift: n = 2^m θ fill each range, and most pairs of ranges, evenly.
/// - `latin-hypercube`: uniform; each parameter has one θ in each of n equal parts of its range.
/// - `grid`: `points` values of each parameter, evenly spaced with both ends (the middle of the
///   range for one), all combinations; each equally often.
/// - `normal`: independent normals with `mean` and `sigma`, truncated to the ranges.
/// - `table`: the given rows, each equally often.
/// - `fixed`: one point.
///
/// In a study: design = "sobol", or a table with a kind: { kind = "grid", points = [15, 15] },
/// { kind = "normal", mean = [0, 0], sigma = { alpha = 1, beta = 2 } } (mean: by default the
/// middles), { kind = "table", rows = [[0, 1], [1, 1]] } or { kind = "table", file = "points.csv" }
/// with a column for each parameter, { kind = "fixed", point = { alpha = 0, beta = 1 } }. One value
/// for each parameter is a list in their order, or a table by name.
///
/// Cheap to copy; safe to use from several threads.
class Design {
 public:
  enum class Kind { uniform, sobol, latin_hypercube, grid, normal, table, fixed };

  struct Config {
    Kind kind = Kind::uniform;
    std::vector<std::size_t> points = {};  ///< grid: how many values of each parameter
    std::vector<double> mean = {};         ///< normal: one for each; empty: the middles
    std::vector<double> sigma = {};        ///< normal: one for each
    Matrix rows = {};                      ///< table: one θ a row; fixed: one row
  };

  explicit Design(ParameterSpace parameters) : Design(std::move(parameters), Config{}) {}
  /// @throw ArgumentError without parameters, where sizes disagree, a row is outside the ranges, a
  ///   grid has more than 10^7 points, sigma is not positive, or a range holds no probability of
  ///   its normal (it is more than 37 sigma away from the mean).
  Design(ParameterSpace parameters, Config config);
  static Design fixed(ParameterSpace parameters, std::vector<double> point);
  /// Restores what `save` wrote.
  Design(const Archive& archive, ParameterSpace parameters);

  /// Reads the key of a study's table; uniform where it is absent. Problems are noted in the
  /// settings, and the result is then uniform. `folder` is where relative file names start;
  /// `fallback` what descriptions of the key name as its default.
  static Design from(Settings& settings, Key key, const ParameterSpace& parameters,
                     const std::string& folder = ".", std::string_view fallback = "uniform");
  /// The names that a kind may have in a study.
  static std::vector<std::string> kinds();

  std::string kind() const;
  const Config& config() const { return config_; }
  const ParameterSpace& parameters() const { return parameters_; }
  /// Whether there is one θ alone.
  bool single() const { return rows_.rows() == 1; }
  /// Whether θ takes values of a finite set (`grid`, `table`, `fixed`): its rows; else empty.
  const Matrix& rows() const { return rows_; }

  /// n θ, one a row: the same bits for any number of threads. Of a finite set, each row n/rows
  /// times, or once more, in random order.
  Matrix draw(std::size_t n, std::uint64_t seed, std::string_view purpose) const;

  /// About `count` θ, equally weighted, to integrate functions of θ over the design with little
  /// noise: mean over nodes of f = ∫ f(θ) π(θ) dθ, without bias over `block`.
  ///
  /// A rank-1 lattice (generator by the component-by-component construction for the worst case of
  /// a Korobov space with smoothness 1) with a random shift for each block and the baker's
  /// transform u → 1 − |2u − 1|, so that the error for smooth functions falls about like 1/count².
  /// A finite set gives all its rows where they are at most `count`; else a grid those that the
  /// lattice hits, and a table one of each of `count` equal parts of its rows (a row may then
  /// occur twice).
  /// @throw ArgumentError where count is 0.
  Matrix nodes(std::size_t count, std::uint64_t seed, std::uint64_t block) const;

  void save(Archive& archive) const;

 private:
  struct Lattices;
  double value(std::size_t parameter, double u) const;  // θ_p at the quantile u of its marginal
  std::vector<std::size_t> generator(std::size_t count) const;
  Matrix draw_sobol(std::size_t n, std::uint64_t seed, std::string_view purpose) const;
  Matrix draw_latin(std::size_t n, std::uint64_t seed, std::string_view purpose) const;
  Matrix draw_rows(std::size_t n, std::uint64_t seed, std::string_view purpose) const;
  Matrix lattice_nodes(std::size_t count, std::uint64_t seed, std::uint64_t block) const;
  Matrix table_nodes(std::size_t count, std::uint64_t seed, std::uint64_t block) const;

  ParameterSpace parameters_;
  Config config_;
  Matrix rows_;
  std::shared_ptr<Lattices> lattices_;  // generators found so far
};

/// The design that events were really simulated at: their θ, each as often as its events weigh (by
/// |w|, where weights are negative).
/// Integrals over it are means over the θ of the events, so that few θ, or θ that are missing
/// because their simulation failed, bias nothing. The rows follow a space-filling curve, which
/// makes each of `nodes` equal parts of them a neighbourhood.
/// @throw ArgumentError where the events have no θ or one outside the ranges.
Design empirical_design(const Samples& events, const ParameterSpace& parameters);

/// n events, each at its own θ from the design, with θ filled in: in parallel blocks, the same
/// bits for any number of threads.
///
/// Of a simulator that draws in runs (Distribution::runs), the events of one run have one θ: n/k
/// θ, rounded up, are drawn from the design, with k events each, or so few less that all have the
/// same number. Runs that fail are left out, up to the share that the simulator tolerates. The runs
/// are `tasks` where others share them.
/// Of a simulator that holds events alone (Distribution::stored) all of them, whatever n is.
/// @throw ArgumentError where the simulator is not defined at a θ of the design, which is named.
/// @throw SimulatorError where more runs fail than are tolerated, or all.
Samples simulate(const Distribution& distribution, const ParameterSpace& parameters,
                 const Design& design, std::size_t n, std::uint64_t seed, std::string_view purpose,
                 Tasks* tasks = nullptr);

}  // namespace neyman
