#include "neyman/reports/study_figures.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "not_finite.hpp"
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
  EXPECT_EQ(figure_of(results, "data").panels.size(), 4u);
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
  results.log_ratios[0] = nan;
  results.test->null_statistics.assign(10, nan);
  results.ensemble->bias = {nan};
  std::vector<std::string> found;
  EXPECT_NO_THROW(found = names(results));
  EXPECT_EQ(std::count(found.begin(), found.end(), "test"), 0);
}

// --------------------------------------------------------------- parameterised studies

TEST(ParameterisedFigures, AllCanBeDrawn) {
  const std::vector<std::string> expected = {
      "data",     "likelihood",         "surface-alpha-beta",   "contours-alpha-beta",
      "coverage", "diagnostic-closure", "diagnostic-reference", "diagnostic-reweighting"};
  EXPECT_EQ(names(example::two_parameters()), expected);
  EXPECT_EQ(names(example::six_parameters()),
            (std::vector<std::string>{"data", "likelihood", "correlation", "diagnostic-closure",
                                      "diagnostic-reference", "diagnostic-reweighting"}));
  for (const auto& results : {example::two_parameters(), example::six_parameters()})
    for (const auto& figure : study_figures(results)) {
      EXPECT_NO_THROW(check_figure(figure)) << figure.name;
      EXPECT_EQ(figure.caption.back(), '.') << figure.caption;
    }
}

TEST(ParameterisedFigures, AnyNumberOfParametersAndFeatures) {
  for (std::size_t parameters = 1; parameters <= 6; ++parameters)
    for (const std::size_t features : {1, 2, 8, 9, 30}) {
      const auto results = example::with_parameters(parameters, features);
      for (const auto& figure : study_figures(results))
        EXPECT_NO_THROW(check_figure(figure)) << figure.name << parameters << ' ' << features;
      EXPECT_EQ(figure_of(results, "likelihood").panels.size(), parameters);
    }
}

TEST(ParameterisedFigures, ScatterMatrixOfTheFeatures) {
  auto results = example::two_parameters();
  for (std::size_t i = 0; i < results.data.rows(); ++i) {
    results.data(i, 1) = 3.0 - 2.0 * results.data(i, 0);  // correlation −1
    results.data(i, 4) = 7.0;                             // constant
  }
  const auto figure = figure_of(results, "data");
  EXPECT_NO_THROW(check_figure(figure));
  EXPECT_TRUE(figure.joined);
  ASSERT_EQ(figure.panels.size(), 25u);
  EXPECT_EQ(series_of<Annotation>(figure.panels[1]).at(0).text, "ρ = −1.00");
  EXPECT_FALSE(figure.panels[1].axes);
  EXPECT_EQ(series_of<Annotation>(figure.panels[4]).at(0).text, "—");
  EXPECT_EQ(series_of<Histogram>(figure.panels[6]).size(), 1u);
  const auto cloud = series_of<Points>(figure.panels[5]).at(0);  // x1 over x0
  for (std::size_t i = 0; i < cloud.x.size(); ++i)
    EXPECT_DOUBLE_EQ(cloud.y[i], 3.0 - 2.0 * cloud.x[i]);
  EXPECT_EQ(figure.panels[5].y_label, "x1");
  EXPECT_EQ(figure.panels[24].x_label, "x4");
}

TEST(ParameterisedFigures, ManyEventsAreThinnedAndManyFeaturesAreHistograms) {
  auto results = example::two_parameters();
  results.data = Matrix(20000, 2);
  for (std::size_t i = 0; i < 20000; ++i)
    results.data(i, 0) = results.data(i, 1) = static_cast<double>(i % 997);
  const auto thinned = figure_of(results, "data");
  EXPECT_LE(series_of<Points>(thinned.panels[2]).at(0).x.size(), 1000u);
  expect_words(thinned.caption, "1000 events of them");
  results.data = Matrix(50, 30);
  for (double& value : results.data.values())
    value = std::sin(static_cast<double>(&value - results.data.data()));
  const auto histograms = figure_of(results, "data");
  EXPECT_EQ(histograms.panels.size(), 12u);
  EXPECT_NO_THROW(check_figure(histograms));
  expect_words(histograms.caption, "30 features. The first 12 are shown.");
}

