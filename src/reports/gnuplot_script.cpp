#include "reports/gnuplot_script.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "reports/chrome.hpp"

namespace neyman::reports {

namespace fs = std::filesystem;

namespace {

std::string setup() { return "set encoding utf8\nset clip two\nunset key\n"; }

std::string svg_terminal(double width, double height) {
  return fmt::format("set terminal svg enhanced dynamic size {},{} font 'Sans,{}'", num(width),
                     num(height), num(text_size));
}

}  // namespace

FigureWriter::FigureWriter(const Figure& figure, std::string stem)
    : figure_(figure), stem_(std::move(stem)) {
  data_.text = fmt::format("# {}\n", one_line(figure.title.empty() ? stem_ : figure.title));
  for (std::size_t i = 0; i < figure.panels.size(); ++i) {
    const Panel& panel = figure.panels[i];
    writers_.emplace_back(panel, figure.panel_width, row_height(i / figure.columns));
    writers_.back().write_data(
        data_, fmt::format("panel {}{}{}", i + 1, panel.title.empty() ? "" : " ", panel.title));
  }
  width_ = figure_.panel_width * static_cast<double>(figure_.columns);
  for (std::size_t row = 0; row < figure_.rows(); ++row) height_ += row_height(row);
  if (figure_.joined)
    join();
  else
    align_margins();
}

std::string FigureWriter::script() {
  std::string out = fmt::format(
      "# {0}.svg and {0}.pdf from {0}.dat: gnuplot {0}.gp\n"
      "# (neyman then lets the SVG follow light and dark screens.)\n",
      stem_);
  out += setup();
  out += "do for [target in 'svg pdf'] {\n";
  out += fmt::format(
      "if (target eq 'svg') {{ {} }} else {{ set terminal pdfcairo enhanced "
      "color size {:.4f}in,{:.4f}in font 'Sans,{}' fontscale 0.75 linewidth 2 "
      "pointscale 0.75 dashlength 1 }}\n",
      svg_terminal(width_, height_), width_ / 72.0, height_ / 72.0, num(text_size));
  out += fmt::format("set output {}.'.'.target\nset multiplot\n", quote(stem_));
  for (std::size_t i = 0; i < writers_.size(); ++i) {
    writers_[i].place(margins_[i], cells_[i], width_, height_);
    out += writers_[i].commands(stem_ + ".dat");
  }
  return out + "unset multiplot\nset output\n}\n";
}

std::string FigureWriter::panel_script(const fs::path& folder) {
  std::string out = "reset\n" + setup();
  for (std::size_t p = 0; p < pictures_.size(); ++p) {
    const Picture& picture = pictures_[p];
    const double height = figure_.joined ? height_ : figure_.panel_height;
    const std::string file = (folder / fmt::format("{}.svg", p + 1)).string();
    out += svg_terminal(picture.width, height) +
           fmt::format("\nset output {}\nset multiplot\n", quote(file));
    for (const std::size_t i : picture.panels) {
      Cell cell = cells_[i];
      cell.x -= picture.x;
      if (!figure_.joined) cell.y = 0.0;
      writers_[i].place(margins_[i], cell, picture.width, height);
      out += writers_[i].commands(stem_ + ".dat");
    }
    out += "unset multiplot\nset output\n";
  }
  return out;
}

double FigureWriter::picture_width() const {
  double width = 0.0;
  for (const Picture& picture : pictures_) width = std::max(width, picture.width);
  return width;
}

double FigureWriter::row_height(std::size_t row) const {
  return row < figure_.row_heights.size() ? figure_.row_heights[row] : figure_.panel_height;
}

void FigureWriter::align_margins() {
  const auto same_column = [&](std::size_t i, std::size_t j) {
    return i % figure_.columns == j % figure_.columns;
  };
  const auto same_row = [&](std::size_t i, std::size_t j) {
    return i / figure_.columns == j / figure_.columns;
  };
  const std::size_t count = writers_.size();
  std::vector<Margins> own;
  for (std::size_t i = 0; i < count; ++i) {
    double left = 0.0;
    for (std::size_t j = 0; j < count; ++j)
      if (same_column(i, j)) left = std::max(left, writers_[j].margins().left);
    own.push_back(writers_[i].margins(left));
  }
  margins_ = own;
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t j = 0; j < count; ++j) {
      if (!same_row(i, j)) continue;
      margins_[i].top = std::max(margins_[i].top, own[j].top);
      margins_[i].bottom = std::max(margins_[i].bottom, own[j].bottom);
    }
  for (std::size_t i = 0; i < count; ++i)
    cells_.push_back({figure_.panel_width * static_cast<double>(i % figure_.columns),
                      figure_.panel_height * static_cast<double>(i / figure_.columns),
                      figure_.panel_width, figure_.panel_height});
  for (std::size_t i = 0; i < count; ++i)
    pictures_.push_back({cells_[i].x, figure_.panel_width, {i}});
}

void FigureWriter::join() {
  constexpr double gap = 8.0;
  // Between rows: the lowest label of one and the highest of the next are at the ends of their
  // axes.
  constexpr double row_gap = 14.0;
  const std::size_t columns = figure_.columns, last = figure_.rows() - 1;
  const auto labelled = [&](std::size_t column) { return column == 0 || figure_.apart; };
  std::vector<double> left(columns, 0.0);
  double bottom = 0.0;
  for (std::size_t i = 0; i < writers_.size(); ++i) {
    const Margins own = writers_[i].margins();
    if (labelled(i % columns)) left[i % columns] = std::max(left[i % columns], own.left);
    if (i / columns == last) bottom = std::max(bottom, own.bottom);
  }
  // Titles and legends of the first row stand above the axes, which have the whole width.
  constexpr double bare = 10.0;  // what a panel without them has above its axes
  double above = 0.0;
  for (std::size_t i = 0; i < std::min(writers_.size(), columns); ++i) {
    writers_[i].place({}, {0.0, 0.0, figure_.panel_width + left[i], row_height(0)}, 1.0, 1.0);
    above = std::max(above, writers_[i].margins(left[i]).top - bare);
  }
  double y = 0.0, x = 0.0;
  for (std::size_t i = 0; i < writers_.size(); ++i) {
    const std::size_t row = i / columns, column = i % columns;
    if (column == 0) x = 0.0;
    const double more_below = row == last ? bottom : 0.0;
    const double more_above = row == 0 ? above : row_gap - gap;
    const double height = row_height(row) + more_above + more_below;
    margins_.push_back({left[column], gap, gap + more_above, more_below});
    cells_.push_back({x, y, figure_.panel_width + left[column], height});
    x += cells_.back().width;
    if (column + 1 == columns) y += height;
  }
  for (std::size_t i = 0; i < std::min(writers_.size(), columns); ++i) {
    if (i == 0 || figure_.apart) pictures_.push_back({cells_[i].x, 0.0, {}});
    pictures_.back().width += cells_[i].width;
    for (std::size_t j = i; j < writers_.size(); j += columns) pictures_.back().panels.push_back(j);
  }
  width_ = 0.0;
  for (std::size_t i = 0; i < std::min(writers_.size(), columns); ++i) width_ += cells_[i].width;
  height_ += above + bottom + (row_gap - gap) * static_cast<double>(last);
}

}  // namespace neyman::reports
