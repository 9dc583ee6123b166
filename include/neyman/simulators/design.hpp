#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
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
/// - `normal`: a normal distribution with `mean`, `sigma` and, unless they are independent,
///   `correlation`, cut off at the ranges.
/// - `table`: the given rows, each equally often, or, with `resample`, each θ a row at random.
/// - `fixed`: one point.
/// - `function`: what a function of the calling program draws; θ outside of the ranges are drawn
///   again.
///
/// Of the first five, parameters may be on a log scale, by `log`: all that is said is then of log
/// θ. A normal of log θ is log-normal.
///
/// In a study: design = "sobol", or a table with a kind: { kind = "grid", points = [15, 15] },
/// { kind = "normal", mean = [0, 0], sigma = { alpha = 1, beta = 2 }, correlation = [[1, 0.5],
/// [0.5, 1]] } (mean: by default the middles; covariance in the place of sigma and correlation), {
/// kind = "normal", mean = [0, 0], sigma = [1, 1], log = ["beta"] }, { kind = "table", rows = [[0,
/// 1], [1, 1]] } or { kind = "table", file = "points.csv", resample = true } with a column for each
/// parameter, { kind = "fixed", point = { alpha = 0, beta = 1 } }. One value for each parameter is
/// a list in their order, or a table by name.
///
/// Cheap to copy; safe to use from several threads.
class Design {
 public:
  enum class Kind { uniform, sobol, latin_hypercube, grid, normal, table, fixed, function };
  /// n θ, one a row; the same for the same seed.
  using Function = std::function<Matrix(std::size_t n, std::uint64_t seed)>;

  struct Config {
    Kind kind = Kind::uniform;
    std::vector<std::size_t> points = {};  ///< grid: how many values of each parameter
    std::vector<double> mean = {};         ///< normal: one for each; empty: the middles
    std::vector<double> sigma = {};        ///< normal: one for each
    Matrix rows = {};                      ///< table: one θ a row; fixed: one row
    Matrix correlation = {};               ///< normal: one row and column for each; empty: none
    std::vector<bool> log = {};            ///< one for each: on a log scale; empty: none is
    bool resample = false;                 ///< table: each θ is a row at random
    Function function = {};                ///< function
    /// table: the rows are of a design that fills the ranges, however few they are; not saved.
    bool fills_ranges = false;
  };

  explicit Design(ParameterSpace parameters) : Design(std::move(parameters), Config{}) {}
  /// @throw ArgumentError without parameters, where sizes disagree, a row is outside the ranges, a
  ///   grid has more than 10^7 points, sigma is not positive, a correlation is none or not positive
  ///   definite, a range holds no probability of its normal (it is more than 37 sigma away from the
  ///   mean) or all ranges together less than a thousandth of one with correlations, a parameter on
  ///   a log scale may be zero or less, or a function gives no θ inside of the ranges.
  Design(ParameterSpace parameters, Config config);
  static Design fixed(ParameterSpace parameters, std::vector<double> point);
  /// Restores what `save` wrote.
  Design(const Archive& archive, ParameterSpace parameters);

  /// Reads the key of a study's table; uniform where it is absent. Problems are noted in the
  /// settings, and the result is then uniform. `folder` is where relative file names start;
  /// `fallback` what descriptions of the key name as its default.
  static Design from(Settings& settings, Key key, const ParameterSpace& parameters,
                     const std::string& folder = ".", std::string_view fallback = "uniform");
  /// The same without making it: for `bounded`.
  static Config read(Settings& settings, Key key, const std::vector<std::string>& names,
                     const std::string& folder = ".", std::string_view fallback = "uniform");
  /// The names that a kind may have in a study.
  static std::vector<std::string> kinds();

  /// The parameters with ends that are not finite replaced by where the design has θ: four sigma
  /// beside the mean of a normal (of log θ on a log scale), a twentieth of their spread beyond the
  /// smallest and the largest θ of a table, or of 65 536 that a function draws, but not beyond an
  /// end that is given; zero at least for a parameter whose θ are all positive. An end at zero or
  /// below is open on a log scale.
  /// @throw ArgumentError where sizes disagree, or the kind says nothing of such an end.
  static ParameterSpace bounded(std::vector<Parameter> parameters, const Config& config);

  std::string kind() const;
  const Config& config() const { return config_; }
  const ParameterSpace& parameters() const { return parameters_; }
  /// Whether a parameter is on a log scale.
  bool on_log_scale(std::size_t parameter) const {
    return !config_.log.empty() && config_.log[parameter];
  }
  /// Whether θ fill all of the ranges.
  bool fills_ranges() const { return config_.kind <= Kind::grid || config_.fills_ranges; }
  /// Whether the density of π is known: not of a finite set, or of a function.
  bool has_density() const { return rows_.empty() && config_.kind != Kind::function; }
  /// log π(θ), of θ in units of the ranges; its slopes by θ where `gradient` is not empty.
  /// @throw ArgumentError where it is not known.
  double log_density(std::span<const double> point, std::span<double> gradient = {}) const;
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
  struct Correlated;  // normals with correlations
  void check_normal();
  void take_pool();
  double value(std::size_t parameter, double u) const;  // θ_p at the quantile u of its marginal
  std::vector<std::size_t> generator(std::size_t count) const;
  Matrix draw_sobol(std::size_t n, std::uint64_t seed, std::string_view purpose) const;
  Matrix draw_latin(std::size_t n, std::uint64_t seed, std::string_view purpose) const;
  Matrix draw_rows(std::size_t n, std::uint64_t seed, std::string_view purpose) const;
  Matrix lattice_nodes(std::size_t count, std::uint64_t seed, std::uint64_t block) const;
  Matrix table_nodes(std::size_t count, std::uint64_t seed, std::uint64_t block) const;
  /// θ of independent standard normals, of those that come to lie inside of the ranges.
  Matrix correlated(const Matrix& normals) const;
  Matrix draw_correlated(std::size_t n, std::uint64_t seed, std::string_view purpose) const;
  Matrix draw_function(std::size_t n, std::uint64_t seed) const;

  ParameterSpace parameters_;
  Config config_;
  Matrix rows_;
  std::shared_ptr<Lattices> lattices_;  // generators found so far
  std::shared_ptr<const Correlated> correlated_;
  std::shared_ptr<const Matrix> pool_;  // what a function drew, neighbours beside each other
};

/// A design that the calling program makes, as the value of a table's key `object`; `fingerprint`
/// (a text that is another one where the function is) may stand beside it.
struct DesignObject final : SettingObject {
  explicit DesignObject(Design::Function how) : function(std::move(how)) {}
  Design::Function function;
};

/// The design that events were really simulated at: their θ, each as often as its events weigh (by
/// |w|, where weights are negative).
/// Integrals over it are means over the θ of the events, so that few θ, or θ that are missing
/// because their simulation failed, bias nothing. The rows follow a space-filling curve, which
/// makes each of `nodes` equal parts of them a neighbourhood.
/// @throw ArgumentError where the events have no θ or one outside the ranges.
/// `fills_ranges`: that of a design which they are all from.
Design empirical_design(const Samples& events, const ParameterSpace& parameters,
                        bool fills_ranges = false);

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
