// The kernels of mixture_kernels.hpp in vectors of the compiler; included once for each instruction
// set, by a source that defines NEYMAN_KERNELS_ISA and is compiled with the options of that set.
// Everything here has internal linkage: no function compiled for one set can serve another.
#include <cmath>

#include "core/vectors_impl.hpp"
#include "inference/mixture_kernels.hpp"

namespace neyman::mixture {
namespace {

/// Σ log v of a chunk of positive normal numbers with few logarithms.
double sum_logs(const double* v) {
  const auto [mantissas, exponents] = multiply(v, chunk);
  // The lanes' products are below 2^32 each: four of them make one logarithm.
  double out = 0.0, powers = 0.0;
  for (std::size_t l = 0; l < lanes; l += 4) {
    out += std::log((mantissas[l] * mantissas[l + 1]) * (mantissas[l + 2] * mantissas[l + 3]));
    powers += static_cast<double>(exponents[l] + exponents[l + 1]) +
              static_cast<double>(exponents[l + 2] + exponents[l + 3]);
  }
  return out + (powers - 1023.0 * static_cast<double>(chunk)) * 0.693147180559945309417;
}

/// Σ w_c q_c of a chunk; 1 beyond its end.
void mix(const Events& events, const double* weights, std::size_t begin, std::size_t count,
         double* mixture) {
  const std::size_t whole = count / lanes * lanes;
  for (std::size_t i = 0; i < whole; i += lanes) {
    Reals m{};
    for (std::size_t c = 0; c < events.components; ++c)
      m += weights[c] * at(events.ratios[c] + begin + i);
    at(mixture + i) = m;
  }
  for (std::size_t i = whole; i < count; ++i) {
    double m = 0.0;
    for (std::size_t c = 0; c < events.components; ++c)
      m += weights[c] * events.ratios[c][begin + i];
    mixture[i] = m;
  }
  for (std::size_t i = count; i < chunk; ++i) mixture[i] = 1.0;
}

/// q_c / m of a chunk, a row of `room` a component; 0 beyond its end.
void divide(const Events& events, std::size_t begin, std::size_t count, double* mixture,
            double* room) {
  for (std::size_t i = 0; i < chunk; i += lanes) at(mixture + i) = 1.0 / at(mixture + i);
  const std::size_t whole = count / lanes * lanes;
  for (std::size_t c = 0; c < events.components; ++c) {
    double* row = room + c * chunk;
    const double* q = events.ratios[c] + begin;
    for (std::size_t i = 0; i < whole; i += lanes) at(row + i) = at(q + i) * at(mixture + i);
    for (std::size_t i = whole; i < count; ++i) row[i] = q[i] * mixture[i];
    for (std::size_t i = count; i < chunk; ++i) row[i] = 0.0;
  }
}

/// u times a row; the row itself without weights.
const double* weighted(const double* row, const double* u, std::size_t count, double* out) {
  if (u == nullptr) return row;
  for (std::size_t i = 0; i < count; ++i) out[i] = u[i] * row[i];
  for (std::size_t i = count; i < chunk; ++i) out[i] = 0.0;
  return out;
}

void add_shares(const Events& events, std::size_t begin, std::size_t count, const double* room,
                Sums& sums) {
  double scaled[chunk];
  const double* u = events.weights == nullptr ? nullptr : events.weights + begin;
  for (std::size_t c = 0; c < events.components; ++c) {
    const double* row = weighted(room + c * chunk, u, count, scaled);
    Reals total{};
    for (std::size_t i = 0; i < chunk; i += lanes) total += at(row + i);
    sums.shares[c] += sum(total);
    if (sums.gram == nullptr) continue;
    std::size_t d = 0;
    for (; d + 2 <= c + 1; d += 2) {
      const double *first = room + d * chunk, *second = first + chunk;
      Reals a{}, b{};
      for (std::size_t i = 0; i < chunk; i += lanes) {
        a += at(row + i) * at(first + i);
        b += at(row + i) * at(second + i);
      }
      sums.gram[c * events.components + d] += sum(a);
      sums.gram[c * events.components + d + 1] += sum(b);
    }
    if (d == c) {
      const double* last = room + d * chunk;
      Reals a{};
      for (std::size_t i = 0; i < chunk; i += lanes) a += at(row + i) * at(last + i);
      sums.gram[c * events.components + d] += sum(a);
    }
  }
}

void add(const Events& events, const double* weights, double* room, Sums& sums) {
  double mixture[chunk];
  for (std::size_t begin = 0; begin < events.count; begin += chunk) {
    const std::size_t count = events.count - begin < chunk ? events.count - begin : chunk;
    mix(events, weights, begin, count, mixture);
    if (events.weights == nullptr) {
      sums.logs += sum_logs(mixture);
    } else {
      for (std::size_t i = 0; i < count; ++i)
        sums.logs += events.weights[begin + i] * std::log(mixture[i]);
    }
    if (sums.shares == nullptr) continue;
    divide(events, begin, count, mixture, room);
    add_shares(events, begin, count, room, sums);
  }
}

}  // namespace

NEYMAN_DEFINE_KERNELS(add);

}  // namespace neyman::mixture
