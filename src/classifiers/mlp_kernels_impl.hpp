// The kernels of mlp_kernels.hpp in vectors of the compiler; included once for each instruction
// set, by a source that defines NEYMAN_KERNELS_ISA and is compiled with the options of that set.
// Everything here has internal linkage: no function compiled for one set can serve another.
#include "classifiers/mlp_kernels.hpp"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace neyman::mlp {
namespace {

template <std::size_t lanes>
struct VectorOf {
  typedef float type __attribute__((vector_size(lanes * 4)));
  typedef float loose __attribute__((vector_size(lanes * 4), aligned(4), may_alias));
  typedef std::int32_t integer __attribute__((vector_size(lanes * 4)));
};

#if defined(__AVX512F__)
constexpr std::size_t lanes = 16;
constexpr std::size_t block_rows = 8;  // 8 rows of 3 vectors in the 32 registers
#elif defined(__AVX__)
constexpr std::size_t lanes = 8;
constexpr std::size_t block_rows = 4;  // 4 rows of 3 vectors in the 16 registers
#else
constexpr std::size_t lanes = 4;
constexpr std::size_t block_rows = 4;
#endif
constexpr std::size_t strip_vectors = 3;

using Vector = VectorOf<lanes>::type;
using Unit = VectorOf<unit>::type;

#define NEYMAN_INLINE inline __attribute__((always_inline))

template <class T>
constexpr std::size_t lanes_of = sizeof(T) / sizeof(float);
template <class T>
using IntegersOf = typename VectorOf<lanes_of<T>>::integer;

template <class T>
NEYMAN_INLINE T load(const float* from) {
  return *reinterpret_cast<const typename VectorOf<lanes_of<T>>::loose*>(from);
}
template <class T>
NEYMAN_INLINE void store(float* to, T value) {
  *reinterpret_cast<typename VectorOf<lanes_of<T>>::loose*>(to) = value;
}
template <class T>
NEYMAN_INLINE T splat(float value) {
  return value - T{};  // and not T{} + value, which would turn -0 into 0
}

// Half a vector keeps a multiplier as busy as a whole one, so that two rows share the vector in
// which their last units are summed.
#if defined(__AVX512F__)
NEYMAN_INLINE Vector pair_of(Unit first, Unit second) {
  return (Vector)_mm512_insertf32x8(_mm512_castps256_ps512((__m256)first), (__m256)second, 1);
}
NEYMAN_INLINE Vector twice(const float* from) {
  return (Vector)_mm512_broadcast_f32x8(_mm256_loadu_ps(from));
}
/// The first unit of one vector and the second of another.
NEYMAN_INLINE Vector mixed(Vector first, Vector second) {
  return (Vector)_mm512_mask_blend_ps(0xff00, (__m512)first, (__m512)second);
}
NEYMAN_INLINE Unit first_of(Vector v) { return (Unit)_mm512_castps512_ps256((__m512)v); }
NEYMAN_INLINE Unit second_of(Vector v) { return (Unit)_mm512_extractf32x8_ps((__m512)v, 1); }
/// A number in all lanes, once and for all: compilers would fill both halves of a mixture anew.
NEYMAN_INLINE Vector in_register(Vector v) {
  asm("" : "+v"(v));
  return v;
}
#else  // no vector is wider than a unit: named, but never called
NEYMAN_INLINE Vector pair_of(Unit, Unit) { return Vector{}; }
NEYMAN_INLINE Vector twice(const float*) { return Vector{}; }
NEYMAN_INLINE Vector mixed(Vector, Vector) { return Vector{}; }
NEYMAN_INLINE Unit first_of(Vector) { return Unit{}; }
NEYMAN_INLINE Unit second_of(Vector) { return Unit{}; }
NEYMAN_INLINE Vector in_register(Vector) { return Vector{}; }
#endif

/// a > b ? a : b in one instruction where the compiler, mindful of NaN, takes two.
template <class T>
NEYMAN_INLINE T larger(T a, T b) {
#if defined(__AVX512F__)
  if constexpr (lanes_of<T> == 16) return (T)_mm512_max_ps((__m512)a, (__m512)b);
#endif
#if defined(__AVX__)
  if constexpr (lanes_of<T> == 8) return (T)_mm256_max_ps((__m256)a, (__m256)b);
#endif
#if defined(__SSE2__)
  if constexpr (lanes_of<T> == 4) return (T)_mm_max_ps((__m128)a, (__m128)b);
#endif
  return a > b ? a : b;
}

/// x moved into ±limit.
template <class T>
NEYMAN_INLINE T clamp(T x, float limit) {
#if defined(__AVX512DQ__)
  // the smaller of two absolute values, with the sign of x
  if constexpr (lanes_of<T> == 16)
    return (T)_mm512_range_ps((__m512)x, _mm512_set1_ps(limit), 0b0010);
#endif
  return -larger(-larger(x, splat<T>(-limit)), splat<T>(-limit));
}

/// 1/x to about 1e-7 for 1e-37 < x < 1e37: an estimate and a step of Newton are cheaper than the
/// division, which the pipes of multiplication would have to wait for.
NEYMAN_INLINE VectorOf<4>::type reciprocal(VectorOf<4>::type x) { return 1.0f / x; }
NEYMAN_INLINE VectorOf<8>::type reciprocal(VectorOf<8>::type x) {
#if defined(__AVX512VL__)
  const Unit r = (Unit)_mm256_rcp14_ps((__m256)x);
  return r * (2.0f - x * r);
#else
  return 1.0f / x;
#endif
}
#if defined(__AVX512F__)
NEYMAN_INLINE VectorOf<16>::type reciprocal(VectorOf<16>::type x) {
  const Vector r = (Vector)_mm512_rcp14_ps((__m512)x);
  return r * (2.0f - x * r);
}
#endif

/// exp(x), x in [-87, 87] after clamping: x = n log 2 + r, a polynomial in r, 2^n in the exponent.
template <class T>
NEYMAN_INLINE T exponential(T x) {
  x = clamp(x, 87.0f);
  constexpr float to_integer = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  const T shifted = x * 1.44269504f + to_integer;
  const T n = shifted - to_integer;
  const T r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  T p = r * 8.312520223e-3f + 4.189015694e-2f;
  p = p * r + 1.666711465e-1f;
  p = p * r + 4.999923149e-1f;
  p = p * (r * r) + r + 1.0f;
  const auto exponent = ((IntegersOf<T>)shifted - 0x4B400000) << 23;
  const auto bits = (IntegersOf<T>)p + exponent;
  return (T)bits;
}

/// tanh(x) as x P(x²)/Q(x²), a minimax fit of the relative error on |x| < 8.1; 1 beyond.
template <class T>
NEYMAN_INLINE T hyperbolic_tangent(T x) {
  x = clamp(x, 8.1f);
  const T u = x * x;
  T p = u * 1.132542189e-5f + 2.941535439e-3f;
  p = p * u + 1.291684699e-1f;
  p = p * u + 9.999998382e-1f;
  T q = u * 2.426206241e-7f + 2.373253007e-4f;
  q = q * u + 2.377678894e-2f;
  q = q * u + 4.625005057e-1f;
  q = q * u + 1.0f;
  return x * p * reciprocal(q);
}

/// 1 / (1 + exp(−x)).
template <class T>
NEYMAN_INLINE T sigmoid(T x) {
#if defined(__AVX512DQ__)
  // 2^t with t = −x log₂e = ⌊t⌋ + f: the set has instructions for f and for the product with 2^⌊t⌋
  const __m512 t = _mm512_min_ps((__m512)(x * -1.44269504f), _mm512_set1_ps(120.0f));
  const T f = (T)_mm512_reduce_ps(t, _MM_FROUND_TO_NEG_INF);
  T p = f * 1.877576657e-3f + 8.989340134e-3f;
  p = p * f + 5.582631802e-2f;
  p = p * f + 2.401536171e-1f;
  p = p * f + 6.931530732e-1f;
  p = p * f + 9.999999251e-1f;
  return reciprocal(1.0f + (T)_mm512_scalef_ps((__m512)p, t));
#else
  return reciprocal(1.0f + exponential(-x));
#endif
}

/// log(1 + e) for e in [0, 1].
template <class T>
NEYMAN_INLINE T log_one_plus(T e) {
  T p = e * -8.539198766e-3f + 4.408959613e-2f;
  p = p * e - 1.076816613e-1f;
  p = p * e + 1.774523766e-1f;
  p = p * e - 2.449546135e-1f;
  p = p * e + 3.327547948e-1f;
  p = p * e - 4.999740537e-1f;
  p = p * e + 9.999998057e-1f;
  return p * e;
}

/// What becomes of the sums of a product: written as they are, through relu, or times the
/// derivative of the activation whose value (silu: whose derivative) is at hand.
enum class Finish { plain, relu, times_relu, times_tanh, times_silu };

/// What memory is asked to do between blocks of arithmetic, where it comes at no cost. (Inlined,
/// because a function that only prefetches has no effect that GCC knows of, and calls of it
/// vanish.)
struct Meanwhile {
  // Rows of coming tiles, which lie anywhere and so come from memory.
  const Rows& rows;
  std::size_t next, end;
  // The gradient that will be written. Another core may have read the last one in this place: each
  // store would wait until it has given up the line, and stores go one after the other. Asked for
  // here, the lines come side by side.
  const float* claim = nullptr;
  const float* claim_end = nullptr;

