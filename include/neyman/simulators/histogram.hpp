#pragma once

#include <optional>

#include "neyman/simulators/distribution.hpp"

namespace neyman {

namespace detail {
class AliasTable;
}

/// A piecewise constant density in one or more dimensions: content / (total · volume of the bin),
/// 0 (log density −∞) in empty bins and outside the edges. Bins include their lower edge, the
/// last one of an axis its upper edge too. Draws are uniform in the bin.
///
/// In a study: kind = "histogram" and either edges = […] (or a list of lists, one an axis) with
/// counts = […] (row-major: the last axis runs fastest), or file, columns, weights (a column)
/// with binning = "uniform" | "equal-probability" | "bayesian-blocks" and bins, or with edges.
class Histogram final : public Distribution {
 public:
  enum class Binning { uniform, equal_probability, bayesian_blocks };
  struct Config {
    Binning binning = Binning::uniform;  ///< of each axis by itself
    std::size_t bins = 50;               ///< for each axis; Bayesian blocks find their own
    double false_alarm = 0.05;           ///< of Bayesian blocks, see bin_edges.hpp
  };

  /// @throw ArgumentError where an axis has fewer than two edges or they do not rise, or the
  ///   contents are not one for each bin, negative, not finite or all zero.
  Histogram(std::vector<std::vector<double>> edges, std::vector<double> contents);
  /// Filled from events; weights: one an event, or empty.
  static Histogram filled(MatrixView events, std::span<const double> weights, const Config& config);
  /// Filled from events with given edges. Events outside are left out; `outside()` is their
  /// weight.
  static Histogram filled(MatrixView events, std::span<const double> weights,
                          std::vector<std::vector<double>> edges);
  static DistributionPtr make(Settings settings, const ParameterSpace& parameters,
                              const std::string& folder);

  const std::vector<std::vector<double>>& edges() const { return edges_; }
  const std::vector<double>& contents() const { return contents_; }
  double outside() const { return outside_; }

  std::string kind() const override { return "histogram"; }
  std::size_t dimension() const override { return edges_.size(); }
  /// Those of the file that it was made of in a study; else empty.
  std::vector<std::string> feature_names() const override { return names_; }
  void sample(std::span<const double> point, RandomStream& random, Matrix& out) const override;
  void sample_each(MatrixView points, RandomStream& random, Matrix& out) const override;
  bool has_density() const override { return true; }
  void log_density(std::span<const double> point, MatrixView x,
                   std::span<double> out) const override;
  bool has_cdf() const override { return dimension() == 1; }
  double cdf(std::span<const double> point, double x) const override;
  double quantile(std::span<const double> point, double probability) const override;

 private:
  /// The index of the bin that holds x, or nullopt outside.
  static std::optional<std::size_t> find(const std::vector<std::vector<double>>& edges,
                                         std::span<const double> x);

  std::vector<std::vector<double>> edges_;
  std::vector<double> contents_, log_density_;
  std::vector<double> cumulative_;  // one dimension: P(X <= edge)
  double outside_ = 0.0;
  std::shared_ptr<const detail::AliasTable> table_;
  std::vector<std::string> names_;
};

}  // namespace neyman
