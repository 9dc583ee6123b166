#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

// What a figure shows, as plain data. `draw` in gnuplot.hpp makes files of it.
//
// Every text is literal Unicode: "γ", "log r̂(x)", "−2 log Λ", "χ²₁", "my_parameter" appear as
// they are written, and no character is special. But an underscore after a single letter begins its
// index: "θ_a", "CL_s", "μ_jet_scale" are drawn with "a", "s", "jet scale" below the line.
namespace neyman::reports {

/// What a series stands for. The role alone decides the colour, so that one thing has one colour
/// in all figures of a report. The colours can be told apart with the common colour-vision
/// deficiencies, on light and on dark ground.
enum class Role {
  exact,
  approximate,
  uncalibrated,
  calibrated,
  decomposed,
  data,
  numerator,
  denominator,
  band68,
  band95,
  reference,
  first,  ///< first, second, third: components and other things without a role of their own
  second,
  third,
  truth,  ///< points of a parameter space: the true one, and two estimates of it
  exact_estimate,
  learned_estimate,
  light,  ///< light and dark: on a heatmap, the same on light and on dark ground
  dark,
};

struct Range {
  double low, high;
};

enum class Dash { solid, dashed, dotted };

/// A line through points, in their order.
struct Line {
  std::vector<double> x = {}, y = {};
  std::string label = {};  ///< for the legend; empty: not in it
  Role role = Role::exact;
  Dash dash = Dash::solid;
  double width = 1.8;  ///< pixels
};

/// The area between two curves over the same x.
struct Band {
  std::vector<double> x = {}, low = {}, high = {};
  std::string label = {};
  Role role = Role::band68;
};

/// Values of bins, one fewer than the edges. The caller normalises.
struct Histogram {
  std::vector<double> edges = {}, values = {};
  std::string label = {};
  Role role = Role::data;
  bool filled = true;               ///< else the outline alone
  std::vector<double> errors = {};  ///< of the values, drawn as bars at the centres; empty: none
};

/// A piecewise constant function: value i between edge i and edge i + 1. Unlike a histogram it
/// does not stand on the axis.
struct Steps {
  std::vector<double> edges = {}, values = {};
  std::string label = {};
  Role role = Role::approximate;
  Dash dash = Dash::solid;
  double width = 1.8;
};

/// Dots, with error bars where errors are given.
struct Points {
  std::vector<double> x = {}, y = {};
  std::string label = {};
  Role role = Role::data;
  std::vector<double> x_errors = {}, y_errors = {};  ///< symmetric; empty: none
  double size = 3.0;                                 ///< radius, pixels
};

enum class Axis { x, y };

/// Boxes along an axis, each between two values: `Axis::x` gives horizontal ones.
struct Bars {
  Axis axis = Axis::x;
  std::vector<double> at = {};  ///< where each stands on the other axis
  std::vector<double> low = {}, high = {};
  double thickness = 0.7;  ///< in units of the other axis
  std::string label = {};
  Role role = Role::first;
};

/// A thin line across the panel at one value of an axis: `Axis::x` gives a vertical line.
struct ReferenceLine {
  Axis axis = Axis::x;
  double value = 0.0;
  std::string label = {};  ///< written beside the line
  Role role = Role::reference;
  Dash dash = Dash::dashed;
};

/// A shaded stretch of an axis across the whole panel, for example an interval.
struct Span {
  Axis axis = Axis::x;
  double low = 0.0, high = 0.0;
  std::string label = {};
  Role role = Role::band68;
};

enum class Colours {
  sequential,  ///< from dark (low) to bright (high)
  diverging,   ///< from blue through white, at the middle of the range, to red
};

/// Values on a regular grid of cells, as colours.
struct Heatmap {
  std::vector<double> x = {}, y = {};  ///< cell centres, equally spaced, increasing
  std::vector<double> values = {};     ///< row-major: values[i * x.size() + j] is at (x[j], y[i])
  std::string label = {};              ///< of the colour scale
  std::optional<Range> range = {};     ///< of the colours; absent: from the values
  Colours colours = Colours::sequential;
};

/// Lines of constant value, as polylines.
struct Contour {
  std::vector<std::vector<std::pair<double, double>>> lines = {};
  std::string label = {};
  Role role = Role::exact;
  Dash dash = Dash::solid;
  double width = 1.8;
};

enum class Align { left, centre, right };

/// Words inside the panel.
struct Annotation {
  double x = 0.0, y = 0.0;
  std::string text = {};
  bool fraction = false;  ///< x and y are fractions of the panel instead of axis values
  Align align = Align::left;
  Role role = Role::reference;
};

using Series = std::variant<Line, Band, Histogram, Steps, Points, Bars, ReferenceLine, Span,
                            Heatmap, Contour, Annotation>;

enum class Legend {
  above,  ///< rows between title and axes
  ends,   ///< each label at the right end of its curve; what has no end goes above
  none,
};

/// A mark at an axis, with its label.
struct Tick {
  double value;
  std::string label = {};
};

/// One pair of axes.
struct Panel {
  std::string title = {};
  std::string x_label = {}, y_label = {};
  std::optional<Range> x_range = {}, y_range = {};  ///< absent: from the data
  bool x_log = false, y_log = false;
  std::optional<std::vector<Tick>> x_ticks = {}, y_ticks = {};  ///< absent: at round positions
  bool x_upright = false;  ///< labels of ticks along x are written upwards: long names
  bool axes = true;        ///< else neither axes nor ticks: a panel of words
  Legend legend = Legend::above;
  std::vector<Series> series = {};  ///< drawn in this order, later on top
};

/// One picture: a grid of panels, filled row by row.
struct Figure {
  std::string name = {};     ///< stem of its files, see `file_stem`
  std::string title = {};    ///< heading in a report; not drawn into the picture
  std::string caption = {};  ///< what it shows, in words; also the text for those who cannot see it
  std::size_t columns = 1;
  std::vector<Panel> panels = {};
  double panel_width = 460.0, panel_height = 320.0;  ///< pixels; points in PDF
  /// The panels form one picture and stand close to each other: those of the first column have
  /// room for labels at the left, those of the last row below, and those of the first for titles
  /// and legends.
  bool joined = false;
  /// Of a joined figure: each column is a picture of its own, with room for labels at its left, so
  /// that a page can put the second below the first on a phone.
  bool apart = false;
  std::vector<double> row_heights = {};  ///< of a joined figure, one a row; empty: panel_height

