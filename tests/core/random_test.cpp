#include "neyman/core/random.hpp"

#include <Random123/philox.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numbers>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/instruction_set.hpp"
#include "core/random_kernels.hpp"

namespace neyman {
namespace {

// Each statistical check below compares a mean of n draws with its expectation within 5.5
// standard errors: a false alarm in 4e-8 of seeds, and the seed is fixed.
constexpr double standard_errors = 5.5;
constexpr std::size_t draws = 200000;

template <class Draw>
void expect_mean(Draw&& draw, double mean, double sd, const char* what) {
  double sum = 0.0;
  for (std::size_t i = 0; i < draws; ++i) sum += draw();
  EXPECT_NEAR(sum / draws, mean, standard_errors * sd / std::sqrt(double(draws))) << what;
}

TEST(RandomStream, IsNamedBySeedPurposeAndBlock) {
  const auto first = [](RandomStream stream) { return stream.bits(); };
  const auto a = first({1, "train", 0});
  EXPECT_EQ(a, first({1, "train", 0}));
  std::set<std::uint64_t> all{a,
                              first({2, "train", 0}),
                              first({1, "toys", 0}),
                              first({1, "train", 1}),
                              first(RandomStream(1, "train").child("x")),
                              first(RandomStream(1, "train", 1).child("x"))};
  EXPECT_EQ(all.size(), 6U);
}

TEST(RandomStream, BitsStayTheSameOverVersions) {
  // A regression: a changed generator changes everybody's published numbers.
  RandomStream stream(20161220, "golden", 7);
  const std::uint64_t first = stream.bits();
  const std::uint64_t second = stream.bits();
  EXPECT_EQ(first, 4626170835344390106ULL);
  EXPECT_EQ(second, 12205231250537555450ULL);
}

TEST(RandomStream, NumbersStayTheSameOverVersions) {
  RandomStream stream(20161220, "golden", 7);
  EXPECT_EQ(stream.uniform(), 0x1.00cdd774fbe5ep-2);
  EXPECT_EQ(stream.normal(), -0x1.d13a289fc4fc6p-1);
  EXPECT_EQ(stream.normal(), 0x1.4ab0865731f3dp-6);
  EXPECT_EQ(stream.exponential(), 0x1.ac5ced629d44cp+0);
}

// The numbers written out one at a time: what the vectors of every instruction set must give to
// the last bit. This file is compiled without contraction of products and sums.
namespace reference {

std::vector<std::uint64_t> words(const philox::State& state, std::size_t counters) {
  const auto low = [](std::uint64_t v) { return static_cast<std::uint32_t>(v); };
  const auto high = [](std::uint64_t v) { return static_cast<std::uint32_t>(v >> 32); };
  std::vector<std::uint64_t> out;
  for (std::size_t i = 0; i < counters; ++i) {
    const std::uint64_t counter = state.counter + i;
    const auto four =
        r123::Philox4x32()({{low(counter), high(counter), low(state.block), high(state.block)}},
                           {{low(state.key), high(state.key)}});
    out.push_back((std::uint64_t{four[3]} << 32) | four[2]);
    out.push_back((std::uint64_t{four[1]} << 32) | four[0]);
  }
  return out;
}

double uniform(std::uint64_t word) { return (double(word >> 12) + 0.5) * 0x1p-52; }

double polynomial(double z, std::initializer_list<double> coefficients) {
  double sum = *coefficients.begin();
  for (const double c : std::span(coefficients).subspan(1)) sum = sum * z + c;
  return sum;
}

double logarithm(double u) {
  int k = 0;
  double m = std::frexp(u, &k);
  if (m < 0x1.6a09e667f3bcdp-1) m *= 2.0, --k;
  const double f = m - 1.0, s = f / (f + 2.0), z = s * s;
  const double r = polynomial(
      z, {0x1.2ef06c255b517p-3, 0x1.39a3f9405dc3dp-3, 0x1.746626924d4c9p-3, 0x1.c71c528d6763fp-3,
          0x1.2492494137639p-2, 0x1.9999999980d5dp-2, 0x1.555555555558fp-1, 0.0});
  const double half_square = f * f * 0.5;
  return k * 0x1.62e42feep-1 -
         ((half_square - (s * (half_square + r) + k * 0x1.a39ef35793c76p-33)) - f);
}

std::array<double, 2> normal(double u, double v) {
  const double q = std::nearbyint(4.0 * v), r = 4.0 * v - q, z = r * r;
  const double sine =
      polynomial(z, {0x1.e407867b7abc5p-25, -0x1.e300b1eac4136p-19, 0x1.5078302900de9p-13,
                     -0x1.32d2cce34216bp-8, 0x1.466bc67758e72p-4, -0x1.4abbce625be47p-1,
                     0x1.1a62633145c07p-54}) *
          r +
      r * 0x1.921fb54442d18p+0;
  const double cosine =
      polynomial(z, {-0x1.b273630012874p-28, 0x1.f9cc777411587p-22, -0x1.a6d1ecc96cf56p-16,
                     0x1.e1f50683ce519p-11, -0x1.55d3c7e3c96f4p-6, 0x1.03c1f081b5ab1p-2,
                     -0x1.3bd3cc9be45dep+0, 1.0});
  const double radius = std::sqrt(logarithm(u) * -2.0);
  switch (int(q) % 4) {
    case 0:
      return {radius * cosine, radius * sine};
    case 1:
      return {radius * -sine, radius * cosine};
    case 2:
      return {radius * -cosine, radius * -sine};
    default:
      return {radius * sine, radius * -cosine};
  }
}

}  // namespace reference

std::vector<std::uint64_t> bits_of(std::span<const double> values) {
  std::vector<std::uint64_t> out;
  for (const double value : values) out.push_back(std::bit_cast<std::uint64_t>(value));
  return out;
}

std::vector<const philox::Kernels*> each_set() { return detail::supported(philox::all_kernels); }

TEST(RandomKernels, KnownAnswersOfPhilox) {
  // Random123's own vectors, kat_vectors: philox4x32 with ten rounds.
  struct Known {
    philox::State state;
    std::uint64_t upper, lower;
  };
  const Known all[] = {
      {{0, 0, 0}, 0x9b00dbd8bc57ac4c, 0xe169c58d6627e8d5},
      {{~0ULL, ~0ULL, ~0ULL}, 0x6d5451fda20bc7c6, 0x41c83b0e408f276d},
      {{0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88},
       0x24126ea15001e420,
       0x94fdccebd16cfe09},
  };
  for (const auto* kernels : each_set()) {
    for (const Known& known : all) {
      std::array<std::uint64_t, philox::group_words> out{};
      kernels->bits(known.state, out.data(), 1);
      EXPECT_EQ(out[0], known.upper) << kernels->name;
      EXPECT_EQ(out[1], known.lower) << kernels->name;
    }
  }
}

TEST(RandomKernels, EveryInstructionSetGivesTheReferencesBits) {
  constexpr std::size_t groups = 2000, count = groups * philox::group_words;
  // The second counter carries into its upper half, the third starts anew.
  for (const std::uint64_t counter : {0ULL, 0xffffff00ULL, ~0ULL - 100}) {
    const philox::State state{0x0123456789abcdef, 0xfedcba9876543210, counter};
    const auto words = reference::words(state, groups * philox::group);
    std::vector<double> uniform, normal, exponential;
    for (const auto word : words) uniform.push_back(reference::uniform(word));
    for (std::size_t i = 0; i < count; i += 2)
      for (const double z : reference::normal(uniform[i], uniform[i + 1])) normal.push_back(z);
    for (const double u : uniform) exponential.push_back(-reference::logarithm(u));
    for (const auto* kernels : each_set()) {
      std::vector<std::uint64_t> bits(count);
      std::vector<double> values(count);
      kernels->bits(state, bits.data(), groups);
      EXPECT_EQ(bits, words) << kernels->name;
      kernels->uniform(state, values.data(), groups);
      EXPECT_EQ(bits_of(values), bits_of(uniform)) << kernels->name;
      kernels->normal(values.data(), count / 2);
      EXPECT_EQ(bits_of(values), bits_of(normal)) << kernels->name;
      values = uniform;
      kernels->exponential(values.data(), count);
      EXPECT_EQ(bits_of(values), bits_of(exponential)) << kernels->name;
    }
  }
}

TEST(RandomKernels, PartsOfAVectorGiveTheSameBits) {
  std::vector<double> uniform(40);
  RandomStream(11, "parts").fill_uniform(uniform);
  for (const auto* kernels : each_set()) {
    auto normal = uniform, exponential = uniform;
    kernels->normal(normal.data(), normal.size() / 2);
    kernels->exponential(exponential.data(), exponential.size());
    for (std::size_t count = 0; count <= uniform.size(); ++count) {
      auto expected = exponential, found = uniform;
      std::copy(uniform.begin() + std::ptrdiff_t(count), uniform.end(),
                expected.begin() + std::ptrdiff_t(count));
      kernels->exponential(found.data(), count);
      EXPECT_EQ(bits_of(found), bits_of(expected)) << kernels->name << " " << count;
      if (count % 2 != 0) continue;
      expected = normal, found = uniform;
      std::copy(uniform.begin() + std::ptrdiff_t(count), uniform.end(),
                expected.begin() + std::ptrdiff_t(count));
      kernels->normal(found.data(), count / 2);
      EXPECT_EQ(bits_of(found), bits_of(expected)) << kernels->name << " " << count;
    }
  }
}

/// Uniform numbers at and beside every place where the functions change their form.
std::vector<double> hard_uniforms() {
  std::set<std::uint64_t> places;  // n of (n + 1/2) / 2^52
  const std::uint64_t end = 1ULL << 52;
  const auto around = [&](std::uint64_t n) {
    for (std::uint64_t d = 0; d < 50; ++d) {
      places.insert((n + d) % end);
      places.insert((n + end - 1 - d) % end);
    }
  };
  for (std::uint64_t eighth = 0; eighth < 8; ++eighth) around(eighth * (end / 8));
  for (int k = 0; k < 52; ++k) {
    around(1ULL << k);
    around(static_cast<std::uint64_t>(std::ldexp(std::numbers::sqrt2 / 2, k)));
    around(end - (1ULL << k));
  }
  std::vector<double> out;
  for (const auto n : places) out.push_back((double(n) + 0.5) * 0x1p-52);
  for (const auto word : reference::words({1, 2, 3}, 50000))
    out.push_back(reference::uniform(word));
  return out;
}

TEST(RandomKernels, NormalAndExponentialNumbersAreAccurate) {
  // Against long double, relative to each number: also where it is tiny or far in a tail.
  const auto uniform = hard_uniforms();
  const auto& kernels = *each_set().back();
  auto exponential = uniform;
  kernels.exponential(exponential.data(), exponential.size());
  long double worst = 0.0L;
  for (std::size_t i = 0; i < uniform.size(); ++i) {
    const long double exact = -std::log(static_cast<long double>(uniform[i]));
    worst = std::max(worst, std::abs(exponential[i] / exact - 1.0L));
  }
  EXPECT_LT(worst, 2.3e-16L);

  std::vector<double> pairs;
  for (std::size_t i = 0; i < uniform.size(); ++i) {
    pairs.push_back(uniform[i]);
    pairs.push_back(uniform[(i * 7919) % uniform.size()]);
  }
  auto normal = pairs;
  kernels.normal(normal.data(), normal.size() / 2);
  worst = 0.0L;
  double farthest = 0.0;
  for (std::size_t i = 0; i < pairs.size(); i += 2) {
    const long double radius = std::sqrt(-2.0L * std::log(static_cast<long double>(pairs[i])));
    // The angle within a quarter turn, which is exact, so that long double loses nothing either.
    const double quarters = 4.0 * pairs[i + 1], q = std::nearbyint(quarters);
    const long double rest =
        (static_cast<long double>(quarters) - q) * std::numbers::pi_v<long double> / 2;
    const long double c = std::cos(rest), s = std::sin(rest);
    const int quadrant = int(q) % 4;
    const long double x = quadrant == 0 ? c : quadrant == 1 ? -s : quadrant == 2 ? -c : s;
    const long double y = quadrant == 0 ? s : quadrant == 1 ? c : quadrant == 2 ? -s : -c;
    worst = std::max({worst, std::abs(normal[i] / (radius * x) - 1.0L),
                      std::abs(normal[i + 1] / (radius * y) - 1.0L)});
    farthest = std::max({farthest, std::abs(normal[i]), std::abs(normal[i + 1])});
  }
  EXPECT_LT(worst, 6e-16L);

  std::array<double, 2> tail{0x1p-53, 0x1p-53};
  kernels.normal(tail.data(), 1);
  EXPECT_NEAR(tail[0], 8.57167434, 1e-8);  // √(106 log 2)
  EXPECT_LE(farthest, tail[0]);
}

TEST(RandomStream, ManyAtOnceAreTheSameNumbers) {
  RandomStream one(6, "many"), many(6, "many");
  const std::size_t sizes[] = {0, 1, 2, 3, 7, 15, 16, 17, 31, 32, 33, 100, 1023, 1024, 1025, 3001};
  for (const std::size_t first : sizes) {
    for (const std::size_t second : {std::size_t{1}, std::size_t{5}, std::size_t{64}}) {
      std::vector<double> a, b(first + second + first);
      const std::span parts(b);
      for (std::size_t i = 0; i < first; ++i) a.push_back(one.normal());
      for (std::size_t i = 0; i < second; ++i) a.push_back(one.uniform());
      for (std::size_t i = 0; i < first; ++i) a.push_back(one.exponential());
      many.fill_normal(parts.first(first));
      many.fill_uniform(parts.subspan(first, second));
      many.fill_exponential(parts.last(first));
      ASSERT_EQ(bits_of(a), bits_of(b)) << first << " " << second;
      ASSERT_EQ(one.bits(), many.bits());
    }
  }
}

TEST(RandomStream, NormalNumbersFollowTheirDistribution) {
  constexpr std::size_t n = 10'000'000;
  std::vector<double> z(n);
  RandomStream(17, "distribution").fill_normal(z);
  // Moments within 5.5 standard errors: false alarms in 4e-8 each.
  std::array<double, 5> sums{};
  for (const double value : z)
    for (double power = value, k = 1; k < 5; power *= value, ++k) sums[std::size_t(k)] += power;
  const double means[] = {1, 0, 1, 0, 3},
               sds[] = {0, 1, std::sqrt(2), std::sqrt(15), std::sqrt(96)};
  for (std::size_t k = 1; k < 5; ++k)
    EXPECT_NEAR(sums[k] / n, means[k], standard_errors * sds[k] / std::sqrt(double(n))) << k;
  // Kolmogorov–Smirnov: P(√n D > 3) = 2 e^−18 = 3e-8.
  std::sort(z.begin(), z.end());
  double distance = 0.0;
  for (std::size_t i = 0; i < n; ++i) {
    const double cdf = 0.5 * std::erfc(-z[i] / std::numbers::sqrt2);
    distance = std::max({distance, cdf - double(i) / n, double(i + 1) / n - cdf});
  }
  EXPECT_LT(distance * std::sqrt(double(n)), 3.0);
}

TEST(RandomStream, TailsOfNormalNumbers) {
  // 10^8 draws, each side of its own. Poisson counts: 3167 and 28.7 expected beyond 4 and 5, within
  // 5.5 standard deviations (false alarms in 5e-8 and 1e-6); beyond 6, 0.099, at most 4 (8e-8).
  RandomStream random(19, "tails");
  std::vector<double> z(10'000);
  std::array<std::array<std::size_t, 2>, 3> counts{};
  for (std::size_t block = 0; block < 10'000; ++block) {
    random.fill_normal(z);
    for (const double value : z) {
      if (!(std::abs(value) > 4.0)) continue;
      const std::size_t side = value > 0.0 ? 1 : 0;
      for (std::size_t k = 0; k < 3; ++k)
        if (std::abs(value) > 4.0 + double(k)) ++counts[k][side];
    }
  }
  for (const std::size_t side : {0u, 1u}) {
    for (const std::size_t k : {0u, 1u}) {
      const double expected = 1e8 * 0.5 * std::erfc((4.0 + double(k)) / std::numbers::sqrt2);
      EXPECT_NEAR(double(counts[k][side]), expected, standard_errors * std::sqrt(expected));
    }
    EXPECT_LE(counts[2][side], 4U);
  }
}

/// Mean products of two sequences and of their squares, which are 0 where they are independent.
void expect_independent(std::span<const double> a, std::span<const double> b,
                        const std::string& what) {
  double product = 0.0, squares = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    product += a[i] * b[i];
    squares += 0.5 * (a[i] * a[i] - 1.0) * (b[i] * b[i] - 1.0);
  }
  const double limit = standard_errors * std::sqrt(double(a.size()));  // 4e-8 each
  EXPECT_LT(std::abs(product), limit) << what;
  EXPECT_LT(std::abs(squares), limit) << what;
}

TEST(RandomStream, NeighboursLanesAndStreamsAreIndependent) {
  constexpr std::size_t n = 1'000'000;
  const auto draw = [](RandomStream random) {
    std::vector<double> out(n + 64);
    random.fill_normal(out);
    return out;
  };
  const auto z = draw({23, "independent", 5});
  const std::span all(z);
  // Lag 1 is the other number of a pair, 2 the next counter, 16 the same lane of the next group.
  for (const std::size_t lag : {1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 32, 64})
    expect_independent(all.first(n), all.subspan(lag, n), "lag " + std::to_string(lag));
  expect_independent(z, draw({23, "independent", 6}), "the next block");
  expect_independent(z, draw({24, "independent", 5}), "the next seed");
  expect_independent(z, draw({23, "independenu", 5}), "a purpose beside it");
  expect_independent(z, draw(RandomStream(23, "independent", 5).child("x")), "a child");
}

TEST(RandomStream, MomentsOfEachDistribution) {
  RandomStream r(42, "moments");
  expect_mean([&] { return r.uniform(); }, 0.5, std::sqrt(1.0 / 12), "uniform");
  expect_mean(
      [&] {
        const double u = r.uniform();
        return u * u;
      },
      1.0 / 3, std::sqrt(1.0 / 5 - 1.0 / 9), "uniform squared");
  expect_mean([&] { return r.normal(); }, 0.0, 1.0, "normal");
  expect_mean([&] { return std::pow(r.normal(), 2); }, 1.0, std::sqrt(2.0), "normal squared");
  expect_mean([&] { return std::pow(r.normal(), 4); }, 3.0, std::sqrt(96.0), "normal^4");
  expect_mean([&] { return r.exponential(); }, 1.0, 1.0, "exponential");
  for (const double shape : {0.3, 1.0, 4.5})
    expect_mean([&] { return r.gamma(shape); }, shape, std::sqrt(shape), "gamma");
  for (const double mean : {0.2, 3.0, 11.9, 12.1, 40.0, 1e4}) {
    expect_mean([&] { return double(r.poisson(mean)); }, mean, std::sqrt(mean), "poisson");
    // Var((X − m)²) of a Poisson is m + 2m².
    expect_mean([&] { return std::pow(double(r.poisson(mean)) - mean, 2); }, mean,
                std::sqrt(mean + 2 * mean * mean), "poisson variance");
  }
  EXPECT_EQ(r.poisson(0.0), 0U);
}

TEST(RandomStream, BelowIsUniform) {
  RandomStream r(3, "below");
  std::vector<std::size_t> counts(7);
  for (std::size_t i = 0; i < draws; ++i) ++counts[r.below(7)];
  const double expected = double(draws) / 7;
  for (const auto count : counts)
    EXPECT_NEAR(double(count), expected, standard_errors * std::sqrt(expected));
  EXPECT_EQ(r.below(1), 0U);
}

TEST(RandomStream, UniformIsNeverZeroOrOne) {
  RandomStream r(5, "open");
  for (std::size_t i = 0; i < draws; ++i) {
    const double u = r.uniform();
    ASSERT_GT(u, 0.0);
    ASSERT_LT(u, 1.0);
  }
}

}  // namespace
}  // namespace neyman
