// The kernels of random_kernels.hpp in vectors of the compiler; included once for each instruction
// set, by a source that defines NEYMAN_KERNELS_ISA and is compiled with the options of that set.
// Everything here has internal linkage: no function compiled for one set can serve another.
#include "core/random_kernels.hpp"
#include "core/register_lanes_impl.hpp"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace neyman::philox {
namespace {

constexpr std::size_t lanes = register_lanes;

typedef double Reals __attribute__((vector_size(8 * lanes)));
typedef double LooseReals __attribute__((vector_size(8 * lanes), aligned(8), may_alias));
typedef std::uint64_t Words __attribute__((vector_size(8 * lanes)));
typedef std::uint64_t LooseWords __attribute__((vector_size(8 * lanes), aligned(8), may_alias));

#define NEYMAN_INLINE inline __attribute__((always_inline))

/// Vectors whose arithmetic goes side by side: where each step of a calculation waits for the one
/// before, the steps of the others fill the time.
template <class T, std::size_t count>
struct Several {
  T part[count];
};
constexpr std::size_t side_by_side = 8;  // measured: more are no faster
template <std::size_t count>
using SeveralReals = Several<Reals, count>;
template <std::size_t count>
using SeveralWords = Several<Words, count>;

#define NEYMAN_EACH_PART _Pragma("GCC unroll 8") for (std::size_t i = 0; i < count; ++i)

#define NEYMAN_SIDE_BY_SIDE(op)                                                                  \
  template <class T, std::size_t count>                                                          \
  NEYMAN_INLINE Several<T, count> operator op(Several<T, count> a, const Several<T, count>& b) { \
    NEYMAN_EACH_PART a.part[i] = a.part[i] op b.part[i];                                         \
    return a;                                                                                    \
  }                                                                                              \
  template <class T, std::size_t count, class Same>                                              \
  NEYMAN_INLINE Several<T, count> operator op(Several<T, count> a, const Same& b) {              \
    NEYMAN_EACH_PART a.part[i] = a.part[i] op b;                                                 \
    return a;                                                                                    \
  }
NEYMAN_SIDE_BY_SIDE(+)
NEYMAN_SIDE_BY_SIDE(-)
NEYMAN_SIDE_BY_SIDE(*)
NEYMAN_SIDE_BY_SIDE(/)
NEYMAN_SIDE_BY_SIDE(&)
NEYMAN_SIDE_BY_SIDE(|)
NEYMAN_SIDE_BY_SIDE(^)
NEYMAN_SIDE_BY_SIDE(<<)
NEYMAN_SIDE_BY_SIDE(>>)

template <class T, std::size_t count>
NEYMAN_INLINE Several<T, count> operator-(Several<T, count> a) {
  NEYMAN_EACH_PART a.part[i] = -a.part[i];
  return a;
}
/// The same bits as the other kind.
template <std::size_t count>
NEYMAN_INLINE SeveralReals<count> to_reals(const SeveralWords<count>& words) {
  SeveralReals<count> out;
  NEYMAN_EACH_PART out.part[i] = (Reals)words.part[i];
  return out;
}
template <std::size_t count>
NEYMAN_INLINE SeveralWords<count> to_words(const SeveralReals<count>& reals) {
  SeveralWords<count> out;
  NEYMAN_EACH_PART out.part[i] = (Words)reals.part[i];
  return out;
}

NEYMAN_INLINE Reals load(const double* from) { return *reinterpret_cast<const LooseReals*>(from); }
NEYMAN_INLINE void store(double* to, Reals values) { *reinterpret_cast<LooseReals*>(to) = values; }
NEYMAN_INLINE void store(std::uint64_t* to, Words words) {
  *reinterpret_cast<LooseWords*>(to) = words;
}

/// (a0, b0, a2, b2, …) and (a1, b1, a3, b3, …): one instruction each, and each other's inverse.
template <class T>
NEYMAN_INLINE T evens(T a, T b) {
#if defined(__AVX512F__)
  return __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14);
#elif defined(__AVX__)
  return __builtin_shufflevector(a, b, 0, 4, 2, 6);
#else
  return __builtin_shufflevector(a, b, 0, 2);
#endif
}
template <class T>
NEYMAN_INLINE T odds(T a, T b) {
#if defined(__AVX512F__)
  return __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15);