  NEYMAN_INLINE void some() {
    for (int i = 0; i < 2 && next < end; ++i, ++next) fetch_row();
    for (int i = 0; i < 8 && claim < claim_end; ++i, claim += 16) claim_line();
  }

 private:
  NEYMAN_INLINE void fetch_row() const {
    const std::size_t number = next < rows.count ? rows.order[next] : rows.next[next - rows.count];
    const float* row = rows.data + number * rows.stride;
    for (std::size_t c = 0; c < rows.stride; c += 16) __builtin_prefetch(row + c);
  }
  NEYMAN_INLINE void claim_line() const {
#if defined(__x86_64__)  // compilers know it by itself only of machines that say that they have it
    asm volatile("prefetchw %0" : : "m"(*claim));
#endif
  }
};

/// Sums in memory to which something is added: what was there before, or null where there is
/// nothing yet, and where they are then, or null where nobody asks for them.
struct Sums {
  const float* before = nullptr;
  float* now = nullptr;

  NEYMAN_INLINE explicit operator bool() const { return now != nullptr; }
  NEYMAN_INLINE Sums from(std::size_t place) const {
    return {before ? before + place : nullptr, now ? now + place : nullptr};
  }
  template <class T>
  NEYMAN_INLINE T loaded(std::size_t place) const {
    return before ? load<T>(before + place) : T{};
  }
  template <class T>
  NEYMAN_INLINE void add(std::size_t place, T value) const {
    store(now + place, loaded<T>(place) + value);
  }
};

struct Product {
  const float* a;  ///< rows x depth
  std::size_t lda, rows, depth;
  const float* b;  ///< depth x columns of the panel
  std::size_t ldb;
  const float* bias;  ///< added to each row, or null
  float* c;
  std::size_t ldc;
  Finish finish;
  const float* derivative;  ///< for times_silu; laid out like c
  Sums column_sums;         ///< times_*: to which Σ over rows of what was written is added
  Meanwhile* meanwhile;     ///< or null
};

/// What is written for a sum where `c` holds the activation and `d` its derivative.
template <Finish finish, class T>
NEYMAN_INLINE T finished(T sum, const float* c, const float* d) {
  if constexpr (finish == Finish::relu) return larger(sum, T{});
  if constexpr (finish == Finish::times_relu) return load<T>(c) > 0.0f ? sum : T{};
  if constexpr (finish == Finish::times_tanh) return sum * (1.0f - load<T>(c) * load<T>(c));
  if constexpr (finish == Finish::times_silu) return sum * load<T>(d);
  return sum;
}

/// Calls `work` with the finish as a constant of the compiler.
template <class Work>
NEYMAN_INLINE void with_finish(Finish finish, Work&& work) {
  switch (finish) {
    case Finish::plain:
      return work.template operator()<Finish::plain>();
    case Finish::relu:
      return work.template operator()<Finish::relu>();
    case Finish::times_relu:
      return work.template operator()<Finish::times_relu>();
    case Finish::times_tanh:
      return work.template operator()<Finish::times_tanh>();
    case Finish::times_silu:
      return work.template operator()<Finish::times_silu>();
  }
}

/// Finishes and writes column `v` of a block of sums to column `at` of the rows from `row`.
template <Finish finish, class T, std::size_t columns>
NEYMAN_INLINE void finish_column(const T (&sums)[block_rows][columns], std::size_t v,
                                 const Product& w, std::size_t row, std::size_t at) {
  T total{};
#pragma GCC unroll 8
  for (std::size_t r = 0; r < block_rows; ++r) {
    const std::size_t place = (row + r) * w.ldc + at;
    const T value = finished<finish>(sums[r][v], w.c + place, w.derivative + place);
    total += value;
    store(w.c + place, value);
  }
  if (finish >= Finish::times_relu && w.column_sums) {
    const Sums sums_now{row == 0 ? w.column_sums.before : w.column_sums.now, w.column_sums.now};
    sums_now.add(at, total);
  }
}

/// C = finish(bias + A B) for a strip of `vectors` vectors (and half a vector) of columns.
template <int vectors, bool half>
void product_strip(const Product& w, std::size_t column) {
  constexpr std::size_t full = vectors > 0 ? vectors : 1;
  for (std::size_t row = 0; row < w.rows; row += block_rows) {
    if (w.meanwhile) w.meanwhile->some();
    Vector sums[block_rows][full];
    Vector rest[block_rows / 2];
#pragma GCC unroll 8
    for (std::size_t r = 0; r < block_rows; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v)
        sums[r][v] = w.bias ? load<Vector>(w.bias + column + v * lanes) : Vector{};
      if constexpr (half)
        rest[r / 2] = w.bias ? twice(w.bias + column + vectors * lanes) : Vector{};
    }
    const float* a = w.a + row * w.lda;
    const float* b = w.b + column;
#pragma GCC unroll 4
    for (std::size_t k = 0; k < w.depth; ++k, ++a, b += w.ldb) {
      Vector bv[full];
      Vector bh{}, before{};
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) bv[v] = load<Vector>(b + v * lanes);
      if constexpr (half) bh = twice(b + vectors * lanes);
#pragma GCC unroll 8
      for (std::size_t r = 0; r < block_rows; ++r) {
        Vector s = splat<Vector>(a[r * w.lda]);
        if constexpr (half) s = in_register(s);
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) sums[r][v] += s * bv[v];
        if constexpr (half) {
          if (r % 2 == 1) rest[r / 2] += mixed(before, s) * bh;
          before = s;
        }
      }
    }
    with_finish(
        w.finish, [&]<Finish finish>() __attribute__((always_inline)) {
#pragma GCC unroll 4
          for (int v = 0; v < vectors; ++v)
            finish_column<finish>(sums, v, w, row, column + v * lanes);
          if constexpr (half) {
            Unit units[block_rows][1];
#pragma GCC unroll 8
            for (std::size_t r = 0; r < block_rows; ++r)
              units[r][0] = r % 2 == 0 ? first_of(rest[r / 2]) : second_of(rest[r / 2]);
            finish_column<finish>(units, 0, w, row, column + vectors * lanes);
          }
        });
  }
}

