// The kernels of unbinned_kernels.hpp in vectors of the compiler; included once for each
// instruction set, by a source that defines NEYMAN_KERNELS_ISA and is compiled with the options of
// that set. Everything here has internal linkage: no function compiled for one set can serve
// another.
#include <cmath>
#include <cstdint>

#include "core/vectors_impl.hpp"
#include "measurements/unbinned_kernels.hpp"

namespace neyman::unbinned {
namespace {

// Densities outside of these are as good as zero or infinite; inside, 16 mantissas and all
// exponents can be multiplied and added.
constexpr double least_density = 1e-300, most_density = 1e300;

void copy(const double* from, std::size_t count, double* to) {
  for (std::size_t i = 0; i < count; ++i) to[i] = from[i];
  for (std::size_t i = count; i < chunk; ++i) to[i] = 0.0;
}

/// The rows of a shape for one chunk. The last events are copied, with zeros beyond them.
struct Rows {
  const double* const* rows;
  std::size_t begin;
  const double* copied;  // functions × chunk, or null
  const double* operator()(std::size_t k) const {
    return copied == nullptr ? rows[k] + begin : copied + k * chunk;
  }
};

Rows rows_of(const Shape& shape, std::size_t begin, std::size_t count, double* room) {
  if (count == chunk) return {shape.rows, begin, nullptr};
  for (std::size_t k = 0; k < shape.functions; ++k)
    copy(shape.rows[k] + begin, count, room + k * chunk);
  return {shape.rows, begin, room};
}

/// Σ_k c_k f_k of a chunk for `count` rows of coefficients (at most three) at once.
template <std::size_t count>
inline __attribute__((always_inline)) void combine(const Rows& rows, std::size_t functions,
                                                   const double* const* coefficients,
                                                   double* const* out) {
  for (std::size_t i = 0; i < chunk; i += lanes) {
    Reals total[count] = {};
    for (std::size_t k = 0; k < functions; ++k) {
      const Reals f = at(rows(k) + i);
      for (std::size_t c = 0; c < count; ++c) total[c] += coefficients[c][k] * f;
    }
    for (std::size_t c = 0; c < count; ++c) at(out[c] + i) = total[c];
  }
}

/// The exponents of a chunk and, where wanted, the slopes e_s (rows of `slopes`).
void set_exponents(const Shape& shape, const Rows& rows, double* exponents, double* slopes) {
  const double* coefficients[4] = {shape.coefficients};
  double* out[4] = {exponents};
  const std::size_t moving = slopes == nullptr ? 0 : shape.moving;
  std::size_t next = 0, filled = 1;
  for (;;) {
    for (; filled < 4 && next < moving; ++filled, ++next) {
      coefficients[filled] = shape.slopes + next * shape.functions;
      out[filled] = slopes + next * chunk;
    }
    if (filled == 4)
      combine<4>(rows, shape.functions, coefficients, out);
    else if (filled == 3)
      combine<3>(rows, shape.functions, coefficients, out);
    else if (filled == 2)
      combine<2>(rows, shape.functions, coefficients, out);
    else if (filled == 1)
      combine<1>(rows, shape.functions, coefficients, out);
    if (next == moving) return;
    filled = 0;
  }
}

/// Σ a b of a chunk.
inline __attribute__((always_inline)) double dot(const double* a, const double* b) {
  Reals total{};
  for (std::size_t i = 0; i < chunk; i += lanes) total += at(a + i) * at(b + i);
  return sum(total);
}

inline __attribute__((always_inline)) double total_of(const double* a) {
  Reals total{};
  for (std::size_t i = 0; i < chunk; i += lanes) total += at(a + i);
  return sum(total);
}

/// out += Σ a f_k for every k.
void add_moments(const Rows& rows, std::size_t functions, const double* a, double* out) {
  std::size_t k = 0;
  for (; k + 4 <= functions; k += 4) {
    const double *f0 = rows(k), *f1 = rows(k + 1), *f2 = rows(k + 2), *f3 = rows(k + 3);
    Reals t0{}, t1{}, t2{}, t3{};
    for (std::size_t i = 0; i < chunk; i += lanes) {
      const Reals weight = at(a + i);
      t0 += weight * at(f0 + i);
      t1 += weight * at(f1 + i);
      t2 += weight * at(f2 + i);
      t3 += weight * at(f3 + i);
    }
    out[k] += sum(t0);
    out[k + 1] += sum(t1);
    out[k + 2] += sum(t2);
    out[k + 3] += sum(t3);
  }
  for (; k < functions; ++k) out[k] += dot(a, rows(k));
}

/// log x of positive normal numbers: x = 2^n m with m in [√½, √2), and log m = 2 artanh((m − 1) /
/// (m + 1)) by its series.
inline __attribute__((always_inline)) Reals logarithm(const Reals& x) {
  constexpr std::int64_t mantissa = 0x000fffffffffffffLL, one = 0x3ff0000000000000LL;
  constexpr double root = 1.41421356237309504880;
  const Words bits = reinterpret_cast<const Words&>(x);
  const Words fraction = (bits & mantissa) | one;
  Reals m = reinterpret_cast<const Reals&>(fraction);
  Reals n = __builtin_convertvector((bits >> 52) - 1023, Reals);
  n = m > root ? n + 1.0 : n;
  m = m > root ? 0.5 * m : m;
  const Reals s = (m - 1.0) / (m + 1.0), t = s * s;
  Reals series = Reals{} + 1.0 / 21.0;
  for (int odd = 19; odd >= 3; odd -= 2) series = series * t + 1.0 / static_cast<double>(odd);
  const Reals log_m = 2.0 * s + 2.0 * s * t * series;
  return n * 6.93147180369123816490e-01 + (n * 1.90821492927058770002e-10 + log_m);
}

/// Σ log of a chunk of densities with one logarithm a lane.
double sum_logs(const double* density) {
  const Product product = multiply(density, chunk);
  double powers = 0.0;
  for (std::size_t l = 0; l < lanes; ++l) powers += static_cast<double>(product.exponents[l]);
  return sum(logarithm(product.mantissas)) +
         (powers - 1023.0 * static_cast<double>(chunk)) * 0.693147180559945309417;
}

std::size_t count_slopes(const Events& events) {
  std::size_t out = 0;
  for (std::size_t c = 0; c < events.count; ++c) out += events.components[c].shape.moving;
  return out;
}

/// Memory of a chunk, in rows of it. The shares of the components and then y are rows one after the
/// other; `copies` are of the last events.
struct Room {
  double *parts, *slopes, *shares, *y, *moved, *density, *inverse, *weighted, *weights, *copies;
  Room(const Events& events, double* room) {
    parts = room;
    slopes = parts + chunk * events.count;
    shares = slopes + chunk * count_slopes(events);
    y = shares + chunk * events.count;
    moved = y + chunk * events.moving;
    density = moved + chunk;
    inverse = density + chunk;
    weighted = inverse + chunk;
    weights = weighted + chunk;
    copies = weights + chunk;
  }
};

/// The rows of a component's shape; those of the last events lie one component after the other.
struct Copies {
  double* next;
  Rows take(const Shape& shape, std::size_t begin, std::size_t count) {
    const Rows rows = rows_of(shape, begin, count, next);
    if (count < chunk) next += shape.functions * chunk;
    return rows;
  }
};

void set_parts(const Events& events, std::size_t begin, std::size_t count,
               void (*exponentiate)(double*, std::size_t), const Room& room, bool with_slopes) {
  for (std::size_t i = 0; i < chunk; i += lanes) at(room.density + i) = Reals{};
  Copies copies{room.copies};
  double* slopes = room.slopes;
  for (std::size_t c = 0; c < events.count; ++c) {
    const Component& component = events.components[c];
    double* part = room.parts + c * chunk;
    const double* ratios = component.ratios + begin;
    if (count < chunk) {
      copy(ratios, count, copies.next);
      ratios = copies.next;
      copies.next += chunk;
    }
    if (component.shape.functions == 0) {
      for (std::size_t i = 0; i < chunk; i += lanes) {
        at(part + i) = component.scale * at(ratios + i);
        at(room.density + i) += at(part + i);
      }
      continue;
    }
    const Rows rows = copies.take(component.shape, begin, count);
    set_exponents(component.shape, rows, part, with_slopes ? slopes : nullptr);
    slopes += component.shape.moving * chunk;
    exponentiate(part, chunk);
    for (std::size_t i = 0; i < chunk; i += lanes) {
      at(part + i) *= component.scale * at(ratios + i);
      at(room.density + i) += at(part + i);
    }
  }
}

/// The lower triangle of Σ w a a' over a chunk, added.
void add_gram(const double* rows, std::size_t count, const double* weights, double* scaled,
              double* gram) {
  for (std::size_t a = 0; a < count; ++a) {
    const double* row = rows + a * chunk;
    if (weights != nullptr) {
      for (std::size_t i = 0; i < chunk; i += lanes) at(scaled + i) = at(weights + i) * at(row + i);
      row = scaled;
    }
    std::size_t b = 0;
    for (; b + 2 <= a + 1; b += 2) {
      const double *first = rows + b * chunk, *second = first + chunk;
      Reals s{}, t{};
      for (std::size_t i = 0; i < chunk; i += lanes) {
        s += at(row + i) * at(first + i);
        t += at(row + i) * at(second + i);
      }
      gram[a * count + b] += sum(s);
      gram[a * count + b + 1] += sum(t);
    }
    if (b == a) gram[a * count + a] += dot(row, rows + a * chunk);
  }
}

/// Shares, moments and the slopes' own products of a chunk, and y for the others.
void add_components(const Events& events, std::size_t begin, std::size_t count, const Room& room,
                    Sums& sums) {
  const bool hessian = sums.gram != nullptr;
  const bool weighted = events.weights != nullptr;
  for (std::size_t i = 0; hessian && i < events.moving * chunk; i += lanes)
    at(room.y + i) = Reals{};
  Copies copies{room.copies};
  const double* slopes = room.slopes;
  double *moments = sums.moments, *own = sums.own;
  for (std::size_t c = 0; c < events.count; ++c) {
    const Component& component = events.components[c];
    const Shape& shape = component.shape;
    double* share = room.shares + c * chunk;
    const double* part = room.parts + c * chunk;
    for (std::size_t i = 0; i < chunk; i += lanes)
      at(share + i) = at(part + i) * at(room.inverse + i);
    const double* pull = share;
    if (weighted) {
      for (std::size_t i = 0; i < chunk; i += lanes)
        at(room.weighted + i) = at(share + i) * at(room.weights + i);
      pull = room.weighted;
    }
    sums.shares[c] += total_of(pull);
    if (count < chunk) copies.next += chunk;
    if (shape.functions == 0) continue;
    Rows rows{shape.rows, begin, nullptr};
    if (count < chunk) {  // copied when the parts were made
      rows.copied = copies.next;
      copies.next += shape.functions * chunk;
    }
    add_moments(rows, shape.functions, pull, moments);
    moments += shape.functions;
    for (std::size_t s = 0; hessian && s < shape.moving; ++s) {
      const double* slope = slopes + s * chunk;
      double* y = room.y + component.places[s] * chunk;
      for (std::size_t i = 0; i < chunk; i += lanes) {
        at(y + i) += at(share + i) * at(slope + i);
        at(room.moved + i) = at(pull + i) * at(slope + i);
      }
      for (std::size_t t = 0; t <= s; ++t)
        own[s * shape.moving + t] += dot(room.moved, slopes + t * chunk);
    }
    if (hessian) own += shape.moving * shape.moving;
    slopes += shape.moving * chunk;
  }
}

bool add(const Events& events, void (*exponentiate)(double*, std::size_t), double* memory,
         Sums& sums) {
  const Room room(events, memory);
  for (std::size_t begin = 0; begin < events.events; begin += chunk) {
    const std::size_t count = events.events - begin < chunk ? events.events - begin : chunk;
    set_parts(events, begin, count, exponentiate, room, sums.gram != nullptr);
    for (std::size_t i = count; i < chunk; ++i) room.density[i] = 1.0;
    Words good = Words{} - 1;
    for (std::size_t i = 0; i < chunk; i += lanes)
      good &= (at(room.density + i) > least_density) & (at(room.density + i) < most_density);
    for (std::size_t l = 0; l < lanes; ++l)
      if (good[l] == 0) return false;
    if (events.weights == nullptr) {
      sums.logs += sum_logs(room.density);
    } else {
      copy(events.weights + begin, count, room.weights);
      Reals total{};
      for (std::size_t i = 0; i < chunk; i += lanes)
        total += at(room.weights + i) * logarithm(at(room.density + i));
      sums.logs += sum(total);
    }
    if (sums.shares == nullptr) continue;
    for (std::size_t i = 0; i < chunk; i += lanes)
      at(room.inverse + i) = 1.0 / at(room.density + i);
    add_components(events, begin, count, room, sums);
    if (sums.gram == nullptr) continue;
    add_gram(room.shares, events.count + events.moving,
             events.weights == nullptr ? nullptr : room.weights, room.weighted, sums.gram);
  }
  return true;
}

void densities(const Events& events, void (*exponentiate)(double*, std::size_t), double* memory,
               double* out) {
  const Room room(events, memory);
  for (std::size_t begin = 0; begin < events.events; begin += chunk) {
    const std::size_t count = events.events - begin < chunk ? events.events - begin : chunk;
    set_parts(events, begin, count, exponentiate, room, false);
    for (std::size_t i = 0; i < count; ++i) out[begin + i] = room.density[i];
  }
}

void normalise(const Shape& shape, const double* weights, std::size_t events,
               void (*exponentiate)(double*, std::size_t), double* memory, double* sum_out,
               double* moments, double* own) {
  double *part = memory, *weight = part + chunk, *moved = weight + chunk, *slopes = moved + chunk;
  double* copies = slopes + chunk * shape.moving;
  for (std::size_t begin = 0; begin < events; begin += chunk) {
    const std::size_t count = events - begin < chunk ? events - begin : chunk;
    const Rows rows = rows_of(shape, begin, count, copies);
    set_exponents(shape, rows, part, own == nullptr ? nullptr : slopes);
    exponentiate(part, chunk);
    const double* given = weights + begin;
    if (count < chunk) {
      copy(given, count, weight);
      given = weight;
    }
    for (std::size_t i = 0; i < chunk; i += lanes) at(part + i) *= at(given + i);
    *sum_out += total_of(part);
    if (moments != nullptr) add_moments(rows, shape.functions, part, moments);
    for (std::size_t s = 0; own != nullptr && s < shape.moving; ++s) {
      const double* slope = slopes + s * chunk;
      for (std::size_t i = 0; i < chunk; i += lanes) at(moved + i) = at(part + i) * at(slope + i);
      for (std::size_t t = 0; t <= s; ++t)
        own[s * shape.moving + t] += dot(moved, slopes + t * chunk);
    }
  }
}

void normalise_each(const Shape& shape, const double* coefficients, std::size_t count,
                    const double* weights, std::size_t events,
                    void (*exponentiate)(double*, std::size_t), double* memory, double* sums) {
  double *parts = memory, *weight = parts + 4 * chunk, *copies = weight + chunk;
  for (std::size_t n = 0; n < count; ++n) sums[n] = 0.0;
  for (std::size_t begin = 0; begin < events; begin += chunk) {
    const std::size_t left = events - begin < chunk ? events - begin : chunk;
    const Rows rows = rows_of(shape, begin, left, copies);
    const double* given = weights + begin;
    if (left < chunk) {
      copy(given, left, weight);
      given = weight;
    }
    double* out[4] = {parts, parts + chunk, parts + 2 * chunk, parts + 3 * chunk};
    for (std::size_t n = 0; n < count; n += 4) {
      const std::size_t some = count - n < 4 ? count - n : 4;
      const double* of[4];  // the last ones again where there are fewer
      for (std::size_t c = 0; c < 4; ++c)
        of[c] = coefficients + (n + (c < some ? c : some - 1)) * shape.functions;
      combine<4>(rows, shape.functions, of, out);
      exponentiate(parts, some * chunk);
      for (std::size_t c = 0; c < some; ++c) sums[n + c] += dot(out[c], given);
    }
  }
}

}  // namespace

NEYMAN_DEFINE_KERNELS(add, densities, normalise, normalise_each);

}  // namespace neyman::unbinned