#elif defined(__AVX__)
  return __builtin_shufflevector(a, b, 1, 5, 3, 7);
#else
  return __builtin_shufflevector(a, b, 1, 3);
#endif
}

/// Which of a vector's counters each lane takes, so that evens and odds put the words in order.
#if defined(__AVX512F__)
constexpr Words lane_counters = {0, 4, 1, 5, 2, 6, 3, 7};
#elif defined(__AVX__)
constexpr Words lane_counters = {0, 2, 1, 3};
#else
constexpr Words lane_counters = {0, 1};
#endif

/// Products of 64 bits of the lower halves; compilers do not find this instruction by themselves.
NEYMAN_INLINE Words multiply(Words a, std::uint32_t b) {
#if defined(__AVX512F__)
  return (Words)_mm512_mul_epu32((__m512i)a, _mm512_set1_epi64(b));
#elif defined(__AVX2__)
  return (Words)_mm256_mul_epu32((__m256i)a, _mm256_set1_epi64x(b));
#elif defined(__SSE2__)
  return (Words)_mm_mul_epu32((__m128i)a, _mm_set1_epi64x(b));
#else
  return (a & 0xffffffffULL) * b;
#endif
}

NEYMAN_INLINE Reals square_root(Reals x) {
#if defined(__AVX512F__)
  return (Reals)_mm512_sqrt_pd((__m512d)x);
#elif defined(__AVX__)
  return (Reals)_mm256_sqrt_pd((__m256d)x);
#elif defined(__SSE2__)
  return (Reals)_mm_sqrt_pd((__m128d)x);
#else
  for (std::size_t i = 0; i < lanes; ++i) x[i] = __builtin_sqrt(x[i]);
  return x;
#endif
}

template <std::size_t count>
NEYMAN_INLINE SeveralWords<count> multiply(SeveralWords<count> a, std::uint32_t b) {
  NEYMAN_EACH_PART a.part[i] = multiply(a.part[i], b);
  return a;
}

template <std::size_t count>
NEYMAN_INLINE SeveralReals<count> square_root(SeveralReals<count> x) {
  NEYMAN_EACH_PART x.part[i] = square_root(x.part[i]);
  return x;
}

template <std::size_t count>
struct WordPairs {
  SeveralWords<count> lower, upper;
};

/// What the rounds add to the counters. Made once for a call: in every round, moving it out of
/// integer registers would take as long as the round itself.
struct Keys {
  static constexpr int rounds = 10;
  Words k0[rounds], k1[rounds];

  explicit NEYMAN_INLINE Keys(std::uint64_t key) {
    auto low = static_cast<std::uint32_t>(key), high = static_cast<std::uint32_t>(key >> 32);
    for (int round = 0; round < rounds; ++round) {
      k0[round] = Words{} + std::uint64_t{low};
      k1[round] = Words{} + std::uint64_t{high};
      low += 0x9e3779b9U;
      high += 0xbb67ae85U;
    }
  }
};

/// Salmon, Moraes, Dror and Shaw (2011). Each lane holds 32 bits of the counter in its lower
/// half; what gathers in the upper half never comes down.
template <std::size_t count>
NEYMAN_INLINE WordPairs<count> philox(const Keys& keys, std::uint64_t block,
                                      const SeveralWords<count>& counter) {
  constexpr std::uint64_t half = 0xffffffffULL;
  const SeveralWords<count> zero{};
  SeveralWords<count> c0 = counter, c1 = counter >> 32, c2 = zero + block,
                      c3 = zero + (block >> 32);
#pragma GCC unroll 10
  for (int round = 0; round < Keys::rounds; ++round) {
    const SeveralWords<count> p0 = multiply(c0, 0xd2511f53U), p1 = multiply(c2, 0xcd9e8d57U);
    c0 = (p1 >> 32) ^ c1 ^ keys.k0[round];
    c1 = p1;
    c2 = (p0 >> 32) ^ c3 ^ keys.k1[round];
    c3 = p0;
  }
  return {(c1 << 32) | (c0 & half), (c3 << 32) | (c2 & half)};
}

