#include "measurements/profile_root.hpp"

#include <algorithm>
#include <boost/math/tools/toms748_solve.hpp>
#include <cmath>

namespace neyman::detail {

namespace {

constexpr double largest_root = 1e6;  // in place of infinity, where the profile is forbidden

}  // namespace

ProfileRoot::ProfileRoot(Minimiser& minimise, const MeasurementData& data,
                         std::span<const double> best, double value, std::size_t parameter)
    : minimise_(minimise), data_(data), value_(value), lowest_(value), parameter_(parameter) {
  seen_.push_back({best[parameter], {best.begin(), best.end()}});
}

double ProfileRoot::operator()(double at) {
  const auto nearest = std::min_element(
      seen_.begin(), seen_.end(),
      [&](const Seen& a, const Seen& b) { return std::abs(a.at - at) < std::abs(b.at - at); });
  minimise_.hold(parameter_, at);
  const auto outcome = minimise_(data_, nearest->point);
  if (!std::isfinite(outcome.value)) return largest_root;
  if (!outcome.ok) {
    ++failed_;
  } else {
    lowest_ = std::min(lowest_, outcome.value);
    seen_.push_back({at, {minimise_.point().begin(), minimise_.point().end()}});
  }
  return std::min(largest_root, std::sqrt(std::max(0.0, 2.0 * (outcome.value - value_))));
}

std::optional<double> ProfileRoot::crossing(double target, double step, double end) {
  double inner = seen_.front().at, inner_value = -target;
  if (inner == end) return std::nullopt;
  for (;;) {
    double outer = inner + step;
    const bool last = step > 0.0 ? outer >= end : outer <= end;
    if (last) outer = end;
    const double outer_value = (*this)(outer)-target;
    if (outer_value >= 0.0) {
      std::uintmax_t most = 60;
      const auto close = [&](double a, double b) {
        return std::abs(a - b) <= 1e-10 * std::max(std::abs(step), std::abs(a) + std::abs(b));
      };
      const auto ordered = std::minmax(inner, outer);
      const bool forwards = inner < outer;
      const auto bracket = boost::math::tools::toms748_solve(
          [&](double x) { return (*this)(x)-target; }, ordered.first, ordered.second,
          forwards ? inner_value : outer_value, forwards ? outer_value : inner_value, close, most);
      return 0.5 * (bracket.first + bracket.second);
    }
    if (last) return std::nullopt;
    inner = outer;
    inner_value = outer_value;
    step *= 1.5;
  }
}

}  // namespace neyman::detail
