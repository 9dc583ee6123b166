#include "simulators/invert_cdf.hpp"

#include <boost/math/tools/toms748_solve.hpp>
#include <cstdint>
#include <limits>

namespace neyman::detail {

double invert_cdf(const std::function<double(double)>& cdf, double low, double high,
                  double probability) {
  const auto excess = [&](double x) { return cdf(x) - probability; };
  if (!(low < high) || excess(low) >= 0.0) return low;
  if (excess(high) <= 0.0) return high;
  std::uintmax_t steps = 500;
  const auto bracket = boost::math::tools::toms748_solve(
      excess, low, high,
      boost::math::tools::eps_tolerance<double>(std::numeric_limits<double>::digits), steps);
  return bracket.second;
}

}  // namespace neyman::detail
