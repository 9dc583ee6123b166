#include "reports/figure_parts.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace neyman::reports {

std::vector<double> sorted_finite(std::span<const double> values) {
  std::vector<double> out;
  std::copy_if(values.begin(), values.end(), std::back_inserter(out),
               [](double v) { return std::isfinite(v); });
  std::sort(out.begin(), out.end());
  return out;
}

double quantile(const std::vector<double>& sorted, double share) {
  return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))];
}

Range extent(const std::vector<double>& sorted) {
  const Range all{sorted.front(), sorted.back()};
  const double low = quantile(sorted, 0.001), high = quantile(sorted, 0.999);
  const double reach = 0.35 * (high - low);
  if (!(reach > 0.0)) return all;
  return {std::max(all.low, low - reach), std::min(all.high, high + reach)};
}

std::vector<double> equal_edges(Range range, std::size_t bins) {
  if (!(range.high > range.low)) {
    const double pad = range.low == 0.0 ? 0.5 : 0.05 * std::abs(range.low);
    range = {range.low - pad, range.low + pad};
  }
  std::vector<double> edges;
  for (std::size_t b = 0; b <= bins; ++b)
    edges.push_back(range.low +
                    (range.high - range.low) * static_cast<double>(b) / static_cast<double>(bins));
  return edges;
}

/// Freedman and Diaconis' bin width, made finer: distributions with several peaks are wider than
/// any of their peaks. 0 where half of the values are equal.
double bin_width(const std::vector<double>& sorted) {
  const double spread = quantile(sorted, 0.75) - quantile(sorted, 0.25);
  return 1.2 * spread / std::cbrt(static_cast<double>(sorted.size()));
}

std::size_t bins_for(Range range, double width) {
  if (!(width > 0.0)) return 40;
  return static_cast<std::size_t>(std::clamp((range.high - range.low) / width, 15.0, 80.0));
}

std::vector<double> density(std::span<const double> values, const std::vector<double>& edges) {
  const double bins = static_cast<double>(edges.size() - 1), size = edges.back() - edges.front();
  std::vector<double> out(edges.size() - 1, 0.0);
  for (const double value : values) {
    if (!(value >= edges.front() && value <= edges.back())) continue;
    const auto bin = static_cast<std::size_t>((value - edges.front()) / size * bins);
    out[std::min(bin, out.size() - 1)] += bins / (size * static_cast<double>(values.size()));
  }
  return out;
}

Range with_margin(Range range, double share) {
  const double pad = share * (range.high - range.low);
  return {range.low - pad, range.high + pad};
}

std::vector<double> common_edges(std::span<const double> a, std::span<const double> b,
                                 double coarser) {
  auto all = sorted_finite(a);
  const auto more = sorted_finite(b);
  double width = bin_width(all);
  if (!more.empty()) width = std::min(width, bin_width(more));
  all.insert(all.end(), more.begin(), more.end());
  std::sort(all.begin(), all.end());
  const Range range = with_margin(extent(all), 0.02);
  return equal_edges(range, bins_for(range, coarser * width));
}

Histogram histogram_of(std::span<const double> values, const std::vector<double>& edges,
                       std::string label, Role role, bool filled) {
  return {edges, density(values, edges), std::move(label), role, filled, {}};
}

void leave_room(Panel& panel) {
  double top = 0.0;
  for (const auto& series : panel.series)
    if (const auto* histogram = std::get_if<Histogram>(&series))
      for (const double value : histogram->values) top = std::max(top, value);
  if (top > 0.0) panel.y_range = Range{0.0, 1.16 * top};
}

bool any_finite(std::span<const double> values) {
  return std::any_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}

std::vector<std::size_t> thinned(std::size_t count, std::size_t most) {
  const std::size_t shown = std::min(count, most);
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < shown; ++i)
    out.push_back(shown < 2 ? 0 : i * (count - 1) / (shown - 1));
  return out;
}

void set_grid(Figure& figure, double one, double two, double three) {
  const std::size_t panels = figure.panels.size();
  figure.columns = panels == 4 ? 2 : std::min<std::size_t>(std::max<std::size_t>(panels, 1), 3);
  figure.panel_width = figure.columns == 1 ? wide : figure.columns == 2 ? half : third;
  figure.panel_height = figure.columns == 1 ? one : figure.columns == 2 ? two : three;
}

}  // namespace neyman::reports
