#include "neyman/reports/gnuplot.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>
#include <set>

#include "neyman/core/error.hpp"
#include "reports/xml_check.hpp"

namespace neyman::reports {
namespace {

namespace fs = std::filesystem;
using testing::count;
using testing::ids;
using testing::parse_xml;

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class Draw : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "neyman-draw-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_;
};

Line parabola(Role role = Role::decomposed) {
  Line line;
  line.label = "−2 log Λ";
  line.role = role;
  for (int i = 0; i <= 20; ++i) {
    line.x.push_back(0.1 * i);
    line.y.push_back((0.1 * i - 1) * (0.1 * i - 1));
  }
  return line;
}

/// Every kind of series, in two panels.
Figure everything() {
  Panel left;
  left.title = "all kinds";
  left.x_label = "x";
  left.y_label = "log r\u0302(x)";
  left.legend = Legend::ends;
  left.series = {Span{Axis::x, 0.5, 1.5, "68.3 %"},
                 Band{{0, 2}, {0, 0}, {0.5, 0.5}, "band"},
                 Histogram{{0, 1, 2}, {0.4, 0.9}, "histogram", Role::data, true, {0.1, 0.1}},
                 Steps{{0, 0.5, 2}, {0.2, 0.7}, "steps", Role::uncalibrated},
                 Points{{0.5, 1}, {0.5, 0.7}, "points", Role::exact, {0.1, 0.1}, {0.1, 0.2}},
                 parabola(),
                 ReferenceLine{Axis::x, 1.0, "truth"},
                 ReferenceLine{Axis::y, 0.3, "1σ"},
                 Annotation{0.1, 0.9, "note", true}};
  Panel right;
  right.title = "map";
  right.series = {Heatmap{{0, 1, 2}, {0, 1}, {1, 2, 3, 4, 5, 6}, "z"},
                  Contour{{{{0, 0}, {1, 1}}, {{1, 0}, {2, 1}}}, "contour"}};
  Figure figure;
  figure.name = "every_kind";
  figure.title = "Every kind of series";
  figure.caption = "One of each.";
  figure.columns = 2;
  figure.panels = {left, right};
  return figure;
}

TEST_F(Draw, WritesPictureDataAndScript) {
  const DrawnFigure drawn = draw(everything(), folder_ / "figures");
  EXPECT_EQ(drawn.svg, folder_ / "figures" / "every_kind.svg");
  EXPECT_TRUE(read(drawn.pdf).starts_with("%PDF"));
  EXPECT_EQ(drawn.panels.size(), 2u);
  const std::string data = read(drawn.data);
  EXPECT_NE(data.find("# [0] panel 1 all kinds: band\n# x low high\n0 0 0.5\n2 0 0.5\n"),
            std::string::npos)
      << data;
  EXPECT_EQ(data.find("nan"), std::string::npos);
}

TEST_F(Draw, SvgIsWellFormedAccessibleAndFitsAnyWidth) {
  const DrawnFigure drawn = draw(everything(), folder_);
  const auto elements = parse_xml(read(drawn.svg));
  const auto& root = elements.front().attributes;
  EXPECT_EQ(root.at("viewBox"), "0 0 920 320");
  EXPECT_EQ(root.at("width"), "100%");
  EXPECT_EQ(root.at("role"), "img");
  EXPECT_EQ(root.count("height"), 0u);
  ASSERT_EQ(count(elements, "title"), 1u);
  ASSERT_EQ(count(elements, "desc"), 1u);
  EXPECT_EQ(elements[1].text, "Every kind of series");
  EXPECT_EQ(elements[2].text, "One of each.");
  EXPECT_EQ(root.at("aria-labelledby"),
            elements[1].attributes.at("id") + " " + elements[2].attributes.at("id"));
  for (const char* name : {"script", "use", "defs", "filter", "a"})
    EXPECT_EQ(count(elements, name), 0u) << name;
  EXPECT_EQ(count(elements, "circle"), 3u);  // two points and one in the legend
}

TEST_F(Draw, SvgColoursFollowTheRole) {
  const auto elements = parse_xml(draw(everything(), folder_).panels.front());
  std::set<std::string> classes;
  for (const auto& element : elements) {
    const auto& a = element.attributes;
    if (a.contains("class")) classes.insert(a.at("class"));
    // Everything that is drawn has a light colour as attribute and a class for the dark one.
    if (element.name == "path") {
      EXPECT_TRUE(a.contains("stroke") && a.contains("class")) << a.at("d");
      EXPECT_TRUE(a.at("stroke").starts_with('#'));
    }
  }
  for (const char* name : {"ns-decomposed", "ns-uncalibrated", "nf-band68", "nf-exact", "ns-grid",
                           "ns-axis", "nf-ink", "nf-muted"})
    EXPECT_TRUE(classes.contains(name)) << name;
}

TEST_F(Draw, NothingInAFigurePointsOutside) {
  const std::string svg = read(draw(everything(), folder_).svg);
  std::size_t references = 0;
  for (std::size_t at = svg.find("http"); at != svg.npos; at = svg.find("http", at + 1)) {
    EXPECT_EQ(svg.substr(at, 26), "http://www.w3.org/2000/svg");
    ++references;
  }
  EXPECT_EQ(references, 1u);
  EXPECT_EQ(svg.find("onclick"), svg.npos);
}

TEST_F(Draw, PanelsOfAllFiguresHaveDifferentIds) {
  Figure first = everything(), second = everything();
  second.name = "every_kind-1";
  std::set<std::string> seen;
  for (const Figure& figure : {first, second}) {
    for (const std::string& panel : draw(figure, folder_).panels)
      for (const std::string& id : ids(parse_xml(panel))) EXPECT_TRUE(seen.insert(id).second) << id;
  }
  EXPECT_EQ(seen.size(), 8u);  // title and description of four panels
}

/// The texts of an SVG, decoded.
std::set<std::string> texts(const std::string& svg) {
  std::set<std::string> out;
  for (const auto& element : parse_xml(svg)) {
    if (element.name != "text" && element.name != "tspan") continue;
    std::string text = element.text;
    for (const auto& [entity, letter] : {std::pair{"&lt;", "<"}, {"&gt;", ">"}, {"&amp;", "&"}})
      for (std::size_t at = text.find(entity); at != text.npos; at = text.find(entity))
        text.replace(at, std::string_view(entity).size(), letter);
    out.insert(text);
  }
  return out;
}

TEST_F(Draw, EveryCharacterIsLiteral) {
  const std::vector<std::string> nasty = {
      "my_parameter^2",         "{not closed",     "}",
      "'quoted' \"too\"",       "`touch stolen`",  "@macro #no comment",
      "100 % \\n \\",           "&#x3c; &lt;",     "<b> & </b>",
      "γ θ\u0302 −2 log Λ χ²₁", "$x; system('id')"};
  Panel panel;
  for (std::size_t i = 0; i < nasty.size(); ++i) {
    Line line = parabola();
    line.label = nasty[i];
    panel.series.push_back(line);
    panel.series.push_back(Annotation{0.5, 0.1, nasty[i] + "!", true});
  }
  panel.title = nasty[0] + nasty[1];
  panel.x_label = nasty[3] + nasty[4];
  panel.y_label = nasty[1];
  Figure figure;
  figure.name = "`touch stolen` 'x'";
  figure.panels = {panel};
  const DrawnFigure drawn = draw(figure, folder_);
  EXPECT_EQ(drawn.name, "figure_touch_stolen___x_");
  const auto seen = texts(drawn.panels.front());
  for (const std::string& text : nasty) {
    EXPECT_TRUE(seen.contains(text)) << text;
    EXPECT_TRUE(seen.contains(text + "!")) << text;
  }
  EXPECT_TRUE(seen.contains(panel.x_label));
  EXPECT_FALSE(fs::exists(folder_ / "stolen"));
}

TEST_F(Draw, ControlCharactersCannotBreakOutOfAString) {
  Figure figure;
  figure.name = "lines";
  figure.title = "two\nlines";
  Panel panel;
  panel.title = "a'\nsystem 'touch stolen'\n'";
  panel.series = {parabola()};
  figure.panels = {panel};
  const DrawnFigure drawn = draw(figure, folder_);
  EXPECT_FALSE(fs::exists(folder_ / "stolen"));
  EXPECT_TRUE(read(drawn.data).starts_with("# two lines\n"));
}

TEST_F(Draw, ScriptDrawsTheSameFilesAgain) {
  const DrawnFigure drawn = draw(everything(), folder_);
  const auto before = parse_xml(read(drawn.svg));
  fs::remove(drawn.svg);
  fs::remove(drawn.pdf);
  const std::string command = "cd '" + folder_.string() + "' && gnuplot every_kind.gp 2>&1";
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_TRUE(read(drawn.pdf).starts_with("%PDF"));
  const auto after = parse_xml(
      adapt_svg(read(drawn.svg), "figure:every_kind:0", "Every kind of series", "One of each."));
  ASSERT_EQ(after.size(), before.size());
  for (std::size_t i = 0; i < before.size(); ++i)
    EXPECT_EQ(after[i].attributes, before[i].attributes);
}

TEST_F(Draw, LinesStayWhereTheDataAre) {
  // A line from the lower left to the upper right corner of the axes.
  Panel panel;
  panel.x_range = panel.y_range = Range{0, 1};
  panel.series = {Line{{0, 1}, {0, 1}}};
  Figure figure;
  figure.name = "diagonal";
  figure.panels = {panel};
  std::string path;
  for (const auto& element : parse_xml(draw(figure, folder_).panels.front()))
    if (element.name == "path" && element.attributes.at("class") == "ns-exact")
      path = element.attributes.at("d");
  double x0, y0, x1, y1;
  ASSERT_EQ(std::sscanf(path.c_str(), "M%lf,%lf L%lf,%lf", &x0, &y0, &x1, &y1), 4) << path;
  EXPECT_LT(x0, 80.0);
  EXPECT_NEAR(x1, 460.0 - 18.0, 1.0);
  EXPECT_GT(y0, 280.0);
  EXPECT_LT(y1, 15.0);
}

TEST_F(Draw, LogarithmicAxesAndZeroCounts) {
  Panel panel;
  panel.x_log = panel.y_log = true;
  panel.series = {Histogram{{1, 10, 100}, {0, 50}, "", Role::data, true, {1, 60}},
                  Points{{5}, {1}, "", Role::exact, {}, {2}}};
  Figure figure;
  figure.name = "log";
  figure.panels = {panel};
  const std::string svg = draw(figure, folder_).panels.front();
  EXPECT_NO_THROW(parse_xml(svg));
  EXPECT_EQ(svg.find("nan"), svg.npos);
}

TEST_F(Draw, PanelWithoutCurvesStillHasAxes) {
  Panel panel;
  panel.series = {ReferenceLine{Axis::x, 1.0, "only this"}};
  Figure figure;
  figure.name = "bare";
  figure.panels = {panel};
  EXPECT_TRUE(texts(draw(figure, folder_).panels.front()).contains("only this"));
}

TEST_F(Draw, RefusesNonFiniteData) {
  Figure figure = everything();
  std::get<Band>(figure.panels[0].series[1]).high[1] = std::numeric_limits<double>::infinity();
  EXPECT_THROW(draw(figure, folder_), ArgumentError);
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(Draw, MissingProgramIsNamedAndScriptAndDataStay) {
  try {
    draw(everything(), folder_, {"no-such-gnuplot"});
    FAIL() << "drew without a program";
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("'no-such-gnuplot' was not found"), message.npos) << message;
    EXPECT_NE(message.find("install gnuplot-nox"), message.npos) << message;
  }
  EXPECT_TRUE(fs::exists(folder_ / "every_kind.gp"));
  EXPECT_TRUE(fs::exists(folder_ / "every_kind.dat"));
}

TEST_F(Draw, FailingProgramGivesItsMessage) {
  const fs::path program = folder_ / "broken";
  std::ofstream(program) << "#!/bin/sh\necho 'line 3: undefined variable' >&2\nexit 1\n";
  fs::permissions(program, fs::perms::owner_all);
  try {
    draw(everything(), folder_, {program.string()});
    FAIL() << "drew with a broken program";
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("line 3: undefined variable"), message.npos) << message;
    EXPECT_NE(message.find("every_kind.gp"), message.npos) << message;
  }
}

