#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "neyman/core/matrix.hpp"
#include "neyman/core/parameters.hpp"
#include "neyman/core/progress.hpp"
#include "neyman/core/random.hpp"
#include "neyman/core/settings.hpp"
#include "neyman/simulators/expression.hpp"

namespace neyman {

class SampleStream;
class Tasks;
struct Samples;

class Distribution;
/// Distributions are immutable, so parts of a composition are shared.
using DistributionPtr = std::shared_ptr<const Distribution>;

/// A distribution of x given θ. All know how to sample; those that know their density give the
/// exact likelihood ratio as well.
///
/// `point` is θ, one value for each parameter of the study, in the order of its ParameterSpace.
class Distribution {
 public:
  virtual ~Distribution() = default;

  /// The name in the room's list and in a study: "normal", "mixture", …
  virtual std::string kind() const = 0;
  virtual std::size_t dimension() const = 0;

  /// Draws events into `out` (rows of `dimension()` values) from one stream. The events are
  /// independent and identically distributed in the order of the rows.
  /// @throw ArgumentError where a parameter of the distribution is not allowed at this θ.
  virtual void sample(std::span<const double> point, RandomStream& random, Matrix& out) const = 0;

  /// Draws events into `out`, each at its own θ: row i at row i of `points`. With the same θ in
  /// all rows the events are those of `sample`, up to rounding. By default `sample` is called for
  /// each run of equal θ; kinds that can draw many θ at once do.
  /// @throw ArgumentError where `points` has another number of rows than `out`, and as for
  ///   `sample`.
  virtual void sample_each(MatrixView points, RandomStream& random, Matrix& out) const;

  /// Names of the features, where the simulator has them; else empty.
  virtual std::vector<std::string> feature_names() const { return {}; }
  /// What a composition is made of.
  virtual std::vector<DistributionPtr> parts() const { return {}; }

  /// How many events are best asked for. Where starting the simulator costs more than an event,
  /// training events are drawn in runs of several at one θ.
  struct Runs {
    std::size_t events = 1;   ///< of a run, all at one θ; 1: each event may have a θ of its own
    std::size_t at_once = 0;  ///< runs that wait for another program; 0: none, threads do the work
    double tolerate = 0.0;    ///< the share of runs that may fail, to be left out
    std::size_t block = 0;    ///< events that are asked for together; 0: as suits the threads
  };
  /// By default the largest of the parts.
  virtual Runs runs() const;
  /// Of a simulator outside of the library, another program or a function of another language: what
  /// a trial of it took. Events of such are dear, and no more are asked for than need be.
  struct Trial {
    std::size_t events = 0;
    double seconds = 0.0;  ///< 0: not tried
  };
  /// Nothing where events are drawn here. By default that of the slowest part.
  virtual std::optional<Trial> trial() const;
  /// Events that were made before, where there can be no others: `sample` then throws
  /// SimulatorError. Null: it can simulate.
  virtual const Samples* stored() const { return nullptr; }
  /// All events that were made before, where they stay on the disk and `stored` has some of them,
  /// chosen at random. Null: `stored` has all.
  virtual std::shared_ptr<const SampleStream> stream() const { return nullptr; }
  /// Keeps what it simulates in a folder from now on, and takes it from there; empty: nowhere. Most
  /// kinds keep nothing.
  virtual void set_cache_folder(const std::string& folder) const;
  /// Whether its events depend on a parameter, where that is known without drawing any. By default
  /// true where a part depends on it.
  virtual std::optional<bool> depends_on(std::size_t parameter) const;

  virtual bool has_density() const { return false; }
  /// log p(x|θ) of each row of x; −infinity outside the support.
  /// @throw ArgumentError where the density is not known, or a parameter of the distribution is
  ///   not allowed at this θ.
  virtual void log_density(std::span<const double> point, MatrixView x,
                           std::span<double> out) const;

