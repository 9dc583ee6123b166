#include "measurements/unbinned_kernels.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/instruction_set.hpp"
#include "core/vector_math.hpp"
#include "neyman/core/random.hpp"

namespace neyman::unbinned {
namespace {

/// Two components, of which the second has a shape of five functions and two parameters, and a
/// third that shares one of these, with six functions and five parameters.
struct Problem {
  std::size_t events;
  std::vector<std::vector<double>> ratios, rows;
  std::vector<double> weights, b, slopes, b_other, slopes_other;
  std::vector<const double*> pointers;
  std::vector<std::size_t> places{0, 1}, places_other{1, 2, 3, 4, 5};
  std::vector<Component> components;

  explicit Problem(std::size_t count, bool weighted) : events(count) {
    RandomStream random(5, "problem", count);
    const auto numbers = [&](std::size_t size, double scale) {
      std::vector<double> out(size);
      for (auto& value : out) value = scale * random.normal();
      return out;
    };
    for (int c = 0; c < 3; ++c) {
      ratios.push_back(numbers(count, 1.0));
      for (auto& ratio : ratios.back()) ratio = std::exp(ratio);
    }
    for (int k = 0; k < 11; ++k) rows.push_back(numbers(count, 1.0));
    if (weighted) {
      weights = numbers(count, 1.0);
      for (auto& weight : weights) weight = std::abs(weight);
    }
    b = numbers(5, 0.3), slopes = numbers(10, 0.5);
    b_other = numbers(6, 0.3), slopes_other = numbers(30, 0.5);
    for (const auto& row : rows) pointers.push_back(row.data());
    components = {
        {ratios[0].data(), 2.0, {}, nullptr},
        {ratios[1].data(), 5.0, {pointers.data(), 5, b.data(), 2, slopes.data()}, places.data()},
        {ratios[2].data(),
         -0.1,
         {pointers.data() + 5, 6, b_other.data(), 5, slopes_other.data()},
         places_other.data()}};
  }
  std::size_t moving = 6;
  Events view() const {
    return {components.data(), components.size(), moving,
            weights.empty() ? nullptr : weights.data(), events};
  }
};

struct Results {
  bool positive = true;
  double logs = 0.0;
  std::vector<double> shares, moments, own, gram, densities;
  std::size_t functions = 0, slopes = 0;
  explicit Results(const Problem& problem) : shares(problem.components.size()) {
    for (const auto& component : problem.components) {
      functions += component.shape.functions;
      slopes += component.shape.moving;
      own.resize(own.size() + component.shape.moving * component.shape.moving);
    }
    moments.resize(functions);
    const std::size_t width = shares.size() + problem.moving;
    gram.resize(width * width);
  }
  bool operator==(const Results&) const = default;
};

Results by_kernel(const Kernels& kernels, const Problem& problem) {
  Results out(problem);
  out.densities.resize(problem.events);
  std::vector<double> room(
      room_for(problem.components.size(), out.functions, out.slopes, problem.moving));
  Sums sums{0.0, out.shares.data(), out.moments.data(), out.own.data(), out.gram.data()};
  const auto exponentiate = vector_math::kernels().exponentiate;
  kernels.densities(problem.view(), exponentiate, room.data(), out.densities.data());
  out.positive = kernels.add(problem.view(), exponentiate, room.data(), sums);
  out.logs = sums.logs;
  return out;
}

Results by_formula(const Problem& problem) {
  Results out(problem);
  const std::size_t count = problem.components.size(), width = count + problem.moving;
  for (std::size_t i = 0; i < problem.events; ++i) {
    std::vector<double> part(count), y(width);
    std::vector<std::vector<double>> slope(count);
    double density = 0.0;
    for (std::size_t c = 0; c < count; ++c) {
      const auto& shape = problem.components[c].shape;
      double exponent = 0.0;
      slope[c].resize(shape.moving);
      for (std::size_t k = 0; k < shape.functions; ++k) {
        exponent += shape.coefficients[k] * shape.rows[k][i];
        for (std::size_t s = 0; s < shape.moving; ++s)
          slope[c][s] += (shape.slopes == nullptr ? (s == k ? 1.0 : 0.0)
                                                  : shape.slopes[s * shape.functions + k]) *
                         shape.rows[k][i];
      }
      const auto& component = problem.components[c];
      part[c] = component.scale * component.ratios[i] * std::exp(exponent);
      density += part[c];
    }
    out.densities.push_back(density);
    out.positive = out.positive && density > 0.0;
    const double weight = problem.weights.empty() ? 1.0 : problem.weights[i];
    out.logs += weight * std::log(density);
    std::size_t row = 0, own = 0;
    for (std::size_t c = 0; c < count; ++c) {
      const auto& component = problem.components[c];
      const auto& shape = component.shape;
      const double u = part[c] / density;
      y[c] = u;
      out.shares[c] += weight * u;
      for (std::size_t k = 0; k < shape.functions; ++k)
        out.moments[row++] += weight * u * shape.rows[k][i];
      for (std::size_t s = 0; s < shape.moving; ++s) {
        y[count + component.places[s]] += u * slope[c][s];
        for (std::size_t t = 0; t <= s; ++t)
          out.own[own + s * shape.moving + t] += weight * u * slope[c][s] * slope[c][t];
      }
      own += shape.moving * shape.moving;
    }
    for (std::size_t a = 0; a < width; ++a)
      for (std::size_t b = 0; b <= a; ++b) out.gram[a * width + b] += weight * y[a] * y[b];
  }
  return out;
}

void expect_near(const std::vector<double>& a, const std::vector<double>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    EXPECT_NEAR(a[i], b[i], 1e-11 * (1.0 + std::abs(b[i]))) << i;
}

void expect_formula(const Problem& problem) {
  const auto expected = by_formula(problem);
  ASSERT_TRUE(expected.positive);
  const auto sets = detail::supported(all_kernels);
  const auto first = by_kernel(*sets[0], problem);
  expect_near(first.densities, expected.densities);
  expect_near({first.logs}, {expected.logs});
  expect_near(first.shares, expected.shares);
  expect_near(first.moments, expected.moments);
  expect_near(first.own, expected.own);
  expect_near(first.gram, expected.gram);
  for (const auto* set : sets) EXPECT_EQ(by_kernel(*set, problem), first) << set->name;
}

TEST(UnbinnedKernels, EverySetIsTheFormulaWithTheSameBits) {
  for (const bool weighted : {false, true})
    for (const std::size_t events : {1, 7, 128, 129, 300})
      expect_formula(Problem(events, weighted));
}

TEST(UnbinnedKernels, TheFunctionsThemselvesMayBeTheDirections) {
  for (const bool weighted : {false, true})
    for (const std::size_t events : {1, 128, 300}) {
      Problem problem(events, weighted);
      problem.moving = 11;
      problem.places = {0, 1, 2, 3, 4};
      problem.places_other = {5, 6, 7, 8, 9, 10};
      for (auto& component : problem.components) {
        component.shape.moving = component.shape.functions;
        component.shape.slopes = nullptr;
      }
      problem.components[1].places = problem.places.data();
      problem.components[2].places = problem.places_other.data();
      expect_formula(problem);
      // At the nominal point of a shape.
      problem.b.assign(5, 0.0);
      expect_formula(problem);
    }
}

TEST(UnbinnedKernels, AnyNumberOfComponents) {
  for (const bool weighted : {false, true})
    for (const std::size_t count : {1, 2, 4, 5, 9}) {
      Problem problem(200, weighted);
      const auto three = problem.components;
      problem.components.clear();
      for (std::size_t c = 0; c < count; ++c) {
        problem.components.push_back(three[(c + 1) % 3]);
        double& scale = problem.components.back().scale;
        scale *= scale < 0.0 ? 1e-3 : 1.0 + 0.1 * static_cast<double>(c);
      }
      expect_formula(problem);
    }
}

TEST(UnbinnedKernels, DensitiesThatAreNotPositiveAreSaid) {
  Problem problem(200, false);
  problem.components[2].scale = -3.0;
  EXPECT_FALSE(by_formula(problem).positive);
  for (const auto* set : detail::supported(all_kernels))
    EXPECT_FALSE(by_kernel(*set, problem).positive) << set->name;
}

/// Of one, two and three directions: the sums at each node by themselves.
void expect_lattice(const Kernels& set, const Problem& problem, std::vector<double>& room) {
  const std::vector<double> nodes{-1.0, -0.3, 0.0, 0.3, 1.0};
  const auto exponentiate = vector_math::kernels().exponentiate;
  for (std::size_t dimensions = 1; dimensions <= 3; ++dimensions) {
    auto shape = problem.components[2].shape;
    shape.moving = dimensions;
    std::size_t count = 1;
    for (std::size_t d = 0; d < dimensions; ++d) count *= nodes.size();
    std::vector<double> sums(count), each(count), many;
    for (std::size_t n = 0; n < count; ++n) {
      std::vector<double> b(shape.coefficients, shape.coefficients + 6);
      for (std::size_t d = dimensions, rest = n; d-- > 0; rest /= nodes.size())
        for (std::size_t k = 0; k < 6; ++k)
          b[k] += nodes[rest % nodes.size()] * shape.slopes[d * 6 + k];
      many.insert(many.end(), b.begin(), b.end());
    }
    set.normalise_each(shape, many.data(), count, problem.weights.data(), problem.events,
                       exponentiate, room.data(), each.data());
    std::vector<double> more(room_for_lattice(6, dimensions, nodes.size()));
    set.normalise_lattice(shape, nodes.data(), nodes.size(), problem.weights.data(), problem.events,
                          exponentiate, more.data(), sums.data());
    expect_near(sums, each);
  }
}

TEST(UnbinnedKernels, NormalisersAreTheirSums) {
  for (const std::size_t events : {5, 128, 1000}) {
    const Problem problem(events, true);
    const auto& shape = problem.components[2].shape;
    double sum = 0.0;
    std::vector<double> moments(6), own(25);
    for (std::size_t i = 0; i < events; ++i) {
      double exponent = 0.0;
      std::vector<double> slope(5);
      for (std::size_t k = 0; k < 6; ++k) {
        exponent += shape.coefficients[k] * shape.rows[k][i];
        for (std::size_t s = 0; s < 5; ++s) slope[s] += shape.slopes[s * 6 + k] * shape.rows[k][i];
      }
      const double part = problem.weights[i] * std::exp(exponent);
      sum += part;
      for (std::size_t k = 0; k < 6; ++k) moments[k] += part * shape.rows[k][i];
      for (std::size_t s = 0; s < 5; ++s)
        for (std::size_t t = 0; t <= s; ++t) own[s * 5 + t] += part * slope[s] * slope[t];
    }
    for (const auto* set : detail::supported(all_kernels)) {
      std::vector<double> room(room_for(1, 6, 5, 5));
      double found = 0.0;
      std::vector<double> found_moments(6), found_own(25);
      const auto exponentiate = vector_math::kernels().exponentiate;
      set->normalise(shape, problem.weights.data(), events, exponentiate, room.data(), &found,
                     found_moments.data(), found_own.data());
      expect_near({found}, {sum});
      expect_near(found_moments, moments);
      expect_near(found_own, own);
      // Of many coefficients at once, this one among them.
      std::vector<double> many(7 * 6, 0.1), sums(7);
      std::copy(problem.b_other.begin(), problem.b_other.end(), many.begin() + 5 * 6);
      set->normalise_each(shape, many.data(), 7, problem.weights.data(), events, exponentiate,
                          room.data(), sums.data());
      EXPECT_NEAR(sums[5], sum, 1e-11 * sum);
      EXPECT_EQ(sums[0], sums[6]);
      expect_lattice(*set, problem, room);
    }
  }
}

}  // namespace
}  // namespace neyman::unbinned
