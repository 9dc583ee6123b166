#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "neyman/ratios/mixture_ratio.hpp"

namespace neyman {

/// A mixture ratio of one feature, looked up in a table: for many events it costs a small part
/// of the classifiers behind it.
///
/// [low, high] is cut into equal cells; in each, q_c(x) is the cubic through four points of the
/// ratio itself, and is compared with it at three more. Cells where they differ by more than
/// `tolerance` of q_c (the step of a tree, the kink of a rectifier), and events outside
/// [low, high], are answered by the ratio itself. Between the compared points nothing is
/// checked: a feature of the ratio narrower than a sixth of a cell is not seen.
class TabulatedRatio final : public MixtureRatio {
 public:
  struct Config {
    std::size_t cells = 4096;
    double tolerance = 1e-5;  ///< relative error of q_c, so absolute of log r
  };

  /// `of` is kept by reference and must outlive this.
  /// @throw ArgumentError where low < high does not hold, or a setting is not positive.
  TabulatedRatio(const MixtureRatio& of, double low, double high, Config config);
  TabulatedRatio(const MixtureRatio& of, double low, double high)
      : TabulatedRatio(of, low, high, Config{}) {}

  /// How many events of the ratio itself the table takes.
  static std::size_t evaluations(const Config& config) { return 6 * config.cells + 1; }

  std::string kind() const override { return of_.kind(); }
  /// @throw ArgumentError where x has not one column.
  Matrix component_ratios(MatrixView x) const override;
  /// The part of the cells whose events the ratio itself answers.
  double direct_share() const;

  std::vector<double> normalisation() const override { return of_.normalisation(); }
  std::size_t replicas() const override { return of_.replicas(); }
  Scores score(MatrixView x) const override { return of_.score(x); }
  Matrix replica_ratios(const Scores& scores, std::size_t replica) const override {
    return of_.replica_ratios(scores, replica);
  }
  std::vector<double> replica_normalisation(std::size_t replica) const override {
    return of_.replica_normalisation(replica);
  }
  std::size_t count_outside(MatrixView x) const override { return of_.count_outside(x); }

 private:
  const MixtureRatio& of_;
  double low_, cells_per_unit_;
  std::vector<double> cubics_;        // [cell][component][power]
  std::vector<std::uint8_t> direct_;  // [cell]
};

/// A table in place of the classifiers, where it pays: the ratio is a learned one of one
/// feature, and so many events are to be evaluated that the table is a small part of them. Its
/// range is that of the `typical` events and an eighth more on either side. Null elsewhere.
std::unique_ptr<const TabulatedRatio> tabulate(const MixtureRatio& of, MatrixView typical,
                                               std::size_t events);

}  // namespace neyman
