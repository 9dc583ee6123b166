#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "neyman/reports/figure.hpp"
#include "neyman/reports/results.hpp"

// The figures of a study, by their subject, and what they share.
namespace neyman::reports {

std::optional<Figure> data_figure(const Results& results);
/// For each pair of parameters, `surface-…` with a panel for each way of finding the surface, and
/// `contours-…` with all contours in one panel.
std::vector<Figure> surface_figures(const Results& results);
std::optional<Figure> correlation_figure(const Results& results);
std::optional<Figure> coverage_figure(const Results& results);
/// One for each diagnostic that has panels.
std::vector<Figure> diagnostic_figures(const Results& results);

// Panels beside each other: one wide, two of half the width of a page, or three small ones. A page
// makes them larger where it has room; a phone makes them smaller, and their text must stay
// legible.
inline constexpr double wide = 470.0, half = 450.0, third = 330.0;
/// Columns and sizes by the number of panels, with the height of each where there are one, two or
/// three in a row.
void set_grid(Figure& figure, double one, double two, double three);

std::vector<double> sorted_finite(std::span<const double> values);
bool any_finite(std::span<const double> values);
double quantile(const std::vector<double>& sorted, double share);
/// The extent of sorted values, without far tails that would flatten all the rest.
Range extent(const std::vector<double>& sorted);
Range with_margin(Range range, double share);
/// Indices of at most so many of `count` things, evenly spread, the first and the last among them.
std::vector<std::size_t> thinned(std::size_t count, std::size_t most);

std::vector<double> equal_edges(Range range, std::size_t bins);
double bin_width(const std::vector<double>& sorted);
std::size_t bins_for(Range range, double width);
/// Edges that suit two samples together; the second may be empty.
std::vector<double> common_edges(std::span<const double> a, std::span<const double> b,
                                 double coarser = 1.0);
/// Density over bins: of all values, also of those outside.
std::vector<double> density(std::span<const double> values, const std::vector<double>& edges);
Histogram histogram_of(std::span<const double> values, const std::vector<double>& edges,
                       std::string label, Role role, bool filled = true);
/// Room above the highest bar for words beside a line.
void leave_room(Panel& panel);

}  // namespace neyman::reports