TEST(ParameterisedFigures, SurfaceShowsContoursDotsAndEvaluations) {
  const auto results = example::two_parameters();
  const auto figure = figure_of(results, "surface-alpha-beta");
  ASSERT_EQ(figure.panels.size(), 3u);
  const auto& process = figure.panels[2];
  EXPECT_EQ(process.x_label, "α");
  const auto map = series_of<Heatmap>(process).at(0);
  EXPECT_DOUBLE_EQ(map.range->low, 0.0);
  EXPECT_DOUBLE_EQ(map.range->high, 30.0);  // 2.5 × 11.83, the 3σ threshold, rounded up
  EXPECT_LE(*std::max_element(map.values.begin(), map.values.end()), 30.0);
  // A row of the matrix is a row of the map.
  EXPECT_DOUBLE_EQ(map.values[12 * 25 + 13], results.surfaces[2].surface.statistic(12, 13));
  const auto contours = series_of<Contour>(process);
  ASSERT_EQ(contours.size(), 3u);
  EXPECT_EQ(contours[0].role, Role::light);
  EXPECT_EQ(contours[0].lines[0].front(), contours[0].lines[0].back());  // closed
  std::map<Role, std::pair<double, double>> dots;
  std::size_t evaluated = 0;
  for (const auto& points : series_of<Points>(process)) {
    if (points.x.size() == 1) dots[points.role] = {points.x[0], points.y[0]};
    if (points.x.size() > 1) evaluated = points.x.size();
  }
  EXPECT_EQ(evaluated, 50u);
  EXPECT_EQ(dots[Role::truth], (std::pair{1.0, -1.0}));
  EXPECT_EQ(dots[Role::exact_estimate], (std::pair{1.01185, -0.92213}));
  EXPECT_EQ(dots[Role::learned_estimate], (std::pair{1.009, -0.93}));  // that of the process
  for (const auto& points : series_of<Points>(figure.panels[0]))
    if (points.role == Role::learned_estimate) {
      EXPECT_EQ(points.x[0], 1.0146);
    }
  expect_words(figure.caption,
               "over α and β, in colours up to 30; white, the contours of "
               "1σ\u00a0(68.27\u00a0%), 2σ\u00a0(95.45\u00a0%) and 3σ");
  expect_words(figure.caption, "the 50 points at which");
}

TEST(ParameterisedFigures, SurfaceCaptionHasTheDifferenceFromExact) {
  auto results = example::two_parameters();
  results.surfaces.resize(2);
  results.surfaces[1].surface = results.surfaces[0].surface;
  for (double& value : results.surfaces[1].surface.statistic.values()) value += 0.42;
  expect_words(figure_of(results, "surface-alpha-beta").caption,
               "the RMS difference from it is 0.42 (learned).");
}

TEST(ParameterisedFigures, SurfacesThatAreNotFiniteOrNotRegular) {
  auto results = example::two_parameters();
  results.surfaces[0].surface.statistic(3, 4) = std::numeric_limits<double>::infinity();
  results.surfaces[1].surface.statistic(0, 0) = std::numeric_limits<double>::quiet_NaN();
  results.surfaces[2].surface.x[5] += 1e-3;  // not a regular grid: contours alone
  for (const auto& figure : study_figures(results)) EXPECT_NO_THROW(check_figure(figure));
  EXPECT_EQ(figure_of(results, "surface-alpha-beta").panels.size(), 2u);
  EXPECT_EQ(series_of<Contour>(figure_of(results, "contours-alpha-beta").panels[0]).size(), 9u);
  results.surfaces[0].surface.second = 7;  // of no parameter
  EXPECT_NO_THROW(study_figures(results));
}

TEST(ParameterisedFigures, DeviationOfASurfaceHasItsPanel) {
  auto results = example::two_parameters();
  results.surfaces[2].deviation = Matrix(25, 25, std::vector<double>(625, 0.7));
  const auto figure = figure_of(results, "surface-alpha-beta");
  ASSERT_EQ(figure.panels.size(), 4u);
  EXPECT_EQ(figure.panels[3].title, "Gaussian process, standard deviation");
  EXPECT_NO_THROW(check_figure(figure));
}

TEST(ParameterisedFigures, ExactContoursAreDashedAndThinOutwards) {
  const auto figure = figure_of(example::two_parameters(), "contours-alpha-beta");
  const auto contours = series_of<Contour>(figure.panels[0]);
  ASSERT_EQ(contours.size(), 9u);
  for (const auto& contour : contours)
    EXPECT_EQ(contour.dash, contour.label == "exact" ? Dash::dashed : Dash::solid);
  EXPECT_GT(contours[0].width, contours[1].width);
  EXPECT_NE(contours[3].role, contours[6].role);
  auto results = example::two_parameters();
  results.surfaces.resize(1);
  const auto found = names(results);
  EXPECT_EQ(std::count(found.begin(), found.end(), "contours-alpha-beta"), 0);
}

TEST(ParameterisedFigures, CorrelationsAreThoseOfTheCovariance) {
  const auto figure = figure_of(example::six_parameters(), "correlation");
  const auto map = series_of<Heatmap>(figure.panels[0]).at(0);
  // Row 5 is the first parameter, on top.
  EXPECT_DOUBLE_EQ(map.values[5 * 6 + 0], 1.0);
  EXPECT_NEAR(map.values[5 * 6 + 1], -0.15, 1e-12);
  EXPECT_EQ(figure.panels[0].y_ticks->front().label, "A");
  EXPECT_EQ(figure.panels[0].y_ticks->front().value, 5.0);
  expect_words(figure.caption, "A parameter at a bound has none.");
  auto two = example::two_parameters();
  const auto found = names(two);
  EXPECT_EQ(std::count(found.begin(), found.end(), "correlation"), 0);
}

