#include "neyman/reports/study_figures.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "reports/example_results.hpp"

namespace neyman::reports {
namespace {

std::vector<std::string> names(const Results& results) {
  std::vector<std::string> out;
  for (const auto& figure : study_figures(results)) out.push_back(figure.name);
  return out;
}

Figure figure_of(const Results& results, const std::string& name) {
  for (auto& figure : study_figures(results))
    if (figure.name == name) return figure;
  ADD_FAILURE() << "no figure " << name;
  return {};
}

template <class Kind>
std::vector<Kind> series_of(const Panel& panel) {
  std::vector<Kind> out;
  for (const auto& series : panel.series)
    if (const auto* match = std::get_if<Kind>(&series)) out.push_back(*match);
  return out;
}

double integral(const Histogram& histogram) {
  double sum = 0.0;
  for (std::size_t b = 0; b < histogram.values.size(); ++b)
    sum += histogram.values[b] * (histogram.edges[b + 1] - histogram.edges[b]);
  return sum;
}

void expect_words(const std::string& text, const std::string& words) {
  EXPECT_NE(text.find(words), std::string::npos) << "'" << words << "' in: " << text;
}

TEST(StudyFigures, AllCanBeDrawn) {
  const auto figures = study_figures(example::results());
  const std::vector<std::string> expected = {"data",       "scores",   "ratio", "log-ratio",
                                             "likelihood", "ensemble", "test"};
  EXPECT_EQ(names(example::results()), expected);
  for (const auto& figure : figures) {
    EXPECT_NO_THROW(check_figure(figure)) << figure.name;
    EXPECT_FALSE(figure.title.empty());
    EXPECT_EQ(figure.caption.back(), '.') << figure.caption;
    EXPECT_EQ(figure.caption.find("gamma"), std::string::npos) << figure.caption;
  }
}

TEST(StudyFigures, OnlyWhereThereAreData) {
  auto results = example::results();
  results.pair_scores.clear();
  results.comparisons.clear();
  results.log_ratios.clear();
  results.exact_log_ratios.clear();
  results.density_x.clear();
  results.numerator_density.clear();
  results.denominator_density.clear();
  results.compared_point.clear();
  results.exact_fit.reset();
  results.ensemble.reset();
  results.test.reset();
  EXPECT_EQ(names(results), (std::vector<std::string>{"data", "likelihood"}));
  for (const auto& figure : study_figures(results)) EXPECT_NO_THROW(check_figure(figure));
  results.data = Matrix();
  results.fit.scans.clear();
  EXPECT_TRUE(study_figures(results).empty());
}

TEST(StudyFigures, SeveralParametersAndFeatures) {
  auto results = example::results();
  results.parameters = ParameterSpace({{"alpha", -3, 3, 1.0}, {"beta", -3, 3, -1.0}});
  auto twice = [](FitReport& report) {
    report.fit.point.push_back(-0.9);
    const double variance = report.fit.covariance(0, 0);
    report.fit.covariance = Matrix(2, 2, {variance, 0, 0, variance});
    report.fit.simulation_covariance = Matrix(2, 2);
    report.intervals.push_back(report.intervals[0]);
    report.scans.push_back(report.scans[0]);
    report.scans[1].parameter = 1;
  };
  twice(results.fit);
  twice(*results.exact_fit);
  results.reference = {0.0, 0.0};
  results.compared_point = {1.0, -1.0};
  results.test->config.null = {1.0, -1.0};
  results.test->config.alternative = {0.0, 0.0};
  auto& ensemble = *results.ensemble;
  ensemble.config.point = {1.0, -1.0};
  for (auto* side : {&ensemble.approximate, &*ensemble.exact}) {
    Matrix both(side->estimates.rows(), 2);
    for (std::size_t d = 0; d < both.rows(); ++d) both(d, 0) = both(d, 1) = side->estimates(d, 0);
    side->estimates = both;
    side->means.push_back(side->means[0]);
    side->spreads.push_back(side->spreads[0]);
  }
  ensemble.bias.push_back(-0.2);
  results.feature_names = {"x1", "x2"};
  Matrix data(500, 2);
  for (std::size_t i = 0; i < 500; ++i) {
    data(i, 0) = results.data(i, 0);
    data(i, 1) = 4.0;  // a constant feature
  }
  results.data = data;
  for (const auto& figure : study_figures(results))
    EXPECT_NO_THROW(check_figure(figure)) << figure.name;
  EXPECT_EQ(figure_of(results, "data").panels.size(), 2u);
  EXPECT_EQ(figure_of(results, "likelihood").panels.size(), 2u);
  EXPECT_EQ(figure_of(results, "likelihood").panels[1].x_label, "β");
  EXPECT_EQ(figure_of(results, "ensemble").panels.size(), 3u);
}

TEST(StudyFigures, DensitiesIntegrateToOne) {
  const auto results = example::results();
  for (const auto& [name, panel] : {std::pair{"log-ratio", 0}, {"ensemble", 0}, {"test", 0}}) {
    const auto figure = figure_of(results, name);
    const auto histograms = series_of<Histogram>(figure.panels[static_cast<std::size_t>(panel)]);
    EXPECT_EQ(histograms.size(), 2u) << name;
    for (const auto& histogram : histograms) EXPECT_NEAR(integral(histogram), 1.0, 0.01) << name;
  }
}

TEST(StudyFigures, FarTailsDoNotFlattenTheData) {
  auto results = example::results();
  results.data(17, 0) = 1e9;
  const auto figure = figure_of(results, "data");
  const auto histogram = series_of<Histogram>(figure.panels[0]).front();
  EXPECT_LT(histogram.edges.back(), 20.0);
  // Of all 5000 events: what is outside is missing from the integral.
  EXPECT_NEAR(integral(histogram), 1.0, 0.001);
  EXPECT_LT(integral(histogram), 1.0);
  expect_words(figure.caption, "beyond the edges of the frame");
}

TEST(StudyFigures, ChiSquareCurveIsTheDensity) {
  const auto panel = figure_of(example::results(), "ensemble").panels[1];
  const auto curve = series_of<Line>(panel).front();
  const double pi = std::acos(-1.0);
  for (std::size_t i = 0; i < curve.x.size(); ++i) {
    const double x = curve.x[i];
    if (x < 0.2) continue;
    const double expected = std::exp(-0.5 * x) / std::sqrt(2.0 * pi * x);
    EXPECT_NEAR(curve.y[i], expected, 1e-3 * expected);
  }
  EXPECT_TRUE(panel.y_log);
}

TEST(StudyFigures, LikelihoodCaptionStatesTheDifference) {
  auto results = example::results();
  results.exact_fit = results.fit;
  for (double& value : results.exact_fit->scans[0].statistic) value += 0.03;
  results.exact_fit->fit.point[0] = results.fit.fit.point[0] - 0.25 * 0.00662;
  const auto figure = figure_of(results, "likelihood");
  expect_words(figure.caption, "differ by at most 0.03;");
  expect_words(figure.caption, "minima are 0.0017 apart, 0.25 of the statistical error");
  // √(0.00662² + 0.0011²) / 0.00662 = 1.0137
  expect_words(figure.caption, "widened by 1.4\u00a0% for finite simulation.");
  const auto thresholds = series_of<ReferenceLine>(figure.panels[0]);
  ASSERT_EQ(thresholds.size(), 3u);
  EXPECT_NEAR(thresholds[1].value, 3.8415, 1e-4);  // χ²₁ quantile of 0.95
  EXPECT_EQ(thresholds[2].value, 0.05);            // the truth
  const auto spans = series_of<Span>(figure.panels[0]);
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_EQ(spans[1].low, results.fit.intervals[0][0].low);
}

TEST(StudyFigures, ScoreCaptionStatesTheCorrection) {
  auto results = example::results();
  results.pair_scores.resize(1);
  auto& pair = results.pair_scores[0];
  for (std::size_t i = 0; i < pair.scores.size(); ++i)
    pair.calibrated[i] = 0.8 * pair.scores[i] + 0.1;
  // All events at the ends: |0.8 s + 0.1 − s| at s = 0.01 and 0.99 is 0.098.
  std::fill(pair.numerator_density.begin(), pair.numerator_density.end(), 0.0);
  std::fill(pair.denominator_density.begin(), pair.denominator_density.end(), 0.0);
  pair.numerator_density.front() = pair.denominator_density.back() = 50.0;
  expect_words(figure_of(results, "scores").caption, "calibration moves the score by 0.098.");
}

TEST(StudyFigures, ObservedShareOfScores) {
  auto results = example::results();
  auto& pair = results.pair_scores[0];
  std::fill(pair.numerator_density.begin(), pair.numerator_density.end(), 0.0);
  pair.numerator_density[10] = 3.0;
  pair.denominator_density[10] = 1.0;
  const auto points = series_of<Points>(figure_of(results, "scores").panels[3]).front();
  ASSERT_EQ(points.x.size(), 1u);
  EXPECT_DOUBLE_EQ(points.x[0], 0.21);
  EXPECT_DOUBLE_EQ(points.y[0], 0.25);
}

TEST(StudyFigures, RatioFramesFollowTheExactCurve) {
  auto results = example::results();
  results.comparisons[1].uncalibrated[7] = 1e6;
  const auto figure = figure_of(results, "ratio");
  ASSERT_EQ(figure.panels.size(), 2u);
  EXPECT_LT(figure.panels[1].y_range->high, 1.0);
  EXPECT_EQ(figure.panels[0].y_range->high, figure.panels[1].y_range->high);
  expect_words(figure.caption,
               "mlp: 0.02 uncalibrated, 0.0075 calibrated and 0.0015 decomposed; random-forest");
}

TEST(StudyFigures, ValuesThatAreNotFiniteDoNotThrow) {
  auto results = example::results();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  results.log_ratios[0] = nan;
  results.test->null_statistics.assign(10, nan);
  results.ensemble->bias = {nan};
  std::vector<std::string> found;
  EXPECT_NO_THROW(found = names(results));
  EXPECT_EQ(std::count(found.begin(), found.end(), "test"), 0);
}

}  // namespace
}  // namespace neyman::reports