struct Outer {
  const float* a;  ///< rows x lda, of which `inputs` columns
  std::size_t lda, rows, inputs;
  const float* d;  ///< rows x columns of the panel
  std::size_t ldd;
  Sums g;  ///< inputs x columns of the panel
  std::size_t ldg;
  Meanwhile* meanwhile;  ///< or null
};

/// G += Aᵀ D for `count` inputs from `input` and a strip of columns.
template <int vectors, bool half, int count>
NEYMAN_INLINE void outer_block(const Outer& w, std::size_t column, std::size_t input) {
  constexpr std::size_t full = vectors > 0 ? vectors : 1;
  const Sums g = w.g.from(input * w.ldg + column);
  const Sums g_half = g.from(vectors * lanes);
  Vector sums[count][full];
  Vector rest[(count + 1) / 2];
#pragma GCC unroll 8
  for (int i = 0; i < count; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) sums[i][v] = g.loaded<Vector>(i * w.ldg + v * lanes);
    if constexpr (half) {
      if (i % 2 == 0) {  // of an input without another, both units are the same
        const int other = i + 1 < count ? i + 1 : i;
        rest[i / 2] = pair_of(g_half.loaded<Unit>(i * w.ldg), g_half.loaded<Unit>(other * w.ldg));
      }
    }
  }
  const float* a = w.a + input;
  const float* d = w.d + column;
#pragma GCC unroll 4
  for (std::size_t row = 0; row < w.rows; ++row, a += w.lda, d += w.ldd) {
    Vector dv[full];
    Vector dh{}, before{};
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) dv[v] = load<Vector>(d + v * lanes);
    if constexpr (half) dh = twice(d + vectors * lanes);
#pragma GCC unroll 8
    for (int i = 0; i < count; ++i) {
      Vector s = splat<Vector>(a[i]);
      if constexpr (half) s = in_register(s);
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sums[i][v] += s * dv[v];
      if constexpr (half) {
        if (i % 2 == 1) rest[i / 2] += mixed(before, s) * dh;
        if (i % 2 == 0 && i + 1 == count) rest[i / 2] += s * dh;
        before = s;
      }
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < count; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) store(g.now + i * w.ldg + v * lanes, sums[i][v]);
    if constexpr (half)
      store(g_half.now + i * w.ldg, i % 2 == 0 ? first_of(rest[i / 2]) : second_of(rest[i / 2]));
  }
}

