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

typedef std::uint64_t Bits __attribute__((vector_size(8 * lanes), aligned(8), may_alias));
inline std::uint64_t bits_of(double value) {
  std::uint64_t out;
  __builtin_memcpy(&out, &value, sizeof out);
  return out;
}

void copy(const double* from, std::size_t count, double* to) {
  for (std::size_t i = 0; i < count; ++i) to[i] = from[i];
  for (std::size_t i = count; i < chunk; ++i) to[i] = 0.0;
}

/// The weights of a chunk of events that begins here, in `room` with zeros where events end in it.
const double* weights_of(const double* weights, std::size_t begin, std::size_t count,
                         double* room) {
  if (count == chunk) return weights + begin;
  copy(weights + begin, count, room);
  return room;
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

// Rows of products that are summed in registers together, and rows whose products with each other
// are.
#if defined(__AVX512F__)
constexpr std::size_t block = 4, most_triangle = 6;
#else
constexpr std::size_t block = 2, most_triangle = 3;
#endif

/// Of rows a and b: sums[r][c] += Σ w a_r b_c over a chunk in lanes. Rows of sums are `stride`
/// apart.
template <std::size_t rows, std::size_t columns, bool weighted>
inline __attribute__((always_inline)) void add_block(const double* const* a, const double* const* b,
                                                     const double* weights, Reals* sums,
                                                     std::size_t stride) {
  Reals total[rows * columns];
#pragma GCC unroll 16
  for (std::size_t k = 0; k < rows * columns; ++k)
    total[k] = sums[k / columns * stride + k % columns];
  for (std::size_t i = 0; i < chunk; i += lanes) {
    Reals left[rows], right[columns];
#pragma GCC unroll 4
    for (std::size_t r = 0; r < rows; ++r) {
      left[r] = at(a[r] + i);
      if (weighted) left[r] *= at(weights + i);
    }
#pragma GCC unroll 4
    for (std::size_t c = 0; c < columns; ++c) right[c] = at(b[c] + i);
#pragma GCC unroll 16
    for (std::size_t k = 0; k < rows * columns; ++k)
      total[k] += left[k / columns] * right[k % columns];
  }
#pragma GCC unroll 16
  for (std::size_t k = 0; k < rows * columns; ++k)
    sums[k / columns * stride + k % columns] = total[k];
}

/// The same of rows with themselves, for c <= r.
template <std::size_t rows, bool weighted>
inline __attribute__((always_inline)) void add_triangle(const double* const* a,
                                                        const double* weights, Reals* sums,
                                                        std::size_t stride) {
  Reals total[rows][rows];
#pragma GCC unroll 6
  for (std::size_t r = 0; r < rows; ++r)
#pragma GCC unroll 6
    for (std::size_t c = 0; c <= r; ++c) total[r][c] = sums[r * stride + c];
  for (std::size_t i = 0; i < chunk; i += lanes) {
    Reals value[rows];
#pragma GCC unroll 6
    for (std::size_t r = 0; r < rows; ++r) {
      value[r] = at(a[r] + i);
      const Reals left = weighted ? value[r] * at(weights + i) : value[r];
#pragma GCC unroll 6
      for (std::size_t c = 0; c <= r; ++c) total[r][c] += left * value[c];
    }
  }
#pragma GCC unroll 6
  for (std::size_t r = 0; r < rows; ++r)
#pragma GCC unroll 6
    for (std::size_t c = 0; c <= r; ++c) sums[r * stride + c] = total[r][c];
}

template <std::size_t rows, bool weighted>
inline __attribute__((always_inline)) void add_columns(std::size_t columns, const double* const* a,
                                                       const double* const* b,
                                                       const double* weights, Reals* sums,
                                                       std::size_t stride) {
  if (columns == 1) return add_block<rows, 1, weighted>(a, b, weights, sums, stride);
  if (columns == 2) return add_block<rows, 2, weighted>(a, b, weights, sums, stride);
  if (columns == 3) return add_block<rows, 3, weighted>(a, b, weights, sums, stride);
  add_block<rows, 4, weighted>(a, b, weights, sums, stride);
}

template <bool weighted>
void add_rows(std::size_t rows, std::size_t columns, const double* const* a, const double* const* b,
              const double* weights, Reals* sums, std::size_t stride) {
  if (rows == 1) return add_columns<1, weighted>(columns, a, b, weights, sums, stride);
  if (rows == 2) return add_columns<2, weighted>(columns, a, b, weights, sums, stride);
  if (rows == 3) return add_columns<3, weighted>(columns, a, b, weights, sums, stride);
  add_columns<4, weighted>(columns, a, b, weights, sums, stride);
}

template <bool weighted>
void add_triangle(std::size_t rows, const double* const* a, const double* weights, Reals* sums,
                  std::size_t stride) {
  if (rows == 1) return add_triangle<1, weighted>(a, weights, sums, stride);
  if (rows == 2) return add_triangle<2, weighted>(a, weights, sums, stride);
  if (rows == 3) return add_triangle<3, weighted>(a, weights, sums, stride);
  if (rows == 4) return add_triangle<4, weighted>(a, weights, sums, stride);
  if (rows == 5) return add_triangle<5, weighted>(a, weights, sums, stride);
  add_triangle<6, weighted>(a, weights, sums, stride);
}

/// Σ a_r b_c over a chunk, added in lanes to sums (rows × stride): all of them, or, of as many rows
/// as columns, those with c <= r and some more. `a` and `b` give the rows of their indices.
template <typename Left, typename Right>
void add_products(std::size_t rows, std::size_t columns, bool lower, const Left& a, const Right& b,
                  Reals* sums, std::size_t stride) {
  for (std::size_t r = 0; r < rows; r += block) {
    const double *left[block], *right[block];
    const std::size_t height = rows - r < block ? rows - r : block;
    for (std::size_t k = 0; k < height; ++k) left[k] = a(r + k);
    const std::size_t end = lower ? r + height : columns;
    for (std::size_t c = 0; c < end; c += block) {
      const std::size_t width = end - c < block ? end - c : block;
      for (std::size_t k = 0; k < width; ++k) right[k] = b(c + k);
      add_rows<false>(height, width, left, right, nullptr, sums + r * stride + c, stride);
    }
  }
}

/// Σ w a_r a_c (c <= r) over a chunk, added in lanes to sums (rows × stride).
template <typename Row>
void add_squares(std::size_t rows, const Row& a, const double* weights, Reals* sums,
                 std::size_t stride) {
  const std::size_t step = rows <= most_triangle ? rows : block;
  for (std::size_t r = 0; r < rows; r += step) {
    const double *left[most_triangle], *right[block];
    const std::size_t height = rows - r < step ? rows - r : step;
    for (std::size_t k = 0; k < height; ++k) left[k] = a(r + k);
    for (std::size_t c = 0; c < r; c += block) {  // a whole number of blocks
      for (std::size_t k = 0; k < block; ++k) right[k] = a(c + k);
      Reals* to = sums + r * stride + c;
      if (weights == nullptr)
        add_rows<false>(height, block, left, right, weights, to, stride);
      else
        add_rows<true>(height, block, left, right, weights, to, stride);
    }
    Reals* to = sums + r * stride + r;
    if (weights == nullptr)
      add_triangle<false>(height, left, weights, to, stride);
    else
      add_triangle<true>(height, left, weights, to, stride);
  }
}

inline __attribute__((always_inline)) void add_total(const double* a, Reals& sum) {
  Reals total = sum;
  for (std::size_t i = 0; i < chunk; i += lanes) total += at(a + i);
  sum = total;
}

/// Memory for sums in lanes, and what it starts at for rows.
double* aligned(double* memory) {
  constexpr std::uintptr_t line = 64;
  return reinterpret_cast<double*>((reinterpret_cast<std::uintptr_t>(memory) + line - 1) / line *
                                   line);
}

/// Σ a f_k for every k.
void add_moments(const Rows& rows, std::size_t functions, const double* a, Reals* sums) {
  const auto left = [a](std::size_t) { return a; };
  add_products(1, functions, false, left, rows, sums, functions);
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

/// Σ log of positive normal numbers: the product of their mantissas in [1, 2) and the sum of their
/// exponents, in lanes.
struct Logs {
  Reals mantissas = Reals{} + 1.0;
  Words exponents = {};
  std::size_t count = 0;  // in each lane

  static constexpr std::int64_t mantissa = 0x000fffffffffffffLL, one = 0x3ff0000000000000LL;
  static constexpr std::int64_t bias = 1023;

  inline __attribute__((always_inline)) void split() {
    const Words bits = reinterpret_cast<const Words&>(mantissas);
    exponents += (bits >> 52) - bias;
    const Words fraction = (bits & mantissa) | one;
    mantissas = reinterpret_cast<const Reals&>(fraction);
  }
  double value() const {
    double powers = 0.0;
    for (std::size_t l = 0; l < lanes; ++l) powers += static_cast<double>(exponents[l]);
    powers -= static_cast<double>(bias) * static_cast<double>(count * lanes);
    return sum(logarithm(mantissas)) + powers * 0.693147180559945309417;
  }
};

std::size_t count_slopes(const Events& events) {
  std::size_t out = 0;
  for (std::size_t c = 0; c < events.count; ++c) out += events.components[c].shape.moving;
  return out;
}

/// What a component is made of in a chunk: its part is scale · ratio · exponential. The rows of the
/// last events are copied, with zeros beyond them.
struct Part {
  const double* ratios;
  const double* exponentials;  // null: all 1
  Rows rows;
};

/// Memory of a chunk, in rows of it, and of the sums in lanes. `y` are the shares of the components
/// and then the moved ones; `copies` are of the last events.
struct Room {
  double *y, *slopes, *moved, *weighted, *weights, *pad, *copies;
  Reals *shares, *moments, *own, *gram;
  Part* parts;
  Room(const Events& events, std::size_t functions, std::size_t own_products, double* memory) {
    const std::size_t width = events.count + events.moving, directions = count_slopes(events);
    shares = reinterpret_cast<Reals*>(aligned(memory));
    moments = shares + events.count;
    own = moments + functions;
    gram = own + own_products;
    y = reinterpret_cast<double*>(gram + width * width);
    for (Reals* lane = shares; lane != gram + width * width; ++lane) *lane = Reals{};
    slopes = y + chunk * width;
    moved = slopes + chunk * directions;
    weighted = moved + chunk * directions;
    weights = weighted + chunk;
    pad = weights + chunk;
    parts = reinterpret_cast<Part*>(pad + chunk);
    copies = pad + chunk * (1 + events.count);  // a row has place for a part
  }
};

Room room_of(const Events& events, double* memory) {
  std::size_t functions = 0, own = 0;
  for (std::size_t c = 0; c < events.count; ++c) {
    const Shape& shape = events.components[c].shape;
    functions += shape.functions;
    own += shape.moving * shape.moving;
  }
  return Room(events, functions, own, memory);
}

/// One component after the other.
struct Parts {
  const Events& events;
  const Room& room;
  std::size_t begin, count;
  double* copies;

  Parts(const Events& of, const Room& memory, std::size_t first, std::size_t size)
      : events(of), room(memory), begin(first), count(size), copies(memory.copies) {}
  /// The ratios and functions.
  Part next(std::size_t c, bool copied) {
    const Component& component = events.components[c];
    Part out{component.ratios + begin, nullptr, {component.shape.rows, begin, nullptr}};
    if (count == chunk) return out;
    out.ratios = copies;
    out.rows.copied = copies + chunk;
    if (!copied) {
      copy(component.ratios + begin, count, copies);
      rows_of(component.shape, begin, count, copies + chunk);
    }
    copies += (component.shape.functions + 1) * chunk;
    return out;
  }
};

bool all_zero(const double* values, std::size_t count) {
  for (std::size_t k = 0; k < count; ++k)
    if (values[k] != 0.0) return false;
  return true;
}

/// The exponentials of all components, in their rows of y, and the directions where they are
/// wanted.
void set_parts(const Events& events, std::size_t begin, std::size_t count,
               void (*exponentiate)(double*, std::size_t), const Room& room, bool with_slopes) {
  Parts parts(events, room, begin, count);
  double* slopes = room.slopes;
  for (std::size_t c = 0; c < events.count; ++c) {
    const Shape& shape = events.components[c].shape;
    Part& part = room.parts[c];
    part = parts.next(c, false);
    if (shape.functions == 0) continue;
    double* to = with_slopes && shape.slopes != nullptr ? slopes : nullptr;
    slopes += shape.moving * chunk;
    // At the nominal point of the shape every exponent is zero.
    const bool nominal = all_zero(shape.coefficients, shape.functions);
    if (nominal && to == nullptr) continue;
    double* exponentials = room.y + c * chunk;
    set_exponents(shape, part.rows, exponentials, to);
    if (nominal) continue;
    exponentiate(exponentials, chunk);
    part.exponentials = exponentials;
  }
}

inline __attribute__((always_inline)) Reals value_of(const Part& part, double scale,
                                                     std::size_t i) {
  const Reals value = scale * at(part.ratios + i);
  return part.exponentials == nullptr ? value : at(part.exponentials + i) * value;
}

/// Adds the logarithms of the densities of a chunk, and the shares of the components, which become
/// rows of y. False where a density is not positive. `fixed` is the number of components, or zero:
/// any.
template <std::size_t fixed>
bool share_out(const Events& events, const Room& room, const double* weights, const double* pad,
               bool shares, Logs& logs, Reals& weighted_logs) {
  const std::size_t components = fixed == 0 ? events.count : fixed;
  // As whole numbers the bits of positive numbers have their order, and those of others are
  // negative.
  const Bits least = Bits{} + bits_of(least_density), most = Bits{} + bits_of(most_density);
  Bits bad{};
  Reals mantissas = logs.mantissas, total[fixed + 1], value[fixed + 1];
  Words exponents = logs.exponents;
  Part parts[fixed + 1];
  double scales[fixed + 1];
  for (std::size_t c = 0; c < fixed; ++c) {
    total[c] = room.shares[c];
    parts[c] = room.parts[c];
    scales[c] = events.components[c].scale;
  }
  for (std::size_t i = 0; i < chunk; i += lanes) {
    Reals density{};
    for (std::size_t c = 0; c < components; ++c) {
      if constexpr (fixed == 0) {
        const Reals here = value_of(room.parts[c], events.components[c].scale, i);
        at(room.y + c * chunk + i) = here;
        density += here;
      } else {
        value[c] = value_of(parts[c], scales[c], i);
        density += value[c];
      }
    }
    if (pad != nullptr) density += at(pad + i);
    const Bits bits = reinterpret_cast<const Bits&>(density);
    bad |= bits | (bits - least) | (most - bits);
    if (weights == nullptr) {
      const Words words = reinterpret_cast<const Words&>(density);
      const Words fraction = (words & Logs::mantissa) | Logs::one;
      mantissas *= reinterpret_cast<const Reals&>(fraction);
      exponents += words >> 52;
    } else {
      weighted_logs += at(weights + i) * logarithm(density);
    }
    if (!shares) continue;
    const Reals inverse = 1.0 / density;
    for (std::size_t c = 0; c < components; ++c) {
      double* to = room.y + c * chunk + i;
      const Reals share = (fixed == 0 ? at(to) : value[fixed == 0 ? 0 : c]) * inverse;
      at(to) = share;
      const Reals pull = weights == nullptr ? share : share * at(weights + i);
      if constexpr (fixed == 0)
        room.shares[c] += pull;
      else
        total[c] += pull;
    }
  }
  for (std::size_t l = 0; l < lanes; ++l)
    if (bad[l] >> 63 != 0) return false;
  for (std::size_t c = 0; c < fixed; ++c) room.shares[c] = total[c];
  logs.mantissas = mantissas;
  logs.exponents = exponents;
  if (weights != nullptr) return true;
  logs.count += chunk / lanes;
  logs.split();
  return true;
}

bool share_out(const Events& events, std::size_t begin, std::size_t count, const Room& room,
               bool shares, Logs& logs, Reals& weighted_logs) {
  const double *weights = nullptr, *pad = nullptr;
  if (events.weights != nullptr) {
    copy(events.weights + begin, count, room.weights);
    weights = room.weights;
  }
  if (count < chunk) {
    for (std::size_t i = 0; i < chunk; ++i) room.pad[i] = i < count ? 0.0 : 1.0;
    pad = room.pad;
  }
  if (events.count == 1)
    return share_out<1>(events, room, weights, pad, shares, logs, weighted_logs);
  if (events.count == 2)
    return share_out<2>(events, room, weights, pad, shares, logs, weighted_logs);
  if (events.count == 3)
    return share_out<3>(events, room, weights, pad, shares, logs, weighted_logs);
  if (events.count == 4)
    return share_out<4>(events, room, weights, pad, shares, logs, weighted_logs);
  return share_out<0>(events, room, weights, pad, shares, logs, weighted_logs);
}

/// y = a b.
inline __attribute__((always_inline)) void multiply(const double* a, const double* b, double* y) {
  for (std::size_t i = 0; i < chunk; i += lanes) at(y + i) = at(a + i) * at(b + i);
}

/// y = a b, what it is with weights where there are some, and its sum.
inline __attribute__((always_inline)) void multiply(const double* a, const double* b,
                                                    const double* weights, double* y,
                                                    double* weighted, Reals& sum) {
  Reals total = sum;
  if (weights == nullptr) {
    for (std::size_t i = 0; i < chunk; i += lanes) {
      const Reals product = at(a + i) * at(b + i);
      at(y + i) = product;
      total += product;
    }
  } else {
    for (std::size_t i = 0; i < chunk; i += lanes) {
      const Reals product = at(a + i) * at(b + i), pull = product * at(weights + i);
      at(y + i) = product;
      at(weighted + i) = pull;
      total += pull;
    }
  }
  sum = total;
}

/// Moments and the directions' own products of a chunk, and y, of the shares.
void add_components(const Events& events, std::size_t begin, std::size_t count, const Room& room,
                    bool hessian) {
  const double* weights = events.weights == nullptr ? nullptr : room.weights;
  double* y = room.y + events.count * chunk;
  bool shared = false;
  for (std::size_t c = 0; c < events.count; ++c)
    shared = shared || events.components[c].shape.slopes != nullptr;
  for (std::size_t i = 0; hessian && shared && i < events.moving * chunk; i += lanes)
    at(y + i) = Reals{};
  Parts parts(events, room, begin, count);
  const double* slopes = room.slopes;
  Reals *moments = room.moments, *own = room.own;
  for (std::size_t c = 0; c < events.count; ++c) {
    const Component& component = events.components[c];
    const Shape& shape = component.shape;
    const Rows rows = parts.next(c, true).rows;
    if (shape.functions == 0) continue;
    const double *share = room.y + c * chunk, *pull = share;
    if (weights != nullptr && (!hessian || shape.slopes != nullptr)) {
      multiply(share, weights, room.weighted);
      pull = room.weighted;
    }
    if (!hessian) {
      add_moments(rows, shape.functions, pull, moments);
    } else if (shape.slopes == nullptr) {
      const double* moved = weights == nullptr ? y + component.places[0] * chunk : room.moved;
      for (std::size_t k = 0; k < shape.functions; ++k)
        multiply(share, rows(k), weights, y + component.places[k] * chunk, room.moved + k * chunk,
                 moments[k]);
      const auto left = [moved](std::size_t s) { return moved + s * chunk; };
      add_products(shape.moving, shape.moving, true, left, rows, own, shape.moving);
    } else {
      add_moments(rows, shape.functions, pull, moments);
      for (std::size_t s = 0; s < shape.moving; ++s) {
        const double* slope = slopes + s * chunk;
        double* to = y + component.places[s] * chunk;
        double* moved = room.moved + s * chunk;
        for (std::size_t i = 0; i < chunk; i += lanes) {
          at(to + i) += at(share + i) * at(slope + i);
          at(moved + i) = at(pull + i) * at(slope + i);
        }
      }
      const auto left = [&room](std::size_t s) { return room.moved + s * chunk; };
      const auto right = [slopes](std::size_t s) { return slopes + s * chunk; };
      add_products(shape.moving, shape.moving, true, left, right, own, shape.moving);
    }
    moments += shape.functions;
    own += shape.moving * shape.moving;
    slopes += shape.moving * chunk;
  }
}

/// The component whose row of the gram is not summed: the largest, for the least rounding.
std::size_t largest(const Events& events) {
  std::size_t out = 0;
  for (std::size_t c = 1; c < events.count; ++c)
    if (std::fabs(events.components[c].scale) > std::fabs(events.components[out].scale)) out = c;
  return out;
}

/// The sums of the lanes, and the row of the gram that was left out: the shares of an event have
/// the sum 1.
void finish(const Events& events, const Room& room, std::size_t left_out, Sums& sums) {
  for (std::size_t c = 0; c < events.count; ++c) sums.shares[c] += sum(room.shares[c]);
  const Reals *moment = room.moments, *own = room.own;
  for (std::size_t c = 0, k = 0, o = 0; c < events.count; ++c) {
    const Shape& shape = events.components[c].shape;
    for (std::size_t f = 0; f < shape.functions; ++f, ++k) sums.moments[k] += sum(moment[k]);
    for (std::size_t s = 0; sums.gram != nullptr && s < shape.moving; ++s)
      for (std::size_t t = 0; t <= s; ++t)
        sums.own[o + s * shape.moving + t] += sum(own[s * shape.moving + t]);
    o += shape.moving * shape.moving;
    own += shape.moving * shape.moving;
  }
  if (sums.gram == nullptr) return;
  // Of all rows but one; `total` becomes Σ w y less what the other components have of it.
  const std::size_t width = events.count + events.moving;
  double* total = room.y;
  for (std::size_t a = 0; a < width; ++a) total[a] = 0.0;
  for (std::size_t c = 0; c < events.count; ++c) total[c] = sum(room.shares[c]);
  for (std::size_t c = 0; c < events.count; ++c) {
    const Component& component = events.components[c];
    const Shape& shape = component.shape;
    for (std::size_t s = 0; s < shape.moving; ++s)
      for (std::size_t k = 0; k < shape.functions; ++k)
        total[events.count + component.places[s]] +=
            (shape.slopes == nullptr ? (s == k ? 1.0 : 0.0)
                                     : shape.slopes[s * shape.functions + k]) *
            sum(moment[k]);
    moment += shape.functions;
  }
  const auto row_of = [left_out](std::size_t r) { return r < left_out ? r : r + 1; };
  for (std::size_t r = 0; r + 1 < width; ++r)
    for (std::size_t q = 0; q <= r; ++q) {
      const std::size_t a = row_of(r), b = row_of(q);
      const double value = sum(room.gram[r * width + q]);
      sums.gram[a * width + b] += value;
      if (b < events.count) total[a] -= value;
      if (a < events.count && a != b) total[b] -= value;
    }
  for (std::size_t a = 0; a < width; ++a) {
    if (a == left_out) continue;
    sums.gram[a > left_out ? a * width + left_out : left_out * width + a] += total[a];
    if (a < events.count) total[left_out] -= total[a];
  }
  sums.gram[left_out * width + left_out] += total[left_out];
}

bool add(const Events& events, void (*exponentiate)(double*, std::size_t), double* memory,
         Sums& sums) {
  const Room room = room_of(events, memory);
  const std::size_t width = events.count + events.moving, left_out = largest(events);
  const bool hessian = sums.gram != nullptr;
  Logs logs;
  Reals weighted_logs{};
  for (std::size_t begin = 0; begin < events.events; begin += chunk) {
    const std::size_t count = events.events - begin < chunk ? events.events - begin : chunk;
    set_parts(events, begin, count, exponentiate, room, hessian);
    if (!share_out(events, begin, count, room, sums.shares != nullptr, logs, weighted_logs))
      return false;
    if (sums.shares == nullptr) continue;
    add_components(events, begin, count, room, hessian);
    if (!hessian) continue;
    const auto row = [&room, left_out](std::size_t r) {
      return room.y + (r < left_out ? r : r + 1) * chunk;
    };
    add_squares(width - 1, row, events.weights == nullptr ? nullptr : room.weights, room.gram,
                width);
  }
  sums.logs += events.weights == nullptr ? logs.value() : sum(weighted_logs);
  if (sums.shares != nullptr) finish(events, room, left_out, sums);
  return true;
}

void densities(const Events& events, void (*exponentiate)(double*, std::size_t), double* memory,
               double* out) {
  const Room room = room_of(events, memory);
  for (std::size_t begin = 0; begin < events.events; begin += chunk) {
    const std::size_t count = events.events - begin < chunk ? events.events - begin : chunk;
    set_parts(events, begin, count, exponentiate, room, false);
    for (std::size_t i = 0; i < chunk; i += lanes) {
      Reals density{};
      for (std::size_t c = 0; c < events.count; ++c)
        density += value_of(room.parts[c], events.components[c].scale, i);
      at(room.pad + i) = density;
    }
    for (std::size_t i = 0; i < count; ++i) out[begin + i] = room.pad[i];
  }
}

void normalise(const Shape& shape, const double* weights, std::size_t events,
               void (*exponentiate)(double*, std::size_t), double* memory, double* sum_out,
               double* moments, double* own) {
  const std::size_t directions = own == nullptr ? 0 : shape.moving;
  Reals* lane = reinterpret_cast<Reals*>(aligned(memory));
  Reals *total = lane, *of_functions = total + 1, *of_slopes = of_functions + shape.functions;
  double* part = reinterpret_cast<double*>(of_slopes + directions * directions);
  for (; lane != reinterpret_cast<Reals*>(part); ++lane) *lane = Reals{};
  double *weight = part + chunk, *slopes = weight + chunk, *moved = slopes + chunk * directions,
         *copies = moved + chunk * directions;
  for (std::size_t begin = 0; begin < events; begin += chunk) {
    const std::size_t count = events - begin < chunk ? events - begin : chunk;
    const Rows rows = rows_of(shape, begin, count, copies);
    set_exponents(shape, rows, part, own == nullptr ? nullptr : slopes);
    exponentiate(part, chunk);
    const double* given = weights_of(weights, begin, count, weight);
    for (std::size_t i = 0; i < chunk; i += lanes) at(part + i) *= at(given + i);
    add_total(part, *total);
    if (moments != nullptr) add_moments(rows, shape.functions, part, of_functions);
    if (own == nullptr) continue;
    for (std::size_t s = 0; s < directions; ++s)
      multiply(part, slopes + s * chunk, moved + s * chunk);
    const auto left = [moved](std::size_t s) { return moved + s * chunk; };
    const auto right = [slopes](std::size_t s) { return slopes + s * chunk; };
    add_products(directions, directions, true, left, right, of_slopes, directions);
  }
  *sum_out += sum(*total);
  for (std::size_t k = 0; moments != nullptr && k < shape.functions; ++k)
    moments[k] += sum(of_functions[k]);
  for (std::size_t s = 0; s < directions; ++s)
    for (std::size_t t = 0; t <= s; ++t)
      own[s * directions + t] += sum(of_slopes[s * directions + t]);
}

void normalise_each(const Shape& shape, const double* coefficients, std::size_t count,
                    const double* weights, std::size_t events,
                    void (*exponentiate)(double*, std::size_t), double* memory, double* sums) {
  constexpr std::size_t together = 4, many = 32;
  double *parts = aligned(memory), *weight = parts + together * chunk, *copies = weight + chunk;
  double* out[together] = {parts, parts + chunk, parts + 2 * chunk, parts + 3 * chunk};
  for (std::size_t first = 0; first < count; first += many) {
    const std::size_t end = count - first < many ? count : first + many;
    Reals total[many] = {};
    for (std::size_t begin = 0; begin < events; begin += chunk) {
      const std::size_t left = events - begin < chunk ? events - begin : chunk;
      const Rows rows = rows_of(shape, begin, left, copies);
      const double* given = weights_of(weights, begin, left, weight);
      for (std::size_t n = first; n < end; n += together) {
        const std::size_t some = end - n < together ? end - n : together;
        const double* of[together];  // the last ones again where there are fewer
        for (std::size_t c = 0; c < together; ++c)
          of[c] = coefficients + (n + (c < some ? c : some - 1)) * shape.functions;
        combine<together>(rows, shape.functions, of, out);
        exponentiate(parts, some * chunk);
        add_block<1, together, false>(&given, out, nullptr, total + (n - first), together);
      }
    }
    for (std::size_t n = first; n < end; ++n) sums[n] = sum(total[n - first]);
  }
}

void normalise_lattice(const Shape& shape, const double* nodes, std::size_t count,
                       const double* weights, std::size_t events,
                       void (*exponentiate)(double*, std::size_t), double* memory, double* sums) {
  const std::size_t dimensions = shape.moving;
  std::size_t outer = 1;  // nodes of all directions but the last
  for (std::size_t d = 1; d < dimensions; ++d) outer *= count;
  Reals* total = reinterpret_cast<Reals*>(aligned(memory));
  for (std::size_t n = 0; n < outer * count; ++n) total[n] = Reals{};
  double* products = reinterpret_cast<double*>(total + outer * count);
  double *spare = products + chunk * outer, *slopes = spare + chunk * outer,
         *powers = slopes + chunk * dimensions, *weight = powers + chunk * dimensions * count,
         *copies = weight + chunk;
  for (std::size_t begin = 0; begin < events; begin += chunk) {
    const std::size_t left = events - begin < chunk ? events - begin : chunk;
    const Rows rows = rows_of(shape, begin, left, copies);
    const double* given = weights_of(weights, begin, left, weight);
    double *from = products, *to = spare;
    set_exponents(shape, rows, from, slopes);
    exponentiate(from, chunk);
    // The nodes below the middle have the inverse of those above it.
    const std::size_t half = (count + 1) / 2;
    for (std::size_t d = 0; d < dimensions; ++d) {
      double* power = powers + d * count * chunk;
      for (std::size_t n = 0; n < half; ++n)
        for (std::size_t i = 0; i < chunk; i += lanes)
          at(power + n * chunk + i) = nodes[n] * at(slopes + d * chunk + i);
      exponentiate(power, half * chunk);
      for (std::size_t n = half; n < count; ++n)
        for (std::size_t i = 0; i < chunk; i += lanes)
          at(power + n * chunk + i) = 1.0 / at(power + (count - 1 - n) * chunk + i);
    }
    multiply(from, given, from);
    for (std::size_t d = 0, size = 1; d + 1 < dimensions; ++d, size *= count) {
      for (std::size_t m = 0; m < size * count; ++m)
        multiply(from + m / count * chunk, powers + (d * count + m % count) * chunk,
                 to + m * chunk);
      double* const swapped = from;
      from = to;
      to = swapped;
    }
    const double* last = powers + (dimensions - 1) * count * chunk;
    const auto a = [from](std::size_t r) { return from + r * chunk; };
    const auto b = [last](std::size_t c) { return last + c * chunk; };
    add_products(outer, count, false, a, b, total, count);
  }
  for (std::size_t n = 0; n < outer * count; ++n) sums[n] = sum(total[n]);
}

}  // namespace

NEYMAN_DEFINE_KERNELS(add, densities, normalise, normalise_each, normalise_lattice);

}  // namespace neyman::unbinned
