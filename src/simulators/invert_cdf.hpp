#pragma once

#include <functional>

namespace neyman::detail {

/// The x in [low, high] where a rising `cdf` reaches `probability`, to double precision.
double invert_cdf(const std::function<double(double)>& cdf, double low, double high,
                  double probability);

}  // namespace neyman::detail
