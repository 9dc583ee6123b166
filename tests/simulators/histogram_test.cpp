#include "neyman/simulators/histogram.hpp"

#include "neyman/simulators/join.hpp"
#include "neyman/simulators/normal.hpp"
#include "not_finite.hpp"
#include "simulators/reference.hpp"

namespace neyman {
namespace {

/// Σ density · volume over all bins of one axis.
double total_probability(const Histogram& histogram) {
  double sum = 0.0;
  const auto& edges = histogram.edges().front();
  for (std::size_t i = 0; i + 1 < edges.size(); ++i)
    sum += std::exp(reference::log_density_at(histogram, {}, {0.5 * (edges[i] + edges[i + 1])})) *
           (edges[i + 1] - edges[i]);
  return sum;
}

TEST(Histogram, DensityIsContentOverWidth) {
  const Histogram histogram({{0.0, 1.0, 3.0, 4.0}}, {2.0, 6.0, 0.0});
  EXPECT_DOUBLE_EQ(reference::log_density_at(histogram, {}, {0.0}), std::log(0.25));
  EXPECT_DOUBLE_EQ(reference::log_density_at(histogram, {}, {1.0}), std::log(0.375));
  EXPECT_DOUBLE_EQ(reference::log_density_at(histogram, {}, {2.999}), std::log(0.375));
  for (const double x : {-0.001, 3.0, 3.5, 4.0, 4.001})
    EXPECT_EQ(reference::log_density_at(histogram, {}, {x}), -infinity) << x;
  EXPECT_DOUBLE_EQ(total_probability(histogram), 1.0);
  EXPECT_DOUBLE_EQ(histogram.cdf({}, 2.0), 0.625);
  EXPECT_DOUBLE_EQ(histogram.quantile({}, 0.625), 2.0);
  EXPECT_DOUBLE_EQ(histogram.quantile({}, 1.0), 3.0);
  EXPECT_DOUBLE_EQ(Histogram({{0.0, 1.0, 2.0}}, {0.0, 1.0}).quantile({}, 0.0), 1.0);
}

TEST(Histogram, TheLastBinHoldsItsUpperEdge) {
  const Histogram histogram({{0.0, 1.0, 2.0}}, {1.0, 3.0});
  EXPECT_DOUBLE_EQ(reference::log_density_at(histogram, {}, {2.0}), std::log(0.75));
}

TEST(Histogram, OfTwoAxesIsRowMajor) {
  const Histogram histogram({{0.0, 1.0, 3.0}, {0.0, 0.5, 1.0, 2.0}}, {1, 2, 3, 4, 0, 6});
  EXPECT_DOUBLE_EQ(reference::log_density_at(histogram, {}, {0.5, 1.5}), std::log(3.0 / 16.0));
  EXPECT_DOUBLE_EQ(reference::log_density_at(histogram, {}, {2.0, 0.2}),
                   std::log(4.0 / 16.0 / (2.0 * 0.5)));
  EXPECT_EQ(reference::log_density_at(histogram, {}, {2.0, 0.7}), -infinity);
  EXPECT_FALSE(histogram.has_cdf());
}

TEST(Histogram, IsNormalisedForEveryBinning) {
  const auto x = sample(Normal(1.0, 2.0), {}, 5000, 1, "test");
  std::vector<double> weights(x.rows());
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = 0.5 + (i % 7);
  for (const auto binning : {Histogram::Binning::uniform, Histogram::Binning::equal_probability,
                             Histogram::Binning::bayesian_blocks}) {
    Histogram::Config config;
    config.binning = binning;
    config.bins = 30;
    const auto histogram = Histogram::filled(x, weights, config);
    EXPECT_NEAR(total_probability(histogram), 1.0, 1e-12);
    EXPECT_EQ(histogram.outside(), 0.0);
    // Near the normal density in the middle: within 15 % for bins of some hundred events.
    EXPECT_NEAR(std::exp(reference::log_density_at(histogram, {}, {1.0})), 0.1995, 0.03);
  }
}

TEST(Histogram, WeightsEqualRepetition) {
  const Matrix once(3, 1, {0.5, 1.5, 2.5}), repeated(6, 1, {0.5, 1.5, 1.5, 2.5, 2.5, 2.5});
  const std::vector<std::vector<double>> edges{{0.0, 1.0, 2.0, 3.0}};
  const auto a = Histogram::filled(once, std::vector{1.0, 2.0, 3.0}, edges);
  const auto b = Histogram::filled(repeated, {}, edges);
  EXPECT_EQ(a.contents(), b.contents());
}

TEST(Histogram, CountsWhatLiesOutsideGivenEdges) {
  const Matrix x(3, 1, {-1.0, 0.5, 9.0});
  const auto histogram =
      Histogram::filled(x, std::vector{1.0, 2.0, 4.0}, std::vector<std::vector<double>>{{0, 1}});
  EXPECT_DOUBLE_EQ(histogram.outside(), 5.0);
  EXPECT_DOUBLE_EQ(reference::log_density_at(histogram, {}, {0.5}), 0.0);
}

// False alarm 1e-6 (Kolmogorov–Smirnov).
TEST(Histogram, SamplesFollowTheCdf) {
  const Histogram histogram({{-1.0, 0.0, 2.0, 2.5, 10.0}}, {1.0, 0.0, 5.0, 2.0});
  const auto x = sample(histogram, {}, 50000, 2, "test");
  EXPECT_GT(reference::ks_p_value(x.column(0), [&](double v) { return histogram.cdf({}, v); }),
            reference::false_alarm);
}

// False alarm below 1e-6 (six bins, five standard errors); no event is in the empty bin.
TEST(Histogram, SamplesOfTwoAxesFillTheBins) {
  const std::vector<std::vector<double>> edges{{0.0, 1.0, 3.0}, {0.0, 0.5, 1.0, 2.0}};
  const Histogram histogram(edges, {1, 2, 3, 4, 0, 6});
  const std::size_t n = 40000;
  const auto again = Histogram::filled(sample(histogram, {}, n, 3, "test"), {}, edges);
  EXPECT_EQ(again.outside(), 0.0);
  EXPECT_EQ(again.contents()[4], 0.0);
  for (std::size_t b = 0; b < 6; ++b) {
    const double p = histogram.contents()[b] / 16.0;
    EXPECT_NEAR(again.contents()[b] / n, p, 5.0 * std::sqrt(p * (1 - p) / n));
  }
}

TEST(Histogram, RefusesWhatIsNone) {
  EXPECT_THROW(Histogram({{0.0, 1.0}}, {0.0}), ArgumentError);
  EXPECT_THROW(Histogram({{0.0, 1.0}}, {-1.0}), ArgumentError);
  EXPECT_THROW(Histogram({{0.0, 1.0}}, {1.0, 2.0}), ArgumentError);
  EXPECT_THROW(Histogram({{0.0}}, {}), ArgumentError);
  EXPECT_THROW(Histogram({}, {}), ArgumentError);
  EXPECT_EQ(reference::error_of([] {
              Histogram({{0.0, 1.0, 1.0}}, {1.0, 2.0});
            }),
            "histogram: edges[2] is 1, but must be above the one before, 1");
  EXPECT_THROW(Histogram::filled(Matrix(0, 1), {}, Histogram::Config{}), ArgumentError);
}

}  // namespace
}  // namespace neyman
