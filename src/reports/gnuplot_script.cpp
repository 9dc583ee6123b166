#include "reports/gnuplot_script.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "reports/chrome.hpp"

namespace neyman::reports {

namespace fs = std::filesystem;

namespace {

std::string setup() {
  return fmt::format(
      "set encoding utf8\n"
      "set border 3 lc rgb '{}' lw 1\n"
      "set grid xtics ytics lt 1 lc rgb '{}' lw 1\n"
      "set clip two\n"
      "unset key\n"
      "set palette defined (0 '#2d1160', 1 '#3b528b', 2 '#21918c', 3 '#5ec962', 4 '#fde725')\n",
      axis_grey, grid_grey);
}

std::string svg_terminal(double width, double height) {
  return fmt::format("set terminal svg noenhanced dynamic size {},{} font 'Sans,{}'", num(width),
                     num(height), num(text_size));
}

}  // namespace

FigureWriter::FigureWriter(const Figure& figure, std::string stem)
    : figure_(figure), stem_(std::move(stem)) {
  data_.text = fmt::format("# {}\n", one_line(figure.title.empty() ? stem_ : figure.title));
  for (std::size_t i = 0; i < figure.panels.size(); ++i) {
    const Panel& panel = figure.panels[i];
    writers_.emplace_back(panel, figure.panel_width, figure.panel_height);
    writers_.back().write_data(
        data_, fmt::format("panel {}{}{}", i + 1, panel.title.empty() ? "" : " ", panel.title));
  }
  align_margins();
}

std::string FigureWriter::script() {
  const double width = figure_.panel_width * static_cast<double>(figure_.columns);
  const double height = figure_.panel_height * static_cast<double>(figure_.rows());
  std::string out = fmt::format(
      "# {0}.svg and {0}.pdf from {0}.dat: gnuplot {0}.gp\n"
      "# (neyman then lets the SVG follow light and dark screens.)\n",
      stem_);
  out += setup();
  out += "do for [target in 'svg pdf'] {\n";
  out += fmt::format(
      "if (target eq 'svg') {{ {} }} else {{ set terminal pdfcairo noenhanced "
      "color size {:.4f}in,{:.4f}in font 'Sans,{}' fontscale 0.75 linewidth 2 "
      "pointscale 0.75 dashlength 1 }}\n",
      svg_terminal(width, height), width / 72.0, height / 72.0, num(text_size));
  out += fmt::format("set output {}.'.'.target\nset multiplot\n", quote(stem_));
  for (std::size_t i = 0; i < writers_.size(); ++i) {
    writers_[i].place(margins_[i], figure_.panel_width * static_cast<double>(i % figure_.columns),
                      figure_.panel_height * static_cast<double>(i / figure_.columns), width,
                      height);
    out += writers_[i].commands(stem_ + ".dat");
  }
  return out + "unset multiplot\nset output\n}\n";
}

std::string FigureWriter::panel_script(const fs::path& folder) {
  const double width = figure_.panel_width, height = figure_.panel_height;
  std::string out = "reset\n" + setup() + svg_terminal(width, height) + "\n";
  for (std::size_t i = 0; i < writers_.size(); ++i) {
    writers_[i].place(margins_[i], 0.0, 0.0, width, height);
    const std::string file = (folder / fmt::format("{}.svg", i + 1)).string();
    out += fmt::format("set output {}\n", quote(file));
    out += writers_[i].commands(stem_ + ".dat");
  }
  return out + "set output\n";
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
}

}  // namespace neyman::reports
