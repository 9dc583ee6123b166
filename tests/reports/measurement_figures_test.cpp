#include "neyman/reports/measurement_figures.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>

#include "reports/example_measurement.hpp"

namespace neyman::reports {
namespace {

const Figure& figure_named(const std::vector<Figure>& figures, const std::string& name) {
  const auto found = std::find_if(figures.begin(), figures.end(),
                                  [&](const Figure& figure) { return figure.name == name; });
  if (found == figures.end()) throw std::runtime_error("no figure " + name);
  return *found;
}

template <class Kind>
std::vector<Kind> series_of(const Panel& panel) {
  std::vector<Kind> out;
  for (const auto& series : panel.series)
    if (const auto* one = std::get_if<Kind>(&series)) out.push_back(*one);
  return out;
}

TEST(MeasurementFigures, AllOfThemInOrder) {
  const auto figures = measurement_figures(example::measured(example::search(4, 3)));
  std::vector<std::string> names;
  for (const auto& figure : figures) {
    EXPECT_NO_THROW(check_figure(figure)) << figure.name;
    EXPECT_GT(figure.caption.size(), 40u) << figure.name;
    names.push_back(figure.name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{
                       "measurement-strength", "measurement-profile", "measurement-limit",
                       "measurement-impacts", "measurement-correlations",
                       "measurement-channel-signal_region", "measurement-channel-control"}));
}

TEST(MeasurementFigures, ShowTheNumbersOfTheSummary) {
  const auto summary = example::measured(example::search(4, 3));
  const auto figures = measurement_figures(summary);
  const auto& limit = figure_named(figures, "measurement-limit").panels[0];
  const auto bands = series_of<Band>(limit);
  ASSERT_EQ(bands.size(), 2u);
  // Where a curve leaves the panel there are further points.
  const auto at = std::find(bands[0].x.begin(), bands[0].x.end(), summary.cl_s[10].tested);
  ASSERT_NE(at, bands[0].x.end());
  const auto place = static_cast<std::size_t>(at - bands[0].x.begin());
  EXPECT_EQ(bands[0].low[place], summary.cl_s[10].expected_cl_s[0]);
  EXPECT_EQ(bands[0].high[place], summary.cl_s[10].expected_cl_s[4]);
  EXPECT_EQ(bands[1].low[place], summary.cl_s[10].expected_cl_s[1]);
  for (const auto& line : series_of<Line>(limit))
    for (const double value : line.y) EXPECT_GE(value, 0.00499);
  EXPECT_EQ(series_of<ReferenceLine>(limit)[0].value, 1.0 - summary.options.level);
  const auto& impacts = figure_named(figures, "measurement-impacts");
  const auto pulls = series_of<Points>(impacts.panels[0])[0];
  const auto bars = series_of<Bars>(impacts.panels[1]);
  ASSERT_EQ(pulls.x.size(), summary.pulls.size());
  // The first row, on top, is that of the largest impact.
  EXPECT_EQ(bars[0].at[0], 3.0);
  EXPECT_EQ(bars[0].low[0] + bars[0].high[0], summary.impacts[0].up);
  EXPECT_EQ(bars[1].low[0] + bars[1].high[0], summary.impacts[0].down);
  EXPECT_EQ(summary.impacts[0].parameter, 1u);
  EXPECT_EQ(impacts.panels[0].y_ticks->front().label, "α₀");
  const auto& channel = figure_named(figures, "measurement-channel-control");
  const auto& h = summary.histograms[1];
  const auto stack = series_of<Band>(channel.panels[1]);
  ASSERT_EQ(stack.size(), 4u);  // three samples and the uncertainty
  EXPECT_EQ(stack[0].label, "z_jets");
  EXPECT_EQ(stack[2].label, "signal");
  EXPECT_NEAR(stack[2].high[0], h.after.total[0], 1e-9);
  EXPECT_NEAR(stack[3].high[0] - stack[3].low[0], 2.0 * h.after.error[0], 1e-9);
  const auto ratio = series_of<Points>(channel.panels[3])[0];
  EXPECT_NEAR(ratio.y[0], h.observed[0] / h.after.total[0], 1e-12);
}

TEST(MeasurementFigures, OfManyParametersTheFirstThirty) {
  const auto summary = example::measured(
      example::search(3, 60, "a_very_long_name_of_a_systematic_uncertainty_of_jets_"));
  const auto figures = measurement_figures(summary);
  for (const auto& figure : figures) {
    EXPECT_NO_THROW(check_figure(figure)) << figure.name;
    EXPECT_LT(figure.panel_width * static_cast<double>(figure.columns), 1300.0) << figure.name;
  }
  const auto& impacts = figure_named(figures, "measurement-impacts");
  EXPECT_EQ(impacts.panels[0].y_ticks->size(), 30u);
  EXPECT_TRUE(impacts.caption.starts_with("The 30 of 60 nuisance parameters"));
  std::set<std::string> names;
  for (const auto& tick : *impacts.panels[0].y_ticks) {
    EXPECT_LE(tick.label.size(), 32u);  // 30 characters, of which "…" has three bytes
    EXPECT_NE(tick.label.find("…"), std::string::npos);
    names.insert(tick.label);
  }
  EXPECT_EQ(names.size(), 30u);
  const auto& correlations = figure_named(figures, "measurement-correlations").panels[0];
  EXPECT_EQ(correlations.x_ticks->size(), 30u);
  EXPECT_EQ(correlations.x_ticks->front().label, "μ");
  EXPECT_TRUE(series_of<Annotation>(correlations).empty());  // no room for numbers
}

TEST(MeasurementFigures, NamesThatDifferInTheMiddleStayDifferent) {
  auto workspace = example::search(2, 0);
  for (const std::string middle : {"electrons", "muons"})
    workspace.channels[0].samples[1].modifiers.push_back(Modifier::norm_sys(
        "calibration_of_the_energy_of_" + middle + "_in_the_signal_region", 0.9, 1.1));
  const auto figures = measurement_figures(example::measured(workspace));
  const auto& ticks = *figure_named(figures, "measurement-impacts").panels[0].y_ticks;
  ASSERT_EQ(ticks.size(), 2u);
  EXPECT_NE(ticks[0].label, ticks[1].label);
}

TEST(MeasurementFigures, OneBinAndNothingElse) {
  Workspace workspace;
  workspace.channels = {
      {"bin", {{"signal", {4.0}, {Modifier::norm_factor("mu")}}, {"background", {10.0}}}, {25.0}}};
  workspace.measurements = {{"m", "mu", {{"mu", {1.0}, {{0.0, 30.0}}}}}};
  const auto figures = measurement_figures(example::measured(workspace));
  ASSERT_EQ(figures.size(), 4u);
  for (const auto& figure : figures) EXPECT_NO_THROW(check_figure(figure)) << figure.name;
  EXPECT_EQ(figures[3].name, "measurement-channel-bin");
  // Without nuisance parameters there is one curve.
  EXPECT_EQ(series_of<Line>(figures[1].panels[0]).size(), 1u);
}

TEST(MeasurementFigures, NothingCountedAndNothingExpected) {
  ChannelHistogram empty;
  empty.channel = "empty";
  empty.edges = {0.0, 1.0, 2.0};
  empty.samples = {"signal"};
  empty.observed = {0.0, 3.0};
  empty.before = {Matrix(1, 2), {0.0, 0.0}, {0.0, 0.0}};
  empty.after = empty.before;
  EXPECT_NO_THROW(check_figure(channel_figure(empty)));
  // A sample that takes away.
  empty.before.parts(0, 0) = -2.0;
  empty.before.total[0] = -2.0;
  EXPECT_NO_THROW(check_figure(channel_figure(empty)));
}

TEST(MeasurementFigures, SteepSpectraHaveALogarithmicAxis) {
  ChannelHistogram steep;
  steep.channel = "steep";
  steep.feature = "mass";
  steep.edges = {100.0, 200.0, 400.0, 800.0};
  steep.samples = {"a", "b"};
  steep.observed = {10000.0, 90.0, 0.0};
  steep.before.parts = Matrix(2, 3);
  for (std::size_t b = 0; b < 3; ++b) {
    steep.before.parts(0, b) = std::pow(10.0, 4.0 - 2.0 * static_cast<double>(b));
    steep.before.total.push_back(steep.before.parts(0, b));
    steep.before.error.push_back(2.0 * steep.before.parts(0, b));  // reaches below zero
  }
  steep.after = steep.before;
  const auto figure = channel_figure(steep);
  EXPECT_TRUE(figure.panels[0].y_log);
  EXPECT_EQ(figure.panels[2].x_label, "mass");
  EXPECT_NO_THROW(check_figure(figure));
}

TEST(MeasurementFigures, OfManySamplesTheSmallestAreOne) {
  ChannelHistogram many;
  many.channel = "many";
  many.edges = {0.0, 1.0};
  many.observed = {60.0};
  many.before.parts = Matrix(12, 1);
  double total = 0.0;
  for (std::size_t s = 0; s < 12; ++s) {
    many.samples.push_back("sample_" + std::to_string(s));
    total += many.before.parts(s, 0) = static_cast<double>(s);
  }
  many.before.total = {total};
  many.before.error = {1.0};
  many.after = many.before;
  const auto stack = series_of<Band>(channel_figure(many).panels[0]);
  ASSERT_EQ(stack.size(), 9u);
  EXPECT_EQ(stack[0].label, "5 other samples");
  EXPECT_EQ(stack[0].high[0], 0.0 + 1.0 + 2.0 + 3.0 + 4.0);
  EXPECT_EQ(stack[7].high[0], total);
}

TEST(MeasurementFigures, ToysAreShownBesideTheFormulae) {
  MeasurementOptions options;
  options.toys = 100;
  options.scan_points = 5;
  const auto summary = example::measured(example::search(2, 1), options);
  ASSERT_TRUE(summary.toy_limit) << summary.problems[0];
  const auto figures = measurement_figures(summary);
  const auto toys = series_of<Points>(figure_named(figures, "measurement-limit").panels[0]);
  ASSERT_EQ(toys.size(), 1u);
  EXPECT_LE(toys[0].x.size(), 5u);
  EXPECT_EQ(figure_named(figures, "measurement-strength").panels[0].y_ticks->size(), 5u);
  for (const auto& figure : figures) EXPECT_NO_THROW(check_figure(figure)) << figure.name;
}

TEST(MeasurementFigures, AFailedFitHasNone) {
  // Two signals that nothing tells apart.
  auto workspace = example::search(2, 0);
  for (auto& channel : workspace.channels)
    channel.samples[0].modifiers.push_back(Modifier::norm_factor("twin"));
  const auto summary = example::measured(workspace);
  ASSERT_FALSE(summary.fit.ok());
  EXPECT_TRUE(measurement_figures(summary).empty());
}

}  // namespace
}  // namespace neyman::reports