TEST_F(Draw, ProgramThatDrawsNothingIsAFailureEvenOverOldFiles) {
  draw(everything(), folder_);
  EXPECT_THROW(draw(everything(), folder_, {"true"}), Error);
}

TEST_F(Draw, FolderThatCannotBeMadeIsAFileError) {
  std::ofstream(folder_ / "file") << "x";
  EXPECT_THROW(draw(everything(), folder_ / "file" / "figures"), FileError);
}

TEST(AdaptSvg, RefusesWhatIsNotSvg) {
  for (const char* text : {"", "hello", "<svg", "<svg viewBox='0 0 1 1'>", "<svg></svg>",
                           "<svg viewBox='0 0 1 1'></g></svg>", "<svg viewBox=0></svg>"})
    EXPECT_THROW(adapt_svg(text, "id", "title", "text"), Error) << text;
}

TEST(AdaptSvg, EscapesTitleAndDescription) {
  const auto elements = parse_xml(
      adapt_svg("<svg viewBox='0 0 1 1'><path stroke='rgb(  0, 114, 178)' d='M0,0'/></svg>", "id",
                "a < b & \"c\"", "</desc><script>"));
  EXPECT_EQ(elements[1].text, "a &lt; b &amp; &quot;c&quot;");
  EXPECT_EQ(elements[2].text, "&lt;/desc&gt;&lt;script&gt;");
  EXPECT_EQ(elements.back().attributes.at("stroke"), "#0072b2");
  EXPECT_EQ(elements.back().attributes.at("class"), "ns-calibrated");
}