/// Calls `use` with the place of the first word and a vector of words, in their order.
template <class Use>
NEYMAN_INLINE void each_words(const State state, std::size_t groups, Use&& use) {
  const Keys keys(state.key);
  const std::size_t end = groups * group;
  const auto next = [&]<std::size_t count>(std::size_t first) __attribute__((always_inline)) {
    SeveralWords<count> counters;
    NEYMAN_EACH_PART counters.part[i] = lane_counters + (state.counter + first + i * lanes);
    const WordPairs<count> words = philox(keys, state.block, counters);
    NEYMAN_EACH_PART {
      const std::size_t place = 2 * (first + i * lanes);
      use(place, evens(words.upper.part[i], words.lower.part[i]));
      use(place + lanes, odds(words.upper.part[i], words.lower.part[i]));
    }
  };
  std::size_t first = 0;
  constexpr std::size_t many = side_by_side * lanes;
  for (; first + many <= end; first += many) next.template operator()<side_by_side>(first);
  for (; first < end; first += lanes) next.template operator()<1>(first);
}

/// 52 bits and a half over 2^52: in (0, 1), symmetric, never 0 or 1; every step is exact.
NEYMAN_INLINE Reals to_unit(Words words) {
  const Words in_one_to_two = (words >> 12) | 0x3ff0000000000000ULL;
  return ((Reals)in_one_to_two - 1.0) + 0x1p-53;
}

/// log u for normal u in (0, √2): u = 2^k m with m in [√½, √2), s = (m − 1)/(m + 1), log m = 2
/// artanh s = 2s + s R, R/s² the minimax polynomial of s² (error 1.3e-18 of log m). Summed as in
/// fdlibm, where the exact m − 1 is the largest term. Relative error below 2e-16, near u = 1 too.
template <std::size_t count>
NEYMAN_INLINE SeveralReals<count> logarithm(const SeveralReals<count>& u) {
  constexpr std::uint64_t exponent = 0xfff0000000000000ULL, one = 0x3ff0000000000000ULL;
  constexpr std::uint64_t root_half = 0x3fe6a09e667f3bcdULL;
  const auto bits = to_words(u);
  const auto shifted = bits + (one - root_half);  // its exponent is that of 2^k
  const auto m = to_reals(bits - (shifted & exponent) + one);
  const auto k = to_reals((shifted >> 52) | 0x4330000000000000ULL) - (0x1p52 + 1023.0);
  const auto f = m - 1.0;
  const auto s = f / (f + 2.0);
  const auto z = s * s;
  auto r = z * 0x1.2ef06c255b517p-3 + 0x1.39a3f9405dc3dp-3;
  r = r * z + 0x1.746626924d4c9p-3;
  r = r * z + 0x1.c71c528d6763fp-3;
  r = r * z + 0x1.2492494137639p-2;
  r = r * z + 0x1.9999999980d5dp-2;
  r = r * z + 0x1.555555555558fp-1;
  r = r * z;
  const auto half_square = f * f * 0.5;
  // log 2 in two parts, of which k times the first is exact
  return k * 0x1.62e42fee00000p-1 -
         ((half_square - (s * (half_square + r) + k * 0x1.a39ef35793c76p-33)) - f);
}

template <std::size_t count>
struct Turns {
  SeveralReals<count> cosine, sine;
};