/// The same for the inputs that are left from `input`, at most `most`, in one block: the sums of
/// a small block alone would wait for each other.
template <int vectors, bool half, int most>
NEYMAN_INLINE void outer_rest(const Outer& w, std::size_t column, std::size_t input) {
  if constexpr (most > 0) {
    if (w.inputs - input == most) return outer_block<vectors, half, most>(w, column, input);
    outer_rest<vectors, half, most - 1>(w, column, input);
  }
}

template <int vectors, bool half>
void outer_strip(const Outer& w, std::size_t column) {
  std::size_t i = 0;
  for (; i + block_rows <= w.inputs; i += block_rows) {
    if (w.meanwhile) w.meanwhile->some();
    outer_block<vectors, half, block_rows>(w, column, i);
  }
  outer_rest<vectors, half, block_rows - 1>(w, column, i);
}

/// Cuts the `width` columns of a panel into strips that fit the registers.
template <class Work>
void for_each_strip(std::size_t width, Work&& work) {
  if constexpr (lanes == 2 * unit) {
    switch (width / unit) {
      case 1:
        work.template operator()<0, true>(0);
        break;
      case 2:
        work.template operator()<1, false>(0);
        break;
      case 3:
        work.template operator()<1, true>(0);
        break;
      case 4:
        work.template operator()<2, false>(0);
        break;
      case 5:
        work.template operator()<2, true>(0);
        break;
      default:
        work.template operator()<3, false>(0);
        break;
    }
  } else {
    std::size_t left = width / lanes, column = 0;
    while (left > 0) {
      const std::size_t strips = (left + strip_vectors - 1) / strip_vectors;
      const std::size_t vectors = (left + strips - 1) / strips;
      switch (vectors) {
        case 1:
          work.template operator()<1, false>(column);
          break;
        case 2:
          work.template operator()<2, false>(column);
          break;
        default:
          work.template operator()<3, false>(column);
          break;
      }
      left -= vectors;
      column += vectors * lanes;
    }
  }
}

void product(const Product& w, std::size_t width) {
  for_each_strip(width, [&]<int vectors, bool half>(std::size_t column) {
    product_strip<vectors, half>(w, column);
  });
}

void outer(const Outer& w, std::size_t width) {
  for_each_strip(width, [&]<int vectors, bool half>(std::size_t column) {
    outer_strip<vectors, half>(w, column);
  });
}

std::size_t padded_rows(std::size_t rows) { return (rows + unit - 1) / unit * unit; }

void apply_tanh(float* values, std::size_t count) {
  for (std::size_t i = 0; i < count; i += lanes)
    store(values + i, hyperbolic_tangent(load<Vector>(values + i)));
}

/// Values become z σ(z); `derivative`, unless null, gets σ + z σ (1 − σ).
void apply_silu(float* values, float* derivative, std::size_t count) {
  for (std::size_t i = 0; i < count; i += lanes) {
    const Vector z = load<Vector>(values + i);
    const Vector s = sigmoid(z);
    const Vector a = z * s;
    store(values + i, a);
    if (derivative) store(derivative + i, a + s * (1.0f - a));
  }
}

/// One pass of a tile through the network. The scratch memory holds the inputs of each layer,
/// then (silu) the derivatives in the same order, then logits, factors and weights of the rows.
struct Pass {
  const Shape& shape;
  const float* parameters;
  float* scratch;
  std::size_t rows;  ///< a multiple of `unit`
  Meanwhile* meanwhile = nullptr;

  float* inputs(std::size_t layer) const { return scratch + shape.layers[layer].values; }
  float* derivatives(std::size_t layer) const { return inputs(layer) + shape.values; }
  float* logits() const { return scratch + 2 * shape.values; }
  float* factors() const { return logits() + shape.tile; }
  float* weights() const { return factors() + shape.tile; }
  const Layer& output() const { return shape.layers[shape.count - 1]; }

  /// `derivatives` are needed only by a backward pass.
  void forward(bool with_derivatives) const {
    for (std::size_t l = 0; l + 1 < shape.count; ++l) {
      const Layer& layer = shape.layers[l];
      const bool relu = shape.activation == Activation::relu;
      for (std::size_t p = 0; p < panel_count(layer.out_pad); ++p) {
        const Panel columns = panel(layer.out_pad, p);
        const float* b = parameters + layer.parameters + (layer.in + 1) * columns.begin;
        product({inputs(l), layer.in_pad, rows, layer.in, b, columns.width,
                 b + layer.in * columns.width, inputs(l + 1) + columns.begin, layer.out_pad,
                 relu ? Finish::relu : Finish::plain, nullptr, Sums{}, meanwhile},
                columns.width);
      }
      const std::size_t count = rows * layer.out_pad;
      if (shape.activation == Activation::tanh) apply_tanh(inputs(l + 1), count);
      if (shape.activation == Activation::silu)
        apply_silu(inputs(l + 1), with_derivatives ? derivatives(l + 1) : nullptr, count);
    }
    output_logits();
  }

  /// z = a·w + b, eight rows at a time.
  void output_logits() const {
    const float* w = parameters + output().parameters;
    const float bias = w[output().in_pad];
    const std::size_t width = output().in_pad;
    for (std::size_t row = 0; row < rows; row += unit) {
      const float* a = inputs(shape.count - 1) + row * width;
      Unit sums[unit] = {};
      for (std::size_t c = 0; c < width; c += unit) {
        const Unit wv = load<Unit>(w + c);
#pragma GCC unroll 8
        for (std::size_t r = 0; r < unit; ++r) sums[r] += load<Unit>(a + r * width + c) * wv;
      }
      store(logits() + row, sum_lanes(sums) + bias);
    }
  }

