#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "measurements/minimiser.hpp"

namespace neyman::detail {

/// √(−2 log Λ) along one parameter, the others profiled: nearly a straight line on each side of the
/// estimate, and so where its crossings are found. Each profile fit starts from the nearest value
/// seen.
class ProfileRoot {
 public:
  /// Of the parameter, which `minimise` then holds. `best` is the maximum and `value` −ℓ there.
  ProfileRoot(Minimiser& minimise, const MeasurementData& data, std::span<const double> best,
              double value, std::size_t parameter);
  ~ProfileRoot() { minimise_.release(parameter_); }
  ProfileRoot(const ProfileRoot&) = delete;
  ProfileRoot& operator=(const ProfileRoot&) = delete;

  /// √max(0, 2 (−ℓ_profile − value)).
  double operator()(double at);
  /// Where it reaches `target`, found from the estimate outwards in growing steps; nothing where it
  /// does not before `end`.
  std::optional<double> crossing(double target, double step, double end);

  std::size_t failed() const { return failed_; }  ///< profile fits
  double lowest() const { return lowest_; }       ///< −ℓ over all of them

 private:
  struct Seen {
    double at;
    std::vector<double> point;
  };
  Minimiser& minimise_;
  const MeasurementData& data_;
  double value_, lowest_;
  std::size_t parameter_;
  std::size_t failed_ = 0;
  std::vector<Seen> seen_;
};

}  // namespace neyman::detail
