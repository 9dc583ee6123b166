#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "reports/gnuplot_panel.hpp"

namespace neyman::reports {

/// The whole figure as a script that draws SVG and PDF, and panels one by one.
class FigureWriter {
 public:
  FigureWriter(const Figure& figure, std::string stem);
  const std::string& data() const { return data_.text; }
  std::string script();
  /// Draws each picture of a page as an SVG of its own: folder/1.svg, folder/2.svg, …
  std::string panel_script(const std::filesystem::path& folder);
  /// The width of the widest of them.
  double picture_width() const;

 private:
  /// Panels above each other share their left edge, panels side by side their top and bottom.
  void align_margins();
  double row_height(std::size_t row) const;
  /// The axes of a row have the same size, with labels outside.
  void join();

  const Figure& figure_;
  std::string stem_;
  DataFile data_;
  std::vector<PanelWriter> writers_;
  std::vector<Margins> margins_;
  std::vector<Cell> cells_;
  /// A part of the canvas that is a picture of its own, with its panels.
  struct Picture {
    double x, width;
    std::vector<std::size_t> panels;
  };
  std::vector<Picture> pictures_;
  double width_ = 0.0, height_ = 0.0;
};

}  // namespace neyman::reports