  static NEYMAN_INLINE Unit sum_lanes(const Unit (&v)[unit]) {
#if defined(__AVX__)
    const auto pairs = [](Unit a, Unit b) __attribute__((always_inline)) {
      return __builtin_shufflevector(a, b, 0, 2, 8, 10, 4, 6, 12, 14) +
             __builtin_shufflevector(a, b, 1, 3, 9, 11, 5, 7, 13, 15);
    };
    const Unit low = pairs(pairs(v[0], v[1]), pairs(v[2], v[3]));
    const Unit high = pairs(pairs(v[4], v[5]), pairs(v[6], v[7]));
    return __builtin_shufflevector(low, high, 0, 1, 2, 3, 8, 9, 10, 11) +
           __builtin_shufflevector(low, high, 4, 5, 6, 7, 12, 13, 14, 15);
#else
    Unit result{};
    for (std::size_t r = 0; r < unit; ++r)
      for (std::size_t i = 0; i < unit; ++i) result[r] += v[r][i];
    return result;
#endif
  }

  /// Σ w·loss of the rows; factors become scale · w · ∂loss/∂z.
  double loss(Loss kind, float scale) const {
    double sum = 0.0;
    for (std::size_t begin = 0; begin < rows; begin += part_rows)
      sum += part_loss(kind, scale, begin, part_end(begin));
    return sum;
  }

  /// Where the part that begins at this row ends.
  std::size_t part_end(std::size_t begin) const {
    return rows - begin < part_rows ? rows : begin + part_rows;
  }

  /// With u the logit in favour of the right side, σ(−u) is the probability given to the wrong one:
  /// no difference of near numbers.
  double part_loss(Loss kind, float scale, std::size_t begin, std::size_t end) const {
    Unit total{};
    for (std::size_t row = begin; row < end; row += unit) {
      const Unit z = load<Unit>(logits() + row);
      const Unit signed_weight = load<Unit>(weights() + row);
      const auto denominator = (IntegersOf<Unit>)signed_weight < 0;
      const Unit weight = denominator ? -signed_weight : signed_weight;
      const Unit u = denominator ? z : -z;
      const Unit e = exponential(u < 0.0f ? u : -u);
      const Unit q = 1.0f / (1.0f + e);
      const Unit wrong = u < 0.0f ? q : e * q;
      if (kind == Loss::cross_entropy) {
        total += weight * (larger(-u, Unit{}) + log_one_plus(e));
        store(factors() + row, scale * signed_weight * wrong);
      } else {
        total += weight * wrong * wrong;
        store(factors() + row, scale * signed_weight * (2.0f * wrong * e * q * q));
      }
    }
    float sum = 0.0f;
    for (std::size_t i = 0; i < unit; ++i) sum += total[i];
    return static_cast<double>(sum);
  }

  /// The derivative that a gradient at the inputs of `layer` takes on; the first layer's inputs
  /// are the data.
  Finish derivative_finish(std::size_t layer) const {
    if (layer == 0) return Finish::plain;
    if (shape.activation == Activation::relu) return Finish::times_relu;
    return shape.activation == Activation::tanh ? Finish::times_tanh : Finish::times_silu;
  }

  /// Sums over rows of a column of the output layer's inputs, in two chains, so that the latency of
  /// one hides behind the other.
  template <class T>
  struct OutputColumn {
    T w, weight_sums[2] = {}, bias_sums[2] = {};

    template <Finish finish>
    NEYMAN_INLINE void row(std::size_t chain, float factor, float* a, const float* d) {
      weight_sums[chain] += factor * load<T>(a);
      const T below = finished<finish>(factor * w, a, d);
      bias_sums[chain] += below;
      store(a, below);
    }
    NEYMAN_INLINE void add_to(const Sums& weights, const Sums& biases) const {
      if (weights) store(weights.now, weights.loaded<T>(0) + weight_sums[0] + weight_sums[1]);
      if (biases) store(biases.now, biases.loaded<T>(0) + bias_sums[0] + bias_sums[1]);
    }
  };

