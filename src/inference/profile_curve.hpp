#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "inference/profile.hpp"
#include "neyman/inference/fit.hpp"

namespace neyman {

/// −2 log Λ of one parameter, the others profiled: what intervals and scans are read from. It
/// remembers every value, and each new one begins from those beside it. A periodic parameter is cut
/// half a period from the estimate.
class ProfileCurve {
 public:
  /// `most`: the largest threshold that will be asked for.
  ProfileCurve(const Likelihood& likelihood, const Fit& best, std::size_t parameter, double most);

  /// The set of values with a statistic at most the threshold, from all of the range.
  /// `with_simulation`: see `raised`.
  Interval interval(double level, double threshold, bool with_simulation = false);
  Scan scan(double low, double high, std::size_t points);

  /// The highest point that was met, where ℓ is higher than at the fit.
  std::optional<Maximum> higher() const;
  /// Maxima that were met between those of the fit, where they are within the largest threshold.
  const std::vector<Maximum>& met() const { return met_; }

 private:
  using Value = Profile::Value;
  using Known = std::map<double, Value>;

  const Value& at(double value);
  /// A value within the range, which surrounds the estimate where the parameter is periodic.
  double placed(double value) const;
  double place_of(const Maximum& maximum) const { return placed(maximum.point[parameter_]); }
  /// A threshold with what finite simulation adds beyond the ratio of errors, by which it is
  /// widened already. At a bound where ℓ bends upwards that is not known, and the slope of ℓ may be
  /// that of the simulation. Around another maximum the height of that one counts as uncertain.
  double raised(double threshold, const Value& at) const;
  double raised_at_slope(double threshold, const Value& at) const;
  double raised_around_maxima(double threshold, const Value& at) const;
  bool inside(const Value& at, double threshold) const {
    return at.statistic <= raised(threshold, at);
  }
  /// The statistic above a threshold, with walls cut.
  double excess(double value, double threshold);
  void improve(Known::iterator known, const Value& neighbour);
  void follow_inwards();
  void explore();
  void walk(double from, double end);
  void search_valleys();
  void search_barriers(double threshold);
  double crossing(double a, double b, double threshold);
  /// The pieces of a circle that was cut: joined, and told as `Interval` does.
  std::vector<FitRange> on_circle(std::vector<FitRange> pieces) const;
  bool at_edge(double end, double threshold) const;
  bool beside_edge(const std::vector<double>& point) const;
  Interval of_parabola(double level, double threshold) const;
  std::string doubt(double threshold) const;

  const Likelihood& likelihood_;
  const Fit& best_;
  std::size_t parameter_;
  double most_;
  Parameter range_;
  Profile profile_;
  Known known_;
  bool sloping_ = false;            // simulation is known, but not the ratio of errors
  bool uncertain_heights_ = false;  // of other maxima
  bool raise_ = false;              // thresholds now
  bool explored_ = false;
  std::vector<Maximum> met_;
};

/// "the likelihood is higher than that of the fit by 0.2 at a = 1, b = 2"
std::string higher_words(const Likelihood& likelihood, const Fit& best, const Maximum& higher);

/// The threshold of a level, widened by finite simulation where that is asked for and known.
double interval_threshold(const Fit& best, std::size_t parameter, double level,
                          bool include_simulation);

/// Whether two points lie on one hill: ℓ falls nowhere between them.
bool on_one_hill(const Likelihood& likelihood, const Maximum& a, const Maximum& b);

}  // namespace neyman
