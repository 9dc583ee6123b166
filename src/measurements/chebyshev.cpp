#include "measurements/chebyshev.hpp"

#include <cmath>

namespace neyman::detail {

std::vector<double> chebyshev_nodes(std::size_t degree) {
  std::vector<double> out(degree + 1);
  for (std::size_t k = 0; k <= degree; ++k)
    out[k] = std::cos(M_PI * static_cast<double>(k) / static_cast<double>(degree));
  if (degree % 2 == 0) out[degree / 2] = 0.0;
  for (std::size_t k = 0; 2 * k < degree; ++k) out[degree - k] = -out[k];
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

void chebyshev_transform(std::vector<double>& values, std::size_t dimensions, std::size_t degree) {
  const std::size_t size = degree + 1;
  const auto transform = chebyshev_coefficients(degree);
  std::vector<double> line(size);
  // One dimension after the other.
  for (std::size_t d = 0, inner = values.size() / size; d < dimensions; ++d, inner /= size)
    for (std::size_t begin = 0; begin < values.size(); begin += inner * size)
      for (std::size_t i = 0; i < inner; ++i) {
        for (std::size_t j = 0; j < size; ++j) {
          line[j] = 0.0;
          for (std::size_t k = 0; k < size; ++k)
            line[j] += transform[j * size + k] * values[begin + k * inner + i];
        }
        for (std::size_t j = 0; j < size; ++j) values[begin + j * inner + i] = line[j];
      }
}

namespace {

/// Σ over the dimensions from d on; moves `coefficient` on.
template <std::size_t d, std::size_t dimensions>
TensorJet contract(std::size_t size, const ChebyshevValues* at, const double*& coefficient) {
  TensorJet out;
  const auto& here = at[d];
  for (std::size_t i = 0; i < size; ++i) {
    if constexpr (d + 1 == dimensions) {
      out.value += *coefficient * here.values[i];
      out.first[d] += *coefficient * here.first[i];
      out.second[d][d] += *coefficient * here.second[i];
      ++coefficient;
    } else {
      const auto inner = contract<d + 1, dimensions>(size, at, coefficient);
      out.value += here.values[i] * inner.value;
      out.first[d] += here.first[i] * inner.value;
      out.second[d][d] += here.second[i] * inner.value;
      for (std::size_t p = d + 1; p < dimensions; ++p) {
        out.first[p] += here.values[i] * inner.first[p];
        out.second[d][p] += here.first[i] * inner.first[p];
        for (std::size_t q = p; q < dimensions; ++q)
          out.second[p][q] += here.values[i] * inner.second[p][q];
      }
    }
  }
  return out;
}

}  // namespace

TensorJet chebyshev_tensor(std::size_t dimensions, std::size_t degree, const ChebyshevValues* at,
                           const double* coefficients) {
  switch (dimensions) {
    case 1:
      return contract<0, 1>(degree + 1, at, coefficients);
    case 2:
      return contract<0, 2>(degree + 1, at, coefficients);
    case 3:
      return contract<0, 3>(degree + 1, at, coefficients);
    default:
      return contract<0, 4>(degree + 1, at, coefficients);
  }
}

}  // namespace neyman::detail