  /// One-dimensional distributions whose cdf and quantile are known.
  virtual bool has_cdf() const { return false; }
  /// P(X <= x).
  virtual double cdf(std::span<const double> point, double x) const;
  /// The smallest x with cdf(x) >= probability; −∞ or +∞ at 0 or 1 where the support has no end.
  /// @throw ArgumentError unless the probability is between 0 and 1.
  virtual double quantile(std::span<const double> point, double probability) const;
};

/// Draws `count` events at θ in parallel blocks: the same bits for any number of threads.
/// `progress` advances by one an event; without it, the drawing is a task of its own.
/// The blocks of a simulator that draws in runs are `tasks` where others share them; what is drawn
/// here is drawn faster than it is sent.
/// @throw SimulatorError where a simulator outside of the library fails.
Matrix sample(const Distribution& distribution, std::span<const double> point, std::size_t count,
              std::uint64_t seed, std::string_view purpose, Progress* progress = nullptr,
              Tasks* tasks = nullptr);

/// The same into rows that exist: memory that is used again needs no new pages, which cost more
/// than the drawing of simple distributions.
/// @throw ArgumentError where `out` has another number of columns than the dimension.
void sample_into(const Distribution& distribution, std::span<const double> point,
                 std::uint64_t seed, std::string_view purpose, Matrix& out,
                 Progress* progress = nullptr, Tasks* tasks = nullptr);

/// Whether its events depend on θ, or on one of the parameters: where it does not say so itself
/// (Distribution::depends_on), by drawing events at θ far apart from the same random numbers: some,
/// and where these are the same, more, as far as they are not dear. True where it is not defined at
/// all of them. False may be wrong where θ moves few of the events.
bool depends_on(const Distribution& distribution, const ParameterSpace& parameters,
                std::optional<std::size_t> only = {});

/// Whether it and all its parts can simulate (Distribution::stored).
bool can_simulate(const Distribution& distribution);

/// log p(x|θ), in parallel blocks.
/// @throw ArgumentError where x has another number of columns or a value is not finite.
std::vector<double> log_density(const Distribution& distribution, std::span<const double> point,
                                MatrixView x);

/// Maximum-likelihood fit of θ to events.
struct DistributionFit {
  std::vector<double> point;    ///< θ̂
  double log_likelihood = 0.0;  ///< Σ wᵢ log p(xᵢ|θ̂)
  /// False where the optimiser gave up, where a step away from θ̂ still rises, where the
  /// likelihood does not depend on one of the free parameters, or where it is zero everywhere.
  bool converged = false;
  int evaluations = 0;         ///< of the likelihood
  std::vector<bool> at_limit;  ///< whether θ̂ᵢ stands at an end of its range
};
/// Fits the parameters within their ranges, starting at `start` (empty: the middle); those
/// with `fixed[i]` set stay at their start. Weights: one an event, or empty.
///
/// Maximises Σ wᵢ log p(xᵢ|θ) without derivatives (NLopt's BOBYQA, or Sbplx for one parameter),
/// from the start and from the best of some points spread over the ranges, each restarted until
/// nothing is gained. θ where the distribution is not defined (a negative sigma) count as
/// impossible. Deterministic. A maximum narrower than the spread of the points can be missed.
///
/// @throw ArgumentError where the distribution has no density, sizes disagree, the start is
///   outside the ranges or not allowed, or an event or a weight is not finite or a weight is
///   negative.
DistributionFit fit(const Distribution& distribution, const ParameterSpace& parameters,
                    MatrixView x, std::span<const double> weights = {},
                    std::vector<double> start = {}, std::vector<bool> fixed = {});

/// Makes a distribution from a study's table (`kind = "normal"`, `mean = "gamma"`, …).
/// Problems are noted in the settings, with file and line, and the result is then null.
/// `folder` is where relative file names start.
DistributionPtr make_distribution(Settings settings, const ParameterSpace& parameters,
                                  const std::string& folder = ".");
/// A distribution that the calling program makes, as the value of a table's key `object`: `kind`
/// and `fingerprint` (a text that is another one where the distribution is) may stand beside it.
struct DistributionObject final : SettingObject {
  /// The distribution for θ of the study's parameters; ArgumentError where it needs others.
  using Make = std::function<DistributionPtr(const ParameterSpace&)>;
  explicit DistributionObject(Make how) : make(std::move(how)) {}
  Make make;
};
/// The names that `kind` may have, in the order of the room's list.
std::vector<std::string> distribution_kinds();

}  // namespace neyman
