#include "measurements/chebyshev.hpp"

#include <cmath>

namespace neyman::detail {

std::vector<double> chebyshev_nodes(std::size_t degree) {
  std::vector<double> out(degree + 1);
  for (std::size_t k = 0; k <= degree; ++k)
    out[k] = std::cos(M_PI * static_cast<double>(k) / static_cast<double>(degree));
  if (degree % 2 == 0) out[degree / 2] = 0.0;
  return out;
}

void ChebyshevValues::set(double u, double scale, std::size_t degree) {
  values[0] = 1.0, first[0] = 0.0, second[0] = 0.0;
  if (degree == 0) return;
  values[1] = u, first[1] = scale, second[1] = 0.0;
  for (std::size_t j = 2; j <= degree; ++j) {
    values[j] = 2.0 * u * values[j - 1] - values[j - 2];
    first[j] = 2.0 * (scale * values[j - 1] + u * first[j - 1]) - first[j - 2];
    second[j] = 4.0 * scale * first[j - 1] + 2.0 * u * second[j - 1] - second[j - 2];
  }
}

std::vector<double> chebyshev_coefficients(std::size_t degree) {
  // The discrete cosine transform with both ends halved.
  const auto n = static_cast<double>(degree);
  std::vector<double> out((degree + 1) * (degree + 1));
  for (std::size_t j = 0; j <= degree; ++j)
    for (std::size_t k = 0; k <= degree; ++k) {
      const double half = (j == 0 || j == degree ? 0.5 : 1.0) * (k == 0 || k == degree ? 0.5 : 1.0);
      // The angle by whole numbers, so that it does not lose digits.
      const auto turns = static_cast<double>((j * k) % (2 * degree));
      out[j * (degree + 1) + k] = 2.0 / n * half * std::cos(M_PI * turns / n);
    }
  return out;
}

}  // namespace neyman::detail