TEST_F(Draw, ManyDotsAreOnePath) {
  Points few{{0, 1}, {0, 1}, "", Role::data}, many;
  many.role = Role::exact;
  for (int i = 0; i < 500; ++i) {
    many.x.push_back(std::cos(i));
    many.y.push_back(std::sin(i));
  }
  Panel panel;
  panel.series = {few, many};
  Figure figure;
  figure.name = "dots";
  figure.panels = {panel};
  const auto svg = draw(figure, folder_).panels.front();
  const auto elements = parse_xml(svg);
  EXPECT_EQ(count(elements, "circle"), 2u);
  std::size_t dots = 0;
  for (const auto& element : elements)
    if (element.name == "path" && element.attributes.at("class") == "ns-exact") {
      EXPECT_EQ(element.attributes.at("stroke-linecap"), "round");
      const std::string& d = element.attributes.at("d");
      for (std::size_t at = d.find("h0"); at != d.npos; at = d.find("h0", at + 1)) ++dots;
    }
  EXPECT_EQ(dots, 500u);
  EXPECT_LT(svg.size(), 500u * 20 + 8000);
}

/// Two by two panels, each with a line from corner to corner.
Figure joined() {
  Figure figure;
  figure.name = "joined";
  figure.columns = 2;
  figure.joined = true;
  figure.panel_width = figure.panel_height = 200.0;
  for (int i = 0; i < 4; ++i) {
    Panel panel;
    panel.x_range = panel.y_range = Range{0, 1};
    if (i % 2 == 1) panel.y_ticks.emplace();
    if (i < 2) panel.x_ticks.emplace();
    panel.y_label = i % 2 == 0 ? "y" : "";
    panel.x_label = i >= 2 ? "x" : "";
    panel.series = {Line{{0, 1}, {0, 1}}};
    figure.panels.push_back(panel);
  }
  return figure;
}

