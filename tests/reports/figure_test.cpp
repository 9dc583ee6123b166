#include "neyman/reports/figure.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "neyman/core/error.hpp"
#include "neyman/core/random.hpp"
#include "not_finite.hpp"

namespace neyman::reports {
namespace {

Figure with(Series series, Panel panel = {}) {
  panel.series.push_back(std::move(series));
  Figure figure;
  figure.name = "test";
  figure.panels.push_back(std::move(panel));
  return figure;
}

std::string message(const Figure& figure) {
  try {
    check_figure(figure);
  } catch (const ArgumentError& error) {
    return error.what();
  }
  return "accepted";
}

Panel log_y() {
  Panel panel;
  panel.y_log = true;
  return panel;
}

TEST(CheckFigure, NamesPanelSeriesAndIndexOfABadValue) {
  EXPECT_EQ(message(with(Line{{0, 1, 2}, {0, nan, 1}})),
            "draw: panels[0].series[0].y[1] is nan, but must be finite");
  EXPECT_EQ(message(with(Histogram{{0, 1, 1}, {1, 2}})),
            "draw: panels[0].series[0].edges[2] is 1, but must be above the one before (1)");
}

TEST(CheckFigure, RefusesShapesThatDoNotFit) {
  EXPECT_NE(message(with(Line{{0, 1}, {0}})), "accepted");
  EXPECT_NE(message(with(Line{})), "accepted");
  EXPECT_NE(message(with(Band{{0, 1}, {0, 0}, {1}})), "accepted");
  EXPECT_NE(message(with(Band{{0}, {2}, {1}})), "accepted");
  EXPECT_NE(message(with(Histogram{{0, 1}, {1, 2}})), "accepted");
  EXPECT_NE(message(with(Histogram{{0, 1}, {1}, "", Role::data, true, {-1}})), "accepted");
  EXPECT_NE(message(with(Points{{0}, {0}, "", Role::data, {0.1, 0.2}})), "accepted");
  EXPECT_NE(message(with(Span{Axis::x, 2, 1})), "accepted");
  EXPECT_NE(message(with(Bars{})), "accepted");
  EXPECT_NE(message(with(Bars{Axis::x, {0, 1}, {0, 0}, {1}})), "accepted");
  EXPECT_NE(message(with(Bars{Axis::x, {0}, {0}, {1}, 0.0})), "accepted");
  EXPECT_EQ(message(with(Bars{Axis::y, {0}, {2}, {1}})),
            "draw: panels[0].series[0].low[0] is 2, but must be at most high (1)");
  EXPECT_NE(message(with(Heatmap{{0, 1, 3}, {0, 1}, {1, 2, 3, 4, 5, 6}})), "accepted");
  EXPECT_NE(message(with(Heatmap{{0, 1}, {0, 1}, {1, 2, 3}})), "accepted");
  EXPECT_NE(message(with(Heatmap{{0, 1}, {0, 1}, {1, 2, 3, 4}, "", Range{2, 2}})), "accepted");
  EXPECT_NE(message(with(ReferenceLine{Axis::x, nan})), "accepted");
  EXPECT_NE(message(with(Contour{{{{0, nan}}}})), "accepted");
  EXPECT_NE(message(with(Annotation{nan, 0, "here"})), "accepted");
  EXPECT_NE(message(with(Line{{-1e308, 1e308}, {0, 1}})), "accepted");
}

TEST(CheckFigure, RefusesEmptyFiguresAndRanges) {
  EXPECT_NE(message(Figure{}), "accepted");
  Figure no_series;
  no_series.panels.emplace_back();
  EXPECT_NE(message(no_series), "accepted");
  Panel panel;
  panel.x_range = Range{1, 1};
  EXPECT_NE(message(with(Line{{0}, {0}}, panel)), "accepted");
  Figure no_columns = with(Line{{0}, {0}});
  no_columns.columns = 0;
  EXPECT_NE(message(no_columns), "accepted");
  Figure heights = with(Line{{0}, {0}});
  heights.row_heights = {100.0};
  EXPECT_EQ(message(heights), "draw: figure.joined is false, but must be true with row_heights");
  heights.joined = true;
  EXPECT_EQ(message(heights), "accepted");
  heights.row_heights = {100.0, 50.0};
  EXPECT_NE(message(heights), "accepted");
}

TEST(CheckFigure, LogarithmicAxesTakeZeroCountsButNothingNegative) {
  EXPECT_EQ(message(with(Histogram{{0, 1, 2}, {0, 5}}, log_y())), "accepted");
  EXPECT_EQ(message(with(Line{{0, 1}, {-1, 5}}, log_y())),
            "draw: panels[0].series[0].y[0] is -1, but must be positive on a logarithmic axis");
  Panel log_x;
  log_x.x_log = true;
  EXPECT_NE(message(with(Line{{0, 1}, {1, 1}}, log_x)), "accepted");
  EXPECT_NE(message(with(ReferenceLine{Axis::y, 0.0}, log_y())), "accepted");
}

TEST(CheckFigure, RefusesTicksNowhere) {
  Panel panel;
  panel.y_ticks = {{0.0, "zero"}, {nan, "?"}};
  EXPECT_EQ(message(with(Line{{0}, {0}}, panel)),
            "draw: panels[0].y_ticks[1] is nan, but must be finite");
}

TEST(Roles, OnAHeatmapTheGroundDoesNotMatter) {
  for (const Role role : {Role::light, Role::dark})
    EXPECT_EQ(role_colour(role, false), role_colour(role, true));
}

TEST(FrameOf, LinesReachTheSidesAndHistogramsStandOnZero) {
  Panel panel;
  panel.series = {Histogram{{2, 3, 4}, {5, 10}}};
  const Frame frame = frame_of(panel);
  EXPECT_DOUBLE_EQ(frame.x.low, 2);
  EXPECT_DOUBLE_EQ(frame.x.high, 4);
  EXPECT_DOUBLE_EQ(frame.y.low, 0);
  EXPECT_GT(frame.y.high, 10);
}

TEST(FrameOf, BarsAreInside) {
  const auto frame = frame_of(with(Bars{Axis::x, {1, 2}, {-3, 0}, {0, 4}, 0.8}).panels[0]);
  EXPECT_LE(frame.x.low, -3.0);
  EXPECT_GE(frame.x.high, 4.0);
  EXPECT_LE(frame.y.low, 0.6);
  EXPECT_GE(frame.y.high, 2.4);
}

TEST(FrameOf, GivenRangesWinAndOnlyVisibleDataScaleY) {
  Panel panel;
  panel.x_range = Range{0, 1};
  panel.series = {Line{{0, 1, 2}, {10, 11, 1000}}};
  const Frame frame = frame_of(panel);
  EXPECT_DOUBLE_EQ(frame.x.high, 1);
  EXPECT_LT(frame.y.high, 12);
  panel.y_range = Range{-5, 5};
  EXPECT_DOUBLE_EQ(frame_of(panel).y.low, -5);
}

TEST(FrameOf, ConstantAndEmptyDataStillHaveARange) {
  for (const double value : {0.0, -3.0, 1e-12, 7e9}) {
    Panel panel;
    panel.series = {Line{{value}, {value}}};
    const Frame frame = frame_of(panel);
    EXPECT_LT(frame.x.low, frame.x.high) << value;
    EXPECT_LT(frame.y.low, frame.y.high) << value;
  }
  Panel words;
  words.series = {Annotation{0.5, 0.5, "nothing here", true}};
  EXPECT_LT(frame_of(words).x.low, frame_of(words).x.high);
  Panel zeros = log_y();
  zeros.series = {Histogram{{0, 1}, {0}}};
  EXPECT_GT(frame_of(zeros).y.low, 0.0);
}

std::vector<std::string> labels(const std::vector<Tick>& list) {
  std::vector<std::string> out;
  for (const Tick& tick : list) out.push_back(tick.label);
  return out;
}

TEST(Ticks, KnownAnswers) {
  using Labels = std::vector<std::string>;
  EXPECT_EQ(labels(ticks({-1, 1}, false, 4)), (Labels{"−1.0", "−0.5", "0.0", "0.5", "1.0"}));
  EXPECT_EQ(labels(ticks({0, 10}, false, 5)), (Labels{"0", "2", "4", "6", "8", "10"}));
  EXPECT_EQ(labels(ticks({0, 2e6}, false, 4)),
            (Labels{"0", "0.5 × 10⁶", "1.0 × 10⁶", "1.5 × 10⁶", "2.0 × 10⁶"}));
  EXPECT_EQ(labels(ticks({1e-3, 10}, true, 5)), (Labels{"10⁻³", "10⁻²", "10⁻¹", "10⁰", "10¹"}));
  EXPECT_EQ(labels(ticks({1, 10}, true, 5)), (Labels{"1", "2", "5", "10"}));
}

TEST(Ticks, AreInsideIncreasingFewAndDistinct) {
  RandomStream random(1, "ticks");
  for (int trial = 0; trial < 2000; ++trial) {
    const double low = 200.0 * (random.uniform() - 0.5);
    const double size = std::pow(10.0, 12.0 * (random.uniform() - 0.5));
    const Range range{low, low + size};
    const auto list = ticks(range, false, 5);
    ASSERT_GE(list.size(), 2u) << low << " " << size;
    ASSERT_LE(list.size(), 9u) << low << " " << size;
    std::set<std::string> seen;
    for (std::size_t i = 0; i < list.size(); ++i) {
      ASSERT_GE(list[i].value, range.low - 1e-6 * size);
      ASSERT_LE(list[i].value, range.high + 1e-6 * size);
      ASSERT_TRUE(i == 0 || list[i].value > list[i - 1].value);
      seen.insert(list[i].label);
    }
    ASSERT_EQ(seen.size(), list.size()) << low << " " << size;
  }
}

TEST(Ticks, RefuseAnEmptyRange) {
  EXPECT_THROW(ticks({1, 1}, false, 5), ArgumentError);
  EXPECT_THROW(ticks({0, 1}, true, 5), ArgumentError);
}

TEST(FileStem, KeepsNamesInsideTheFolder) {
  EXPECT_EQ(file_stem("scan_gamma-1"), "scan_gamma-1");
  EXPECT_EQ(file_stem("γ scan"), "figure__scan");
  EXPECT_EQ(file_stem("../../etc/passwd"), "figure.._.._etc_passwd");
  EXPECT_EQ(file_stem(".hidden"), "figure.hidden");
  EXPECT_EQ(file_stem("-d"), "figure-d");
  EXPECT_EQ(file_stem("a'b\"c`d$e"), "a_b_c_d_e");
  EXPECT_EQ(file_stem(""), "figure");
}

TEST(Roles, EachHasColoursOfItsOwn) {
  std::set<std::string_view> light, names;
  for (int i = 0; i <= static_cast<int>(Role::dark); ++i) {
    light.insert(role_colour(static_cast<Role>(i)));
    names.insert(role_name(static_cast<Role>(i)));
  }
  EXPECT_EQ(light.size(), 19u);
  EXPECT_EQ(names.size(), 19u);
  EXPECT_EQ(role_name(Role::third), "third");
  EXPECT_EQ(role_name(Role::dark), "dark");
}

double luminance(std::string_view hex) {
  const auto channel = [&](std::size_t at) {
    const double c = std::stoi(std::string(hex.substr(at, 2)), nullptr, 16) / 255.0;
    return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5);
}

// WCAG 2 asks for a contrast of 3 between graphical objects and their ground. The second
// component is a light fill whose outline alone comes close to it.
TEST(Roles, StandOutFromTheirGround) {
  for (int i = 0; i <= static_cast<int>(Role::learned_estimate); ++i) {
    const Role role = static_cast<Role>(i);
    const double on_light = 1.05 / (luminance(role_colour(role)) + 0.05);
    const double on_dark =
        (luminance(role_colour(role, true)) + 0.05) / (luminance("#14171a") + 0.05);
    EXPECT_GE(on_light, role == Role::second ? 2.7 : 3.0) << role_name(role);
    EXPECT_GE(on_dark, 4.5) << role_name(role);
  }
}

}  // namespace
}  // namespace neyman::reports