  std::size_t rows() const { return columns == 0 ? 0 : (panels.size() + columns - 1) / columns; }
};

/// All that a figure shows, as comma-separated values: a row for each point, bin, cell or reference
/// line, with the columns `panel` (its title or number), `series` (its label or number), and of
///   line     which of several polylines, from 1
///   x, x_low, x_high, y, y_low, y_high    the place, with the ends of its bin, band or error bar
///   value    of a cell of a heatmap
/// those that the figure has. Numbers have 8 significant digits.
std::string figure_csv(const Figure& figure);

/// Throws ArgumentError unless the figure can be drawn: there is a panel, every panel has a
/// series, sizes agree, all values are finite, edges and heatmap axes increase, errors are not
/// negative, ranges are not empty and logarithmic axes have positive values. On a logarithmic
/// y axis a value of 0 is allowed and drawn at the bottom.
void check_figure(const Figure& figure);

/// The axis ranges of a panel: its own where given, else from the data with a small margin. A
/// linear y axis starts at 0 where histograms stand on it or the data come close to it.
struct Frame {
  Range x, y;
};
Frame frame_of(const Panel& panel);

/// Round positions for about `count` tick marks inside a range, with their labels ("−0.5",
/// "10⁻³").
std::vector<Tick> ticks(Range range, bool log, std::size_t count);

/// A safe file stem: ASCII letters, digits, '-', '_' and '.' stay, everything else becomes '_',
/// and it starts with a letter or digit. "γ scan" gives "figure__scan".
std::string file_stem(std::string_view name);

/// The colour of a role as "#rrggbb", on light or dark ground.
std::string_view role_colour(Role role, bool dark = false);
/// Its name in style classes, for example "exact".
std::string_view role_name(Role role);

}  // namespace neyman::reports