TEST_F(Draw, JoinedPanelsAreOnePictureOfEqualAxes) {
  const DrawnFigure drawn = draw(joined(), folder_);
  ASSERT_EQ(drawn.panels.size(), 1u);
  EXPECT_EQ(drawn.columns, 1u);
  std::set<std::pair<int, int>> sizes;
  std::size_t lines = 0;
  for (const auto& element : parse_xml(drawn.panels.front())) {
    if (element.name != "path" || element.attributes.at("class") != "ns-exact") continue;
    double x0, y0, x1, y1;
    ASSERT_EQ(
        std::sscanf(element.attributes.at("d").c_str(), "M%lf,%lf L%lf,%lf", &x0, &y0, &x1, &y1),
        4);
    sizes.insert({static_cast<int>(std::lround(x1 - x0)), static_cast<int>(std::lround(y0 - y1))});
    ++lines;
  }
  EXPECT_EQ(lines, 4u);
  // gnuplot rounds to pixels.
  for (const auto& [width, height] : sizes) {
    EXPECT_NEAR(width, 192, 1);
    EXPECT_NEAR(height, 192, 1);
  }
}

TEST_F(Draw, RowsOfAJoinedFigureHaveTheirHeightsBelowTitleAndLegend) {
  auto figure = joined();
  figure.row_heights = {300.0, 100.0};
  figure.panels[0].title = "above";
  std::get<Line>(figure.panels[0].series[0]).label = "in the legend";
  std::vector<double> heights;
  for (const auto& element : parse_xml(draw(figure, folder_).panels.front())) {
    if (element.name != "path" || element.attributes.count("class") == 0 ||
        element.attributes.at("class") != "ns-exact")
      continue;
    double x0, y0, x1, y1;
    if (std::sscanf(element.attributes.at("d").c_str(), "M%lf,%lf L%lf,%lf", &x0, &y0, &x1, &y1) ==
            4 &&
        y0 != y1)
      heights.push_back(y0 - y1);
  }
  ASSERT_EQ(heights.size(), 4u);
  EXPECT_NEAR(heights[0], 292.0, 1.5);
  EXPECT_NEAR(heights[1], 292.0, 1.5);
  EXPECT_NEAR(heights[2], 92.0, 1.5);
}