  /// The inputs of the output layer become ∂/∂z of the layer below, for a strip of `vectors`
  /// vectors (and half a vector) of columns; with gradients, adds to those of the output layer's
  /// weights and of the biases below.
  template <Finish finish, int vectors, bool half>
  NEYMAN_INLINE void output_strip(std::size_t begin, std::size_t column, const Sums& weights,
                                  const Sums& biases) const {
    constexpr std::size_t full = vectors > 0 ? vectors : 1;
    const std::size_t width = output().in_pad;
    const float* w = parameters + output().parameters + column;
    OutputColumn<Vector> columns[full];
    OutputColumn<Unit> rest;
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) columns[v].w = load<Vector>(w + v * lanes);
    if constexpr (half) rest.w = load<Unit>(w + vectors * lanes);
    float* a = inputs(shape.count - 1) + begin * width + column;
    const float* d = derivatives(shape.count - 1) + begin * width + column;
    const float* factor = factors();
    for (std::size_t row = begin; row < part_end(begin); row += 2) {
#pragma GCC unroll 2
      for (std::size_t k = 0; k < 2; ++k, a += width, d += width) {
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v)
          columns[v].template row<finish>(k, factor[row + k], a + v * lanes, d + v * lanes);
        if constexpr (half)
          rest.template row<finish>(k, factor[row + k], a + vectors * lanes, d + vectors * lanes);
      }
    }
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v)
      columns[v].add_to(weights.from(v * lanes), biases.from(v * lanes));
    if constexpr (half) rest.add_to(weights.from(vectors * lanes), biases.from(vectors * lanes));
  }

  /// Where the biases of hidden layer `l` start in its panel p.
  std::size_t bias_offset(std::size_t l, Panel columns) const {
    const Layer& layer = shape.layers[l];
    return layer.parameters + (layer.in + 1) * columns.begin + layer.in * columns.width;
  }

  void output_backward(const Sums& gradient) const {
    for (std::size_t begin = 0; begin < rows; begin += part_rows)
      output_backward(begin, begin == 0 ? gradient : Sums{gradient.now, gradient.now});
  }

  /// The same for the part that begins at this row.
  void output_backward(std::size_t begin, const Sums& gradient) const {
    const std::size_t width = output().in_pad;
    const std::size_t last = shape.count - 1;
    if (gradient) {
      Unit sum{};
      for (std::size_t row = begin; row < part_end(begin); ++row) sum[0] += factors()[row];
      gradient.add(output().parameters + width, sum);
    }
    for (std::size_t p = 0; p < panel_count(width); ++p) {
      const Panel columns = panel(width, p);
      const Sums weights = gradient.from(output().parameters + columns.begin);
      const Sums biases = last > 0 ? gradient.from(bias_offset(last - 1, columns)) : Sums{};
      with_finish(derivative_finish(last), [&]<Finish finish>() {
        for_each_strip(columns.width, [&]<int vectors, bool half>(std::size_t c) {
          output_strip<finish, vectors, half>(begin, columns.begin + c, weights.from(c),
                                              biases.from(c));
        });
      });
    }
  }

  /// From ∂/∂z of hidden layer l (in inputs(l + 1)) to ∂/∂z of the layer below, or for the first
  /// layer to ∂/∂x, in the place of the layer's inputs.
  void layer_backward(std::size_t l, const float* transposed, const Sums& gradient) const {
    const Layer& layer = shape.layers[l];
    for (std::size_t p = 0; p < panel_count(layer.in_pad); ++p) {
      const Panel columns = panel(layer.in_pad, p);
      const Sums sums = l > 0 ? gradient.from(bias_offset(l - 1, columns)) : Sums{};
      product({inputs(l + 1), layer.out_pad, rows, layer.out,
               transposed + layer.transposed + layer.out * columns.begin, columns.width, nullptr,
               inputs(l) + columns.begin, layer.in_pad, derivative_finish(l),
               derivatives(l) + columns.begin, sums, meanwhile},
              columns.width);
    }
  }

  void layer_gradient(std::size_t l, const Sums& gradient) const {
    const Layer& layer = shape.layers[l];
    for (std::size_t p = 0; p < panel_count(layer.out_pad); ++p) {
      const Panel columns = panel(layer.out_pad, p);
      outer({inputs(l), layer.in_pad, rows, layer.in, inputs(l + 1) + columns.begin, layer.out_pad,
             gradient.from(layer.parameters + (layer.in + 1) * columns.begin), columns.width,
             meanwhile},
            columns.width);
    }
  }

  void backward(const float* transposed, const Sums& gradient) const {
    output_backward(gradient);
    for (std::size_t l = shape.count - 1; l-- > 0;) {
      layer_gradient(l, gradient);
      if (l > 0) layer_backward(l, transposed, gradient);
    }
  }

  /// Brings `count` rows from anywhere into the tile; the rows that fill it up weigh nothing.
  void gather(const Rows& data, std::size_t begin, std::size_t count) const {
    const std::size_t width = shape.layers[0].in_pad;
    for (std::size_t r = 0; r < count; ++r) {
      const std::size_t row = data.order[begin + r];
      const float* from = data.data + row * data.stride;
      float* to = inputs(0) + r * width;
      for (std::size_t c = 0; c < width; c += unit) store(to + c, load<Unit>(from + c));
      if (width == data.stride) to[width - 1] = 0.0f;
      weights()[r] = from[data.stride - 1] * (data.factors == nullptr ? 1.0f : data.factors[row]);
    }
    for (std::size_t r = count; r < rows; ++r) {
      for (std::size_t c = 0; c < width; ++c) inputs(0)[r * width + c] = 0.0f;
      weights()[r] = 0.0f;
    }
  }

  bool standardise(const Inputs& data, std::size_t begin, std::size_t count) const {
    const std::size_t width = shape.layers[0].in_pad;
    bool finite = true;
    for (std::size_t r = 0; r < count; ++r) {
      const double* from = data.data + (begin + r) * data.stride;
      finite &= standardise_row(from, data, shape.layers[0].in, inputs(0) + r * width);
    }
    for (std::size_t i = count * width; i < rows * width; ++i) inputs(0)[i] = 0.0f;
    return finite;
  }

  static NEYMAN_INLINE bool standardise_row(const double* from, const Inputs& data, std::size_t in,
                                            float* to) {
    bool finite = true;
#if defined(__AVX512F__)
    for (std::size_t c = 0; c < in; c += unit) {
      const auto mask = static_cast<__mmask8>(in - c >= unit ? 0xff : (1u << (in - c)) - 1);
      const __m512d x = _mm512_maskz_loadu_pd(mask, from + c);
      finite &=
          _mm512_cmp_pd_mask(_mm512_abs_pd(x), _mm512_set1_pd(__DBL_MAX__), _CMP_LE_OQ) == 0xff;
      __m512d d = _mm512_mul_pd(_mm512_sub_pd(x, _mm512_loadu_pd(data.mean + c)),
                                _mm512_loadu_pd(data.scale + c));
      d = _mm512_min_pd(d, _mm512_set1_pd(largest_input));
      d = _mm512_max_pd(d, _mm512_set1_pd(-largest_input));
      store(to + c, (Unit)_mm512_cvtpd_ps(d));
    }
#else
    for (std::size_t c = 0; c < in; ++c) {
      const double x = from[c];
      finite &= __builtin_fabs(x) <= __DBL_MAX__;
      double d = (x - data.mean[c]) * data.scale[c];
      d = d < largest_input ? d : largest_input;
      d = d > -largest_input ? d : -largest_input;
      to[c] = static_cast<float>(d);
    }
    for (std::size_t c = in; c % unit != 0; ++c) to[c] = 0.0f;
#endif
    return finite;
  }
};

/// Of the tile that begins at this one of `count` rows.
std::size_t rows_of_tile(const Shape& shape, std::size_t begin, std::size_t count) {
  return count - begin < shape.tile ? count - begin : shape.tile;
}

