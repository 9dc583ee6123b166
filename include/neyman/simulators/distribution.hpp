#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "neyman/core/archive.hpp"
#include "neyman/core/matrix.hpp"
#include "neyman/core/parameters.hpp"
#include "neyman/core/random.hpp"
#include "neyman/core/settings.hpp"
#include "neyman/simulators/expression.hpp"

namespace neyman {

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

  /// Draws events into `out` (rows of `dimension()` values) from one stream.
  virtual void sample(std::span<const double> point, RandomStream& random,
                      Matrix& out) const = 0;

  virtual bool has_density() const { return false; }
  /// log p(x|θ) of each row of x; −infinity outside the support.
  /// @throw ArgumentError where the density is not known.
  virtual void log_density(std::span<const double> point, MatrixView x,
                           std::span<double> out) const;

  /// One-dimensional distributions whose cdf and quantile are known.
  virtual bool has_cdf() const { return false; }
  virtual double cdf(std::span<const double> point, double x) const;
  virtual double quantile(std::span<const double> point, double probability) const;
};

/// Draws `count` events at θ in parallel blocks: the same bits for any number of threads.
Matrix sample(const Distribution& distribution, std::span<const double> point,
              std::size_t count, std::uint64_t seed, std::string_view purpose);

/// log p(x|θ), in parallel blocks.
std::vector<double> log_density(const Distribution& distribution,
                                std::span<const double> point, MatrixView x);

/// Maximum-likelihood fit of θ to events.
struct DistributionFit {
  std::vector<double> point;  ///< θ̂
  double log_likelihood = 0.0;
  bool converged = false;
  int evaluations = 0;
};
/// Fits the parameters within their ranges, starting at `start` (empty: the middle); those
/// with `fixed[i]` set stay at their start. Weights: one an event, or empty.
DistributionFit fit(const Distribution& distribution, const ParameterSpace& parameters,
                    MatrixView x, std::span<const double> weights = {},
                    std::vector<double> start = {}, std::vector<bool> fixed = {});

/// Makes a distribution from a study's table (`kind = "normal"`, `mean = "gamma"`, …).
/// Problems are noted in the settings; what is returned then must not be used.
/// `folder` is where relative file names start.
DistributionPtr make_distribution(Settings settings, const ParameterSpace& parameters,
                                  const std::string& folder = ".");
std::vector<std::string> distribution_kinds();

}  // namespace neyman