TEST_F(Draw, ColumnsApartArePicturesWithTheirLabels) {
  auto figure = joined();
  figure.apart = true;
  figure.row_heights = {300.0, 100.0};
  for (auto& panel : figure.panels) panel.y_ticks = {{0.5, "a name"}};
  const DrawnFigure drawn = draw(figure, folder_);
  ASSERT_EQ(drawn.panels.size(), 2u);
  EXPECT_EQ(drawn.columns, 2u);
  EXPECT_GT(drawn.panel_width, 240.0);
  for (const auto& picture : drawn.panels) {
    std::size_t lines = 0;
    for (const auto& element : parse_xml(picture))
      if (element.name == "path" && element.attributes.count("class") > 0 &&
          element.attributes.at("class") == "ns-exact")
        ++lines;
    EXPECT_EQ(lines, 2u);
    EXPECT_EQ(texts(picture).count("a name"), 1u);
  }
}

TEST_F(Draw, IndicesStandBelowTheLine) {
  Panel panel;
  panel.x_label = "θ_a of {100 %}";
  panel.y_label = "top_norm";
  panel.x_range = Range{-5.0, 5.0};
  panel.x_ticks = {{-3.0, "μ_jet_scale^2 %"}, {3.0, "other_size"}};
  panel.series = {parabola()};
  Figure figure;
  figure.name = "indices";
  figure.panels = {panel};
  const auto drawn = draw(figure, folder_);
  const auto& svg = drawn.panels.front();
  EXPECT_TRUE(texts(svg).contains("top_norm"));
  EXPECT_TRUE(texts(svg).contains("other_size"));
  EXPECT_EQ(svg.find("θ_a"), svg.npos);
  EXPECT_EQ(svg.find("μ_jet"), svg.npos);
  EXPECT_NE(svg.find(" of {100 %}"), svg.npos);
  EXPECT_NE(svg.find("^2 %"), svg.npos);
  // What is below the line is smaller, and no space stands before it.
  EXPECT_NE(svg.find("θ</tspan><tspan"), svg.npos);
  EXPECT_NE(svg.find(">jet scale</tspan><tspan"), svg.npos);
}

TEST_F(Draw, LabelsAlongAnAxisDoNotTouch) {
  Panel wide_numbers;
  wide_numbers.x_range = Range{123456.0, 123456.9};
  wide_numbers.series = {Line{{123456.0, 123456.9}, {0, 1}}};
  Panel names;
  names.x_ticks.emplace();
  for (int i = 0; i < 8; ++i)
    names.x_ticks->push_back({static_cast<double>(i), "a rather long name"});
  names.series = {Line{{0, 7}, {0, 1}}};
  Figure figure;
  figure.name = "crowded";
  figure.panel_width = 330.0;
  figure.columns = 2;
  figure.panels = {wide_numbers, names};
  const auto drawn = draw(figure, folder_);
  std::size_t numbers = 0;
  for (const auto& text : texts(drawn.panels[0])) numbers += text.starts_with("123") ? 1 : 0;
  EXPECT_GE(numbers, 1u);
  EXPECT_LE(numbers, 3u);
  EXPECT_NE(drawn.panels[1].find("rotate(-90"), std::string::npos);
}