TEST(ParameterisedFigures, DiagnosticsOfEveryStyle) {
  const auto closure = figure_of(example::two_parameters(), "diagnostic-closure");
  ASSERT_EQ(closure.panels.size(), 2u);
  EXPECT_EQ(series_of<Histogram>(closure.panels[0]).at(0).edges.size(), 13u);
  EXPECT_EQ(series_of<Points>(closure.panels[0]).at(0).x.size(), 12u);
  const auto bars = series_of<Contour>(closure.panels[0]).at(0);
  const auto points = series_of<Points>(closure.panels[0]).at(0);
  EXPECT_EQ(bars.lines[3],
            (std::vector<std::pair<double, double>>{{points.x[3], points.y[3] - 0.015},
                                                    {points.x[3], points.y[3] + 0.015}}));
  EXPECT_EQ(closure.panels[0].y_range->low, 0.0);
  const auto reference = figure_of(example::two_parameters(), "diagnostic-reference");
  EXPECT_EQ(series_of<Band>(reference.panels[0]).size(), 3u);
  EXPECT_EQ(series_of<Line>(reference.panels[0]).size(), 3u);
  const auto roc =
      series_of<Line>(figure_of(example::two_parameters(), "diagnostic-reweighting").panels[0]);
  EXPECT_EQ(roc.at(0).role, Role::reference);  // "no separation"
  EXPECT_NE(roc.at(1).role, roc.at(2).role);
}

TEST(ParameterisedFigures, DiagnosticsWithBadOrManyPoints) {
  auto results = example::two_parameters();
  Diagnostic odd = example::diagnostic("closure", "A second one of that name.", 1.0, 0.5);
  using Style = Diagnostic::Series::Style;
  std::vector<double> many(20000);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<double>(i);
  odd.panels = {{"empty", "x", "y", {}},
                {"odd",
                 "x",
                 "y",
                 {{"nan", Style::points, {0, nan, 2}, {1, 2, nan}, {nan, 1, 1}, {2, nan, 3}},
                  {"steps that are none", Style::steps, {0, 0, 1}, {1, 2}, {}, {}},
                  {"many", Style::points, many, many, {}, {}},
                  {"none", Style::line, {}, {}, {}, {}}}}};
  results.diagnostics.push_back(odd);
  const auto figure = figure_of(results, "diagnostic-closure-2");
  EXPECT_NO_THROW(check_figure(figure));
  ASSERT_EQ(figure.panels.size(), 1u);
  const auto points = series_of<Points>(figure.panels[0]);
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[0].x, (std::vector<double>{0.0}));
  EXPECT_LE(points[1].x.size(), 1500u);
  EXPECT_EQ(points[1].x.back(), 19999.0);
}

TEST(ParameterisedFigures, CoverageByPointAndLevel) {
  const auto results = example::two_parameters();
  const auto figure = figure_of(results, "coverage");
  ASSERT_EQ(figure.panels.size(), 6u);  // two levels of α and β together, α alone, β alone
  const auto points = series_of<Points>(figure.panels[0]);
  ASSERT_EQ(points.size(), 2u);
  const double share = results.coverage->points[2].ensemble.coverage[0];
  EXPECT_EQ(points[0].y[2], share);
  // Agresti and Coull's error of that share of 499 datasets.
  const double moved = (499 * share + 2) / 503;
  EXPECT_NEAR(points[0].y_errors[2], std::sqrt(moved * (1 - moved) / 503), 1e-12);
  EXPECT_EQ(points[1].y[2], results.coverage->points[2].coverage_critical[0]);
  EXPECT_EQ(figure.panels[0].x_ticks->size(), 5u);
  EXPECT_EQ(figure.panels[3].title, "95\u00a0%, α alone");
  expect_words(figure.caption, "5 fits failed and are left out.");
}

TEST(ParameterisedFigures, CoverageOverOneParameterStandsAtItsValues) {
  auto results = example::results();
  results.coverage = example::coverage_report();
  results.coverage->config.interest.clear();
  results.coverage->config.critical_datasets = 0;
  for (std::size_t i = 0; i < 5; ++i) {
    results.coverage->points[i].point = {0.02 * static_cast<double>(i)};
    results.coverage->points[i].coverage_critical.clear();
  }
  const auto figure = figure_of(results, "coverage");
  ASSERT_EQ(figure.panels.size(), 2u);
  EXPECT_EQ(figure.panels[0].x_label, "γ");
  EXPECT_EQ(series_of<Points>(figure.panels[0]).size(), 1u);
  EXPECT_NEAR(series_of<Points>(figure.panels[0])[0].x[4], 0.08, 0.01);
}

}  // namespace
}  // namespace neyman::reports