/// cos 2πv and sin 2πv for v in (0, 1): 4v = q + r with a whole q and |r| <= ½, both exact, and
/// minimax polynomials of r² for a quarter turn (errors 4e-18 and 4e-20). Relative error
/// below 3e-16, near the zeros too.
template <std::size_t count>
NEYMAN_INLINE Turns<count> turn(const SeveralReals<count>& v) {
  constexpr double to_integer = 0x1.8p52;  // adding it rounds to an integer
  const auto quarters = v * 4.0;
  const auto rounded = quarters + to_integer;
  const auto r = quarters - (rounded - to_integer);
  const auto q = to_words(rounded);
  const auto z = r * r;
  auto s = z * 0x1.e407867b7abc5p-25 + -0x1.e300b1eac4136p-19;
  s = s * z + 0x1.5078302900de9p-13;
  s = s * z + -0x1.32d2cce34216bp-8;
  s = s * z + 0x1.466bc67758e72p-4;
  s = s * z + -0x1.4abbce625be47p-1;
  s = s * z + 0x1.1a62633145c07p-54;  // what π/2 lacks
  s = s * r + r * 0x1.921fb54442d18p+0;
  auto c = z * -0x1.b273630012874p-28 + 0x1.f9cc777411587p-22;
  c = c * z + -0x1.a6d1ecc96cf56p-16;
  c = c * z + 0x1.e1f50683ce519p-11;
  c = c * z + -0x1.55d3c7e3c96f4p-6;
  c = c * z + 0x1.03c1f081b5ab1p-2;
  c = c * z + -0x1.3bd3cc9be45dep+0;
  c = c * z + 1.0;
  // An odd q swaps the two; the signs are those of the quadrant.
  const auto swap = -(q & 1);
  const auto change = (to_words(s) ^ to_words(c)) & swap;
  return {to_reals((to_words(c) ^ change) ^ (((q + 1) & 2) << 62)),
          to_reals((to_words(s) ^ change) ^ ((q & 2) << 62))};
}

void bits(const State& state, std::uint64_t* out, std::size_t groups) {
  each_words(state, groups, [&](std::size_t at, Words words) { store(out + at, words); });
}

void uniform(const State& state, double* out, std::size_t groups) {
  each_words(state, groups, [&](std::size_t at, Words words) { store(out + at, to_unit(words)); });
}

template <std::size_t count>
struct Pairs {
  SeveralReals<count> x, y;
};

/// Box and Muller (1958).
template <std::size_t count>
NEYMAN_INLINE Pairs<count> normal_pairs(const SeveralReals<count>& u,
                                        const SeveralReals<count>& v) {
  const SeveralReals<count> radius = square_root(logarithm(u) * -2.0);
  const Turns<count> direction = turn(v);
  return {radius * direction.cosine, radius * direction.sine};
}

// What is left over has every lane do the same, which keeps it in registers.

template <std::size_t count>
NEYMAN_INLINE void next_normal(double* values) {
  SeveralReals<count> u, v;
  NEYMAN_EACH_PART {
    const Reals a = load(values + 2 * i * lanes), b = load(values + (2 * i + 1) * lanes);
    u.part[i] = evens(a, b);
    v.part[i] = odds(a, b);
  }
  const Pairs<count> pairs = normal_pairs(u, v);
  NEYMAN_EACH_PART {
    store(values + 2 * i * lanes, evens(pairs.x.part[i], pairs.y.part[i]));
    store(values + (2 * i + 1) * lanes, odds(pairs.x.part[i], pairs.y.part[i]));
  }
}

void normal(double* values, std::size_t pairs) {
  double* const end = values + 2 * pairs;
  constexpr std::size_t many = side_by_side * lanes;
  for (; end - values >= std::ptrdiff_t{many}; values += many)
    next_normal<side_by_side / 2>(values);
  for (; end - values >= std::ptrdiff_t{2 * lanes}; values += 2 * lanes) next_normal<1>(values);
  for (; values != end; values += 2) {
    const Pairs<1> pair = normal_pairs<1>({values[0] - Reals{}}, {values[1] - Reals{}});
    values[0] = pair.x.part[0][0];
    values[1] = pair.y.part[0][0];
  }
}

template <std::size_t count>
NEYMAN_INLINE void next_exponential(double* values) {
  SeveralReals<count> u;
  NEYMAN_EACH_PART u.part[i] = load(values + i * lanes);
  u = -logarithm(u);
  NEYMAN_EACH_PART store(values + i * lanes, u.part[i]);
}

void exponential(double* values, std::size_t count) {
  double* const end = values + count;
  constexpr std::size_t many = side_by_side * lanes;
  for (; end - values >= std::ptrdiff_t{many}; values += many)
    next_exponential<side_by_side>(values);
  for (; end - values >= std::ptrdiff_t{lanes}; values += lanes) next_exponential<1>(values);
  for (; values != end; ++values) values[0] = -logarithm<1>({values[0] - Reals{}}).part[0][0];
}

}  // namespace

NEYMAN_DEFINE_KERNELS(bits, uniform, normal, exponential);

}  // namespace neyman::philox