TEST_F(Draw, BarsAndUprightLabels) {
  Panel panel;
  panel.x_upright = true;
  panel.x_ticks = {{0.0, "a_rather_long_name"}};
  panel.series = {Bars{Axis::x, {1.0, 2.0}, {-1.0, 0.0}, {0.0, 2.0}, 0.5, "up", Role::first},
                  Bars{Axis::y, {1.0}, {0.0}, {2.0}, 0.5, "", Role::second}};
  Figure figure;
  figure.name = "bars";
  figure.panels = {panel};
  const auto svg = draw(figure, folder_).panels[0];
  const auto elements = parse_xml(svg);
  EXPECT_TRUE(texts(svg).contains("a_rather_long_name"));
  EXPECT_TRUE(texts(svg).contains("up"));
  std::size_t first = 0, second = 0;
  bool turned = false;
  for (const auto& element : elements) {
    const auto found = element.attributes.find("class");
    if (found != element.attributes.end() && element.name != "g" && element.name != "text") {
      first += found->second.find("nf-first") != std::string::npos;
      second += found->second.find("nf-second") != std::string::npos;
    }
    const auto transform = element.attributes.find("transform");
    turned = turned || (transform != element.attributes.end() &&
                        transform->second.find("rotate(-90") != std::string::npos);
  }
  EXPECT_GE(first, 3u);  // two bars, and the legend
  EXPECT_GE(second, 1u);
  EXPECT_TRUE(turned);
}

TEST_F(Draw, TicksAsGivenOrNoneAndPanelsOfWords) {
  Panel named;
  named.x_range = Range{0, 2};
  named.x_ticks = {{0.5, "5 % limit, %g"}, {1.5, "two"}};
  named.y_ticks.emplace();
  named.series = {Line{{0, 2}, {0.25, 0.75}}};
  Panel words;
  words.axes = false;
  words.series = {Annotation{0.5, 0.5, "alone", true, Align::centre}};
  Figure figure;
  figure.name = "ticks";
  figure.columns = 2;
  figure.panels = {named, words};
  const auto panels = draw(figure, folder_).panels;
  EXPECT_EQ(texts(panels[0]), (std::set<std::string>{"5 % limit, %g", "two"}));
  EXPECT_EQ(texts(panels[1]), (std::set<std::string>{"alone"}));
  EXPECT_EQ(count(parse_xml(panels[1]), "path"), 0u);
}

TEST_F(Draw, ColoursOfAHeatmapHaveTheirRange) {
  Panel panel;
  panel.series = {
      Heatmap{{0, 1}, {0, 1}, {-1, 0, 0.5, 1}, "correlation", Range{-1, 1}, Colours::diverging}};
  Figure figure;
  figure.name = "colours";
  figure.panels = {panel};
  const auto svg = draw(figure, folder_).panels.front();
  const auto seen = texts(svg);
  EXPECT_TRUE(seen.contains("−1.0") && seen.contains("1.0"));
  std::set<std::string> fills;
  for (const auto& element : parse_xml(svg))
    if (element.attributes.contains("fill")) fills.insert(element.attributes.at("fill"));
  for (const char* colour : {"#2166ac", "#f7f7f7", "#b2182b"})
    EXPECT_TRUE(fills.contains(colour)) << colour;
  EXPECT_EQ(count(parse_xml(svg), "image"), 0u);
}

TEST_F(Draw, ManyCellsAreAnImage) {
  Heatmap map;
  for (int i = 0; i < 20; ++i) {
    map.x.push_back(i);
    map.y.push_back(i);
    for (int j = 0; j < 20; ++j) map.values.push_back(i * j);
  }
  Panel panel;
  panel.series = {map};
  Figure figure;
  figure.name = "image";
  figure.panels = {panel};
  EXPECT_EQ(count(parse_xml(draw(figure, folder_).panels.front()), "image"), 1u);
}

}  // namespace
}  // namespace neyman::reports