double accumulate(const Shape& shape, Loss loss, const float* parameters, const float* transposed,
                  const Rows& data, float scale, float* gradient, float* scratch) {
  double total = 0.0;
  const std::size_t known = data.count + data.next_count;
  Meanwhile meanwhile{data, rows_of_tile(shape, 0, data.count), 0, gradient,
                      gradient ? gradient + shape.parameters : nullptr};
  float* const sums = data.sums ? data.sums : gradient;
  for (std::size_t begin = 0; begin < data.count; begin += shape.tile) {
    const std::size_t count = rows_of_tile(shape, begin, data.count);
    const std::size_t end = begin + 3 * shape.tile;
    meanwhile.end = end < known ? end : known;
    const Pass pass{shape, parameters, scratch, padded_rows(count), &meanwhile};
    pass.gather(data, begin, count);
    pass.forward(gradient != nullptr);
    total += pass.loss(loss, scale);
    if (gradient)
      pass.backward(transposed, {begin == 0 ? nullptr : sums,
                                 begin + shape.tile >= data.count ? gradient : sums});
  }
  return total;
}

/// Eight rows of eight become eight columns.
NEYMAN_INLINE void transpose_unit(const float* from, std::size_t from_stride, std::size_t rows,
                                  float* to, std::size_t to_stride, std::size_t columns) {
#if defined(__AVX__)
  Unit a[unit], b[unit], c[unit];
#pragma GCC unroll 8
  for (std::size_t i = 0; i < unit; ++i)
    a[i] = i < rows ? load<Unit>(from + i * from_stride) : Unit{};
#pragma GCC unroll 4
  for (std::size_t i = 0; i < unit; i += 2) {
    b[i] = __builtin_shufflevector(a[i], a[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    b[i + 1] = __builtin_shufflevector(a[i], a[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
#pragma GCC unroll 4
  for (std::size_t i = 0; i < unit; i += 4) {
    c[i] = __builtin_shufflevector(b[i], b[i + 2], 0, 1, 8, 9, 4, 5, 12, 13);
    c[i + 1] = __builtin_shufflevector(b[i], b[i + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    c[i + 2] = __builtin_shufflevector(b[i + 1], b[i + 3], 0, 1, 8, 9, 4, 5, 12, 13);
    c[i + 3] = __builtin_shufflevector(b[i + 1], b[i + 3], 2, 3, 10, 11, 6, 7, 14, 15);
  }
#pragma GCC unroll 4
  for (std::size_t i = 0; i < unit / 2; ++i) {
    if (i < columns)
      store(to + i * to_stride, __builtin_shufflevector(c[i], c[i + 4], 0, 1, 2, 3, 8, 9, 10, 11));
    if (i + 4 < columns)
      store(to + (i + 4) * to_stride,
            __builtin_shufflevector(c[i], c[i + 4], 4, 5, 6, 7, 12, 13, 14, 15));
  }
#else
  for (std::size_t j = 0; j < columns; ++j)
    for (std::size_t i = 0; i < unit; ++i)
      to[j * to_stride + i] = i < rows ? from[i * from_stride + j] : 0.0f;
#endif
}

/// Copies a hidden layer's weights into panels of input columns, a row for each output.
void transpose_layer(const Layer& layer, const float* parameters, float* transposed) {
  for (std::size_t p = 0; p < panel_count(layer.out_pad); ++p) {
    const Panel outputs = panel(layer.out_pad, p);
    const float* from = parameters + layer.parameters + (layer.in + 1) * outputs.begin;
    for (std::size_t q = 0; q < panel_count(layer.in_pad); ++q) {
      const Panel inputs = panel(layer.in_pad, q);
      float* to = transposed + layer.transposed + layer.out * inputs.begin;
      for (std::size_t j = outputs.begin; j < outputs.begin + outputs.width; j += unit) {
        for (std::size_t i = inputs.begin; i < inputs.begin + inputs.width; i += unit) {
          transpose_unit(from + i * outputs.width + (j - outputs.begin), outputs.width,
                         layer.in - i, to + j * inputs.width + (i - inputs.begin), inputs.width,
                         layer.out - j);
        }
      }
    }
  }
}

void transpose(const Shape& shape, const float* parameters, float* transposed) {
  for (std::size_t l = 0; l + 1 < shape.count; ++l)
    transpose_layer(shape.layers[l], parameters, transposed);
}

/// 1/√x to about 1e-7 for 1e-30 < x < 1e30.
template <class T>
NEYMAN_INLINE T reciprocal_root(T x) {
#if defined(__AVX512VL__)
  T r;
  if constexpr (lanes_of<T> == 16) {
    r = (T)_mm512_rsqrt14_ps((__m512)x);
  } else {
    r = (T)_mm256_rsqrt14_ps((__m256)x);
  }
  return r + r * (0.5f - 0.5f * x * r * r);
#else
  T root;
  for (std::size_t i = 0; i < lanes_of<T>; ++i) root[i] = __builtin_sqrtf(x[i]);
  return 1.0f / root;
#endif
}

/// What moves the parameters from one place on; that place counts in the gradients.
struct Moving {
  float *parameters, *first, *second;
  Gradients gradients;
  std::size_t place;

  template <class T>
  NEYMAN_INLINE T gradient(std::size_t i) const {
    T sum = load<T>(gradients.parts[0] + place + i);
    for (std::size_t k = 1; k < gradients.count; ++k)
      sum += load<T>(gradients.parts[k] + place + i);
    return sum;
  }
};

template <class T>
NEYMAN_INLINE void adam_vector(const AdamStep& step, float decay, float l2, const Moving& at,
                               std::size_t i) {
  const T p = load<T>(at.parameters + i);
  const T g = at.gradient<T>(i) + l2 * p;
  const T m = step.beta1 * load<T>(at.first + i) + (1.0f - step.beta1) * g;
  const T v = step.beta2 * load<T>(at.second + i) + (1.0f - step.beta2) * g * g;
  const T size = reciprocal_root(v * step.second_scale + step.epsilon * step.epsilon);
  store(at.parameters + i, p - decay * p - step.learning_rate * m * size);
  store(at.first + i, m);
  store(at.second + i, v);
}

// by value: what the loop writes cannot be these
void adam_range(const AdamStep step, std::size_t count, float decay, float l2, const Moving at) {
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) adam_vector<Vector>(step, decay, l2, at, i);
  if constexpr (lanes > unit) {
    if (i < count) adam_vector<Unit>(step, decay, l2, at, i);
  }
}

/// Biases are neither decayed nor penalised.
void adam(const Shape& shape, const AdamStep& step, float* parameters, float* transposed,
          const Gradients& gradients, float* first, float* second) {
  if (gradients.of_others)
    for (std::size_t k = 0; k < gradients.count; ++k)
      for (std::size_t i = 0; i < shape.parameters; i += 16)
        __builtin_prefetch(gradients.parts[k] + i);
  const auto update = [&](std::size_t at, std::size_t count, bool weights) {
    adam_range(step, count, weights ? step.weight_decay : 0.0f, weights ? step.l2 : 0.0f,
               {parameters + at, first + at, second + at, gradients, at});
  };
  for (std::size_t l = 0; l + 1 < shape.count; ++l) {
    const Layer& layer = shape.layers[l];
    for (std::size_t p = 0; p < panel_count(layer.out_pad); ++p) {
      const Panel columns = panel(layer.out_pad, p);
      const std::size_t at = layer.parameters + (layer.in + 1) * columns.begin;
      update(at, layer.in * columns.width, true);
      update(at + layer.in * columns.width, columns.width, false);
    }
    if (l > 0) transpose_layer(layer, parameters, transposed);
  }
  const Layer& output = shape.layers[shape.count - 1];
  update(output.parameters, output.in_pad, true);
  update(output.parameters + output.in_pad, unit, false);
}

void standardise(const Inputs& data, std::size_t columns, const std::uint32_t* rows,
                 std::size_t count, float* out, std::size_t out_stride) {
  for (std::size_t i = 0; i < count; ++i)
    Pass::standardise_row(data.data + rows[i] * data.stride, data, columns, out + i * out_stride);
}

bool score(const Shape& shape, const float* parameters, const Inputs& data, double* logits,
           float* scratch) {
  bool finite = true;
  for (std::size_t begin = 0; begin < data.count; begin += shape.tile) {
    const std::size_t count = rows_of_tile(shape, begin, data.count);
    const Pass pass{shape, parameters, scratch, padded_rows(count)};
    finite &= pass.standardise(data, begin, count);
    pass.forward(false);
    for (std::size_t r = 0; r < count; ++r)
      logits[begin + r] = static_cast<double>(pass.logits()[r]);
  }
  return finite;
}

bool input_gradient(const Shape& shape, const float* parameters, const float* transposed,
                    const Inputs& data, double* gradient, float* scratch) {
  bool finite = true;
  const std::size_t in = shape.layers[0].in, width = shape.layers[0].in_pad;
  for (std::size_t begin = 0; begin < data.count; begin += shape.tile) {
    const std::size_t count = rows_of_tile(shape, begin, data.count);
    const Pass pass{shape, parameters, scratch, padded_rows(count)};
    finite &= pass.standardise(data, begin, count);
    pass.forward(true);
    for (std::size_t r = 0; r < pass.rows; ++r) pass.factors()[r] = 1.0f;
    pass.output_backward({});
    for (std::size_t l = shape.count - 1; l-- > 0;) pass.layer_backward(l, transposed, {});
    for (std::size_t r = 0; r < count; ++r)
      for (std::size_t c = 0; c < in; ++c)
        gradient[(begin + r) * in + c] =
            static_cast<double>(pass.inputs(0)[r * width + c]) * data.scale[c];
  }
  return finite;
}

void all_tanh(const float* x, float* y, std::size_t count) {
  for (std::size_t i = 0; i < count; i += lanes)
    store(y + i, hyperbolic_tangent(load<Vector>(x + i)));
}

void all_exp(const float* x, float* y, std::size_t count) {
  for (std::size_t i = 0; i < count; i += lanes) store(y + i, exponential(load<Vector>(x + i)));
}

void multiply(const Dense& a, std::size_t depth, const Dense& b, const float* bias,
              const DenseOut& c, std::size_t rows, std::size_t columns) {
  for (std::size_t p = 0; p < panel_count(columns); ++p) {
    const Panel at = panel(columns, p);
    product({a.data, a.stride, rows, depth, b.data + at.begin, b.stride,
             bias ? bias + at.begin : nullptr, c.data + at.begin, c.stride, Finish::plain, nullptr,
             Sums{}, nullptr},
            at.width);
  }
}

void add_outer(const Dense& a, std::size_t inputs, const Dense& d, const DenseOut& g,
               std::size_t rows, std::size_t columns) {
  for (std::size_t p = 0; p < panel_count(columns); ++p) {
    const Panel at = panel(columns, p);
    outer({a.data, a.stride, rows, inputs, d.data + at.begin, d.stride,
           Sums{g.data + at.begin, g.data + at.begin}, g.stride, nullptr},
          at.width);
  }
}

void softmax(const DenseOut& h, std::size_t rows, std::size_t columns, float* log_sums) {
  for (std::size_t r = 0; r < rows; ++r) {
    float* row = h.data + r * h.stride;
    Vector most = load<Vector>(row);
    for (std::size_t c = lanes; c < columns; c += lanes) most = larger(most, load<Vector>(row + c));
    float top = most[0];
    for (std::size_t i = 1; i < lanes; ++i) top = most[i] > top ? most[i] : top;
    Vector sums{};
    for (std::size_t c = 0; c < columns; c += lanes) {
      const Vector e = exponential(load<Vector>(row + c) - top);
      sums += e;
      store(row + c, e);
    }
    float sum = 0.0f;
    for (std::size_t i = 0; i < lanes; ++i) sum += sums[i];
    const float scale = 1.0f / sum;
    for (std::size_t c = 0; c < columns; c += lanes) store(row + c, load<Vector>(row + c) * scale);
    log_sums[r] = top + __builtin_logf(sum);
  }
}

}  // namespace

NEYMAN_DEFINE_KERNELS(accumulate, adam, transpose, standardise, score, input_gradient, all_tanh,
                      all_exp, multiply, add_outer, apply_silu, softmax);

}  // namespace neyman::mlp
