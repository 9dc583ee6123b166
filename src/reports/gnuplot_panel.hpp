#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "neyman/reports/figure.hpp"

// One panel as gnuplot commands. The layout is computed here, in pixels, and handed to gnuplot
// as screen coordinates: gnuplot's own layout and keys depend on fonts that the reader's
// machine may not have.
namespace neyman::reports {

inline constexpr double text_size = 12.0;

/// A text as a gnuplot string. Between single quotes nothing is special but the quote itself,
/// which is joined in from a string of its own; texts without an index ask the terminals not to
/// interpret marks such as _ and ^.
std::string quote(std::string_view text);
/// A text for a comment: one line.
std::string one_line(std::string text);
std::string num(double value);
/// The label of a series, empty where it has none.
const std::string& label_of(const Series& series);

/// The data file: a block for each series that has data, two empty lines between them.
struct DataFile {
  std::string text;
  std::size_t blocks = 0;

  /// Adds a block and returns its index.
  std::size_t add(const std::string& heading, std::string_view columns, const std::string& rows);
};

/// Where a panel stands on its canvas, in pixels from the top left corner.
struct Cell {
  double x = 0, y = 0, width = 0, height = 0;
};

/// Space around the axes of a panel, in pixels.
struct Margins {
  double left = 0, right = 0, top = 0, bottom = 0;
};

/// Writes one panel: its commands and its data.
class PanelWriter {
 public:
  PanelWriter(const Panel& panel, double width, double height);

  /// The space that the panel needs; `least_left` is what its neighbours need at the left, which
  /// leaves less room for the legend.
  Margins margins(double least_left = 0.0) const;
  /// Fixes where the axes stand.
  void place(const Margins& margins, const Cell& cell, double canvas_width, double canvas_height);
  /// Adds the data of all series; `commands` then refers to them.
  void write_data(DataFile& file, const std::string& where);
  std::string commands(const std::string& data_file) const;

 private:
  struct Entry {
    std::string label;
    const Series* series;
  };
  /// Where a label stands, so that others can avoid it; y grows downwards.
  struct Box {
    double left, right, top, bottom;
    bool overlaps(const Box& other) const {
      return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
    }
  };

  double plot_width() const { return width_ - margins_.left - margins_.right; }
  double plot_height() const { return height_ - margins_.top - margins_.bottom; }
  /// Pixels of the panel (y downwards) as gnuplot's screen coordinates.
  std::string at(double px, double py) const;
  double pixel_x(double value) const;
  double pixel_y(double value) const;
  std::vector<std::vector<Entry>> legend_rows(const Margins& margins) const;

  double level_labels_width() const;
  bool crowded(double pixels) const;

  std::string axes() const;
  std::string colour_scale() const;
  std::string tick_list(const std::vector<Tick>& list, Range range, bool log) const;
  std::string titles() const;
  std::string legend() const;
  std::string legend_mark(const Series& series, double x, double y, double size) const;
  std::string end_labels() const;
  std::string marks() const;
  std::string reference(const ReferenceLine& line, std::vector<Box>& taken) const;
  std::string plots(const std::string& data_file) const;
  std::string plot_of(const Series& series, std::size_t block, const std::string& file) const;
  std::string y_column(int column) const;
  std::string y_bar(int column, int error) const;

  const Panel& panel_;
  double width_, height_;
  Frame frame_;
  std::vector<Tick> x_ticks_, y_ticks_;
  std::vector<Entry> above_, ends_;
  const Heatmap* heatmap_ = nullptr;
  bool upright_ = false;  ///< labels along x
  Margins margins_;
  double origin_x_ = 0, origin_y_ = 0, canvas_width_ = 1, canvas_height_ = 1;
  std::vector<std::size_t> blocks_;  ///< of each series, where it has data
};

}  // namespace neyman::reports
