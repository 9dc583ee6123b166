#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "calibration/lookup.hpp"
#include "neyman/core/archive.hpp"

namespace neyman::across {

/// Where a value lies on the scale of its column: a number, the piece of the scale that stands for
/// it where values come in steps, or one of the values that many events share.
struct Place {
  float at = 0.0f;
  float low = 0.0f, high = 0.0f;  ///< of a value in steps: half a step to each side
  std::int32_t atom = -1;         ///< its number among the atoms, or −1
};

/// One column of events as a network takes it, and as a density describes it.
///
/// A value goes to its normal score, Φ⁻¹(F(x)) with F the distribution of the column over the
/// training events, by a monotone cubic through some quantiles. Heavy tails, edges and scales of
/// any size become what a mixture of a few normal densities describes well. The map is fixed, so
/// that its derivative cancels in every ratio.
class FeatureScale {
 public:
  enum class Kind {
    constant,    ///< one value: it says nothing
    continuous,  ///< any values; a few may be shared by many events (atoms)
    steps,       ///< values that are multiples of a step, such as counts
    categories,  ///< a few values, all of them atoms
  };

  FeatureScale() = default;
  explicit FeatureScale(std::vector<double> values);
  /// A parameter with this range: u = (x − low) / (high − low), in [0, 1].
  static FeatureScale of_range(double low, double high);
  /// A periodic one with this period: the same of the value within it.
  static FeatureScale of_circle(double low, double high);
  /// An angle among the features. A constant one, or one of a few values or in steps, is as others
  /// of its kind, with values wrapped.
  static FeatureScale of_circle(double low, double high, std::vector<double> values);

  Kind kind() const { return kind_; }
  std::size_t atoms() const { return atoms_.size(); }
  /// What a network sees per unit of `Place::at`, of a range: its spread is 1.
  static constexpr double per_place = 3.4641016151377544;  // √12
  /// What a network sees: near 0, of spread 1, within ±12. (Of what goes round it sees cosine and
  /// sine, which are made of this where they are needed.)
  float operator()(double value) const;
  Place place(double value) const;
  /// The slope of the scale at a value, of `of_range` and `of_circle` alone: that of
  /// `place(value).at`.
  double slope() const { return slope_; }
  bool bounded() const { return slope_ > 0.0; }
  /// Whether 0 and 1 of `place(value).at` are one.
  bool round() const { return bounded() && period_ > 0.0; }

  void save(Archive& archive) const;
  /// @throw FileError where its parts do not belong together.
  static FeatureScale load(const Archive& archive);

 private:
  double score(double value) const;
  double wrapped(double value) const;
  void prepare();

  Kind kind_ = Kind::constant;
  double low_ = 0.0, slope_ = 0.0;  // of a range
  double period_ = 0.0;             // from `low_`, or `from_`; 0: not periodic
  double from_ = 0.0;
  double step_ = 0.0;          // between values
  std::vector<double> atoms_;  // ascending
  std::vector<double> x_, z_;  // quantiles, and their normal scores
  // The monotone cubic, of (x − x_0) · unit.
  double unit_ = 1.0;
  std::vector<double> knots_, slopes_;
  std::shared_ptr<const calibration::Lookup> lookup_;
};

}  // namespace neyman::across
