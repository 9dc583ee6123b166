#include <gtest/gtest.h>

#include "neyman/reports/figure.hpp"

namespace neyman::reports {
namespace {

TEST(FigureCsv, ARowForEachThingShown) {
  Figure figure;
  Panel curves;
  curves.title = "Curves, \"old\"";
  curves.series.emplace_back(Line{{0.5, 1.0}, {2.0, 3.0}, "exact"});
  curves.series.emplace_back(Band{{1.0}, {2.0}, {3.0}, "band"});
  curves.series.emplace_back(ReferenceLine{Axis::x, 4.0, "truth"});
  curves.series.emplace_back(Annotation{0.0, 0.0, "words"});
  Panel bins;
  bins.series.emplace_back(
      Histogram{{0.0, 1.0, 3.0}, {5.0, 1e-9}, "data", Role::data, true, {1.0, 0.0}});
  bins.series.emplace_back(Points{{1.0}, {2.0}, "", Role::data, {0.5}, {}});
  figure.panels = {curves, bins};
  EXPECT_EQ(figure_csv(figure),
            "panel,series,x,x_low,x_high,y,y_low,y_high\n"
            "\"Curves, \"\"old\"\"\",exact,0.5,,,2,,\n"
            "\"Curves, \"\"old\"\"\",exact,1,,,3,,\n"
            "\"Curves, \"\"old\"\"\",band,1,,,,2,3\n"
            "\"Curves, \"\"old\"\"\",truth,4,,,,,\n"
            "2,data,,0,1,5,4,6\n"
            "2,data,,1,3,1e-09,1e-09,1e-09\n"
            "2,2,1,0.5,1.5,2,,\n");
}

TEST(FigureCsv, HeatmapsContoursStepsAndSpans) {
  Figure figure;
  Panel panel;
  panel.series.emplace_back(Heatmap{{0.0, 1.0}, {5.0}, {7.0, 8.0}, "statistic"});
  panel.series.emplace_back(Contour{{{{1.0, 2.0}}, {{3.0, 4.0}}}, "level"});
  panel.series.emplace_back(Steps{{0.0, 2.0}, {9.0}, "steps"});
  panel.series.emplace_back(Span{Axis::y, -1.0, 1.0, "span"});
  panel.series.emplace_back(Bars{Axis::x, {3.0}, {-2.0}, {2.5}, 0.5, "bars"});
  panel.series.emplace_back(Bars{Axis::y, {3.0}, {-2.0}, {2.5}, 0.5, "upright"});
  figure.panels = {panel};
  EXPECT_EQ(figure_csv(figure),
            "panel,series,line,x,x_low,x_high,y,y_low,y_high,value\n"
            "1,statistic,,0,,,5,,,7\n"
            "1,statistic,,1,,,5,,,8\n"
            "1,level,1,1,,,2,,,\n"
            "1,level,2,3,,,4,,,\n"
            "1,steps,,,0,2,9,,,\n"
            "1,span,,,,,,-1,1,\n"
            "1,bars,,,-2,2.5,3,,,\n"
            "1,upright,,3,,,,-2,2.5,\n");
}

}  // namespace
}  // namespace neyman::reports
