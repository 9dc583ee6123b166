#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "neyman/reports/figure.hpp"

namespace neyman::reports {

/// A figure and what was made of it.
struct DrawnFigure {
  std::string name, title, caption;
  std::filesystem::path svg, pdf, script, data;
  std::string csv;  ///< the data as a table, see figure_csv
  /// One SVG for each panel, to be put into a page, where panels stand side by side on a wide
  /// screen and below each other on a phone; of a joined figure, one SVG of them all, or of each
  /// column where these are apart.
  std::vector<std::string> panels;
  std::size_t columns = 1;
  double panel_width = 0.0;  ///< of the widest, pixels where its text has a size of 12
};

struct DrawConfig {
  std::string program = "gnuplot";  ///< searched in PATH
};

/// Draws a figure into `folder` (made where absent) as
///   <name>.svg  adapts to light and dark ground and to any width; no scripts, no fonts inside
///   <name>.pdf
///   <name>.dat  the data, a block with a heading for each series
///   <name>.gp   draws both again: cd folder && gnuplot <name>.gp
/// where <name> is file_stem(figure.name).
///
/// @throw ArgumentError for a figure that cannot be drawn, see check_figure.
/// @throw Error where gnuplot is missing or fails, with its message. Script and data are then
///        in place all the same.
/// @throw FileError where a file cannot be written.
DrawnFigure draw(const Figure& figure, const std::filesystem::path& folder,
                 const DrawConfig& config = {});

/// Draws those that can be drawn, with progress. Results are worth more than their pictures: what
/// goes wrong is added to the warnings, and told once where it is the same for all.
std::vector<DrawnFigure> draw_all(const std::vector<Figure>& figures,
                                  const std::filesystem::path& folder,
                                  std::vector<std::string>& warnings);

/// Makes gnuplot's SVG fit for a page: gnuplot's ids, filters and titles go, colours become
/// classes that follow prefers-color-scheme, the size becomes a viewBox, the title and the
/// description are those of the figure. `id` must be unique in a page.
std::string adapt_svg(std::string_view svg, std::string_view id, std::string_view title,
                      std::string_view description);

}  // namespace neyman::reports
