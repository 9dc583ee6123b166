#include "neyman/reports/figure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "neyman/core/check.hpp"
#include "neyman/reports/terminal.hpp"
#include "reports/chrome.hpp"

namespace neyman::reports {

namespace {

// ------------------------------------------------------------------------------- checking

void check_range(const std::string& name, const std::optional<Range>& range, bool log) {
  if (!range) return;
  check_finite("draw", name + ".low", range->low);
  check_finite("draw", name + ".high", range->high);
  if (!(range->low < range->high))
    fail_argument("draw", name + ".low", fmt::format("{}", range->low),
                  fmt::format("below high ({})", range->high));
  if (log && range->low <= 0.0)
    fail_argument("draw", name + ".low", fmt::format("{}", range->low),
                  "positive on a logarithmic axis");
}

void check_ticks(const std::string& name, const std::optional<std::vector<Tick>>& ticks) {
  if (!ticks) return;
  for (std::size_t i = 0; i < ticks->size(); ++i)
    check_finite("draw", fmt::format("{}[{}]", name, i), (*ticks)[i].value);
}

/// The place of a series, for messages: "panels[0].series[2].y".
class Checker {
 public:
  Checker(std::string path, const Panel& panel) : path_(std::move(path)), panel_(panel) {}

  void operator()(const Line& s) const {
    pairs(s.x, s.y);
    check_positive("draw", path_ + ".width", s.width);
  }
  void operator()(const Band& s) const {
    pairs(s.x, s.low);
    values(".high", s.high, panel_.y_log, true);
    check_same_size("draw", path_ + ".high", s.high.size(), s.x.size(), "one for each x");
    for (std::size_t i = 0; i < s.x.size(); ++i)
      if (s.low[i] > s.high[i])
        fail_argument("draw", fmt::format("{}.low[{}]", path_, i), fmt::format("{}", s.low[i]),
                      fmt::format("at most high ({})", s.high[i]));
  }
  void operator()(const Histogram& s) const {
    bins(s.edges, s.values);
    if (!s.errors.empty()) errors(".errors", s.errors, s.values.size(), "one for each value");
  }
  void operator()(const Steps& s) const {
    bins(s.edges, s.values);
    check_positive("draw", path_ + ".width", s.width);
  }
  void operator()(const Points& s) const {
    pairs(s.x, s.y);
    if (!s.x_errors.empty()) errors(".x_errors", s.x_errors, s.x.size(), "one for each x");
    if (!s.y_errors.empty()) errors(".y_errors", s.y_errors, s.x.size(), "one for each x");
    check_positive("draw", path_ + ".size", s.size);
  }
  void operator()(const Bars& s) const {
    check_at_least("draw", path_ + ".at.size", s.at.size(), 1);
    values(".at", s.at, is_log(s.axis == Axis::x ? Axis::y : Axis::x), false);
    for (const auto& [name, ends] : {std::pair(".low", &s.low), std::pair(".high", &s.high)}) {
      check_same_size("draw", path_ + name, ends->size(), s.at.size(), "one for each bar");
      values(name, *ends, is_log(s.axis), false);
    }
    for (std::size_t i = 0; i < s.at.size(); ++i)
      if (s.low[i] > s.high[i])
        fail_argument("draw", fmt::format("{}.low[{}]", path_, i), fmt::format("{}", s.low[i]),
                      fmt::format("at most high ({})", s.high[i]));
    check_positive("draw", path_ + ".thickness", s.thickness);
  }
  void operator()(const ReferenceLine& s) const {
    values(".value", {&s.value, 1}, is_log(s.axis), false);
  }
  void operator()(const Span& s) const {
    values(".low", {&s.low, 1}, is_log(s.axis), false);
    values(".high", {&s.high, 1}, is_log(s.axis), false);
    if (s.low > s.high)
      fail_argument("draw", path_ + ".low", fmt::format("{}", s.low),
                    fmt::format("at most high ({})", s.high));
  }
  void operator()(const Heatmap& s) const {
    grid(".x", s.x);
    grid(".y", s.y);
    if (panel_.x_log || panel_.y_log)
      fail_argument("draw", path_, "a heatmap on a logarithmic axis", "on linear axes");
    check_same_size("draw", path_ + ".values", s.values.size(), s.x.size() * s.y.size(),
                    "one for each cell");
    check_finite("draw", path_ + ".values", s.values);
    check_range(path_ + ".range", s.range, false);
  }
  void operator()(const Contour& s) const {
    for (const auto& line : s.lines)
      for (const auto& [x, y] : line) {
        values(".lines.x", {&x, 1}, panel_.x_log, false);
        values(".lines.y", {&y, 1}, panel_.y_log, true);
      }
    check_positive("draw", path_ + ".width", s.width);
  }
  void operator()(const Annotation& s) const {
    values(".x", {&s.x, 1}, panel_.x_log && !s.fraction, false);
    values(".y", {&s.y, 1}, panel_.y_log && !s.fraction, false);
  }

 private:
  bool is_log(Axis axis) const { return axis == Axis::x ? panel_.x_log : panel_.y_log; }

  void values(std::string_view name, std::span<const double> v, bool log, bool zero_allowed) const {
    const std::string full = path_ + std::string(name);
    check_finite("draw", full, v);
    if (!log) return;
    for (std::size_t i = 0; i < v.size(); ++i)
      if (v[i] < 0.0 || (v[i] == 0.0 && !zero_allowed))
        fail_argument("draw", fmt::format("{}[{}]", full, i), fmt::format("{}", v[i]),
                      "positive on a logarithmic axis");
  }
  void pairs(std::span<const double> x, std::span<const double> y) const {
    check_at_least("draw", path_ + ".x.size", x.size(), 1);
    check_same_size("draw", path_ + ".y", y.size(), x.size(), "one for each x");
    values(".x", x, panel_.x_log, false);
    values(".y", y, panel_.y_log, true);
  }
  void bins(std::span<const double> edges, std::span<const double> v) const {
    check_at_least("draw", path_ + ".edges.size", edges.size(), 2);
    check_same_size("draw", path_ + ".values", v.size(), edges.size() - 1, "one for each bin");
    values(".edges", edges, panel_.x_log, false);
    values(".values", v, panel_.y_log, true);
    increasing(".edges", edges);
  }
  void increasing(std::string_view name, std::span<const double> v) const {
    for (std::size_t i = 1; i < v.size(); ++i)
      if (!(v[i] > v[i - 1]))
        fail_argument("draw", fmt::format("{}{}[{}]", path_, name, i), fmt::format("{}", v[i]),
                      fmt::format("above the one before ({})", v[i - 1]));
  }
  void errors(std::string_view name, std::span<const double> v, std::size_t size,
              std::string_view meaning) const {
    check_same_size("draw", path_ + std::string(name), v.size(), size, meaning);
    check_non_negative("draw", path_ + std::string(name), v);
  }
  void grid(std::string_view name, std::span<const double> v) const {
    check_at_least("draw", path_ + std::string(name) + ".size", v.size(), 2);
    check_finite("draw", path_ + std::string(name), v);
    increasing(name, v);
    const double step = (v.back() - v.front()) / static_cast<double>(v.size() - 1);
    for (std::size_t i = 1; i < v.size(); ++i)
      if (std::abs(v[i] - v[i - 1] - step) > 1e-6 * step)
        fail_argument("draw", fmt::format("{}{}[{}]", path_, name, i), fmt::format("{}", v[i]),
                      "on an equally spaced grid");
  }

  std::string path_;
  const Panel& panel_;
};

// ------------------------------------------------------------------------------ the frame

/// Collects the extent of what a panel shows.
class Extent {
 public:
  void add(double value) {
    low_ = std::min(low_, value);
    high_ = std::max(high_, value);
    if (value > 0.0) least_positive_ = std::min(least_positive_, value);
  }
  bool empty() const { return low_ > high_; }
  double low() const { return low_; }
  double high() const { return high_; }
  double least_positive() const { return least_positive_; }

 private:
  double low_ = std::numeric_limits<double>::infinity();
  double high_ = -std::numeric_limits<double>::infinity();
  double least_positive_ = std::numeric_limits<double>::infinity();
};

class Collector {
 public:
  explicit Collector(const Panel& panel) : panel_(panel) {}

  Extent x, y;
  bool margins_in_x = false;  ///< dots and contours should not touch the sides
  bool stands_on_zero = false;
  bool fills = false;  ///< a heatmap goes to the very edge

  void operator()(const Line& s) { points(s.x, s.y); }
  void operator()(const Band& s) {
    points(s.x, s.low);
    points(s.x, s.high);
  }
  void operator()(const Histogram& s) {
    stands_on_zero = true;
    bins(s.edges, s.values, s.errors);
  }
  void operator()(const Steps& s) { bins(s.edges, s.values, {}); }
  void operator()(const Points& s) {
    margins_in_x = true;
    for (std::size_t i = 0; i < s.x.size(); ++i) {
      const double dx = s.x_errors.empty() ? 0.0 : s.x_errors[i];
      const double dy = s.y_errors.empty() ? 0.0 : s.y_errors[i];
      point(s.x[i] - dx, s.y[i] - dy);
      point(s.x[i] + dx, s.y[i] + dy);
    }
  }
  void operator()(const Bars& s) {
    for (std::size_t i = 0; i < s.at.size(); ++i)
      for (const double side : {-0.5, 0.5}) {
        const double at = s.at[i] + side * s.thickness, end = side < 0.0 ? s.low[i] : s.high[i];
        s.axis == Axis::x ? point(end, at) : point(at, end);
      }
  }
  void operator()(const ReferenceLine& s) { (s.axis == Axis::x ? x : y).add(s.value); }
  void operator()(const Span& s) {
    (s.axis == Axis::x ? x : y).add(s.low);
    (s.axis == Axis::x ? x : y).add(s.high);
  }
  void operator()(const Heatmap& s) {
    fills = true;
    const double dx = 0.5 * (s.x[1] - s.x[0]), dy = 0.5 * (s.y[1] - s.y[0]);
    point(s.x.front() - dx, s.y.front() - dy);
    point(s.x.back() + dx, s.y.back() + dy);
  }
  void operator()(const Contour& s) {
    margins_in_x = true;
    for (const auto& line : s.lines)
      for (const auto& [px, py] : line) point(px, py);
  }
  void operator()(const Annotation&) {}

 private:
  void point(double px, double py) {
    x.add(px);
    if (!panel_.x_range || (px >= panel_.x_range->low && px <= panel_.x_range->high)) y.add(py);
  }
  void points(std::span<const double> px, std::span<const double> py) {
    for (std::size_t i = 0; i < px.size(); ++i) point(px[i], py[i]);
  }
  void bins(std::span<const double> edges, std::span<const double> v,
            std::span<const double> errors) {
    for (std::size_t i = 0; i < v.size(); ++i) {
      const double error = errors.empty() ? 0.0 : errors[i];
      x.add(edges[i]);
      x.add(edges[i + 1]);
      const bool outside = panel_.x_range && (edges[i] >= panel_.x_range->high ||
                                              edges[i + 1] <= panel_.x_range->low);
      if (outside) continue;
      y.add(v[i] - (v[i] - error > 0.0 ? error : 0.0));
      y.add(v[i] + error);
    }
  }
  const Panel& panel_;
};

Range log_range(const Extent& extent, double margin) {
  if (!std::isfinite(extent.least_positive())) return {0.1, 1.0};
  const double low = std::log10(extent.least_positive()), high = std::log10(extent.high());
  const double pad = high > low ? margin * (high - low) : 0.5;
  return {std::pow(10.0, low - pad), std::pow(10.0, high + pad)};
}

/// A little room on both sides; a single value gets a range of its own size around it.
Range linear_range(const Extent& extent, double margin) {
  if (extent.empty()) return {0.0, 1.0};
  const double size = extent.high() - extent.low();
  const double scale = std::max(std::abs(extent.low()), std::abs(extent.high()));
  if (size <= 1e-12 * scale || size == 0.0) {
    const double half = scale > 0.0 ? 0.5 * scale : 0.5;
    return {extent.low() - half, extent.high() + half};
  }
  return {extent.low() - margin * size, extent.high() + margin * size};
}

Range y_range(const Panel& panel, const Collector& all) {
  if (panel.y_range) return *panel.y_range;
  if (panel.y_log) return log_range(all.y, 0.05);
  if (all.fills || all.y.empty()) return linear_range(all.y, 0.0);
  Range range = linear_range(all.y, 0.06);
  const bool near_zero = all.y.low() >= 0.0 && all.y.low() < 0.3 * all.y.high();
  if ((all.stands_on_zero && all.y.low() >= 0.0) || near_zero) {
    range.low = 0.0;
    if (all.y.high() == 0.0) range.high = 1.0;
  } else if (all.stands_on_zero) {
    range.high = std::max(range.high, 0.0);
  }
  return range;
}

}  // namespace

void check_figure(const Figure& figure) {
  check_at_least("draw", "figure.columns", figure.columns, 1);
  check_at_least("draw", "figure.panels.size", figure.panels.size(), 1);
  check_in_range("draw", "figure.panel_width", figure.panel_width, 160.0, 4000.0);
  check_in_range("draw", "figure.panel_height", figure.panel_height, 120.0, 4000.0);
  if (!figure.row_heights.empty()) {
    if (!figure.joined) fail_argument("draw", "figure.joined", "false", "true with row_heights");
    check_same_size("draw", "figure.row_heights", figure.row_heights.size(), figure.rows(),
                    "one for each row");
    for (const double height : figure.row_heights)
      check_in_range("draw", "figure.row_heights", height, 40.0, 4000.0);
  }
  for (std::size_t p = 0; p < figure.panels.size(); ++p) {
    const Panel& panel = figure.panels[p];
    const std::string path = fmt::format("panels[{}]", p);
    check_range(path + ".x_range", panel.x_range, panel.x_log);
    check_range(path + ".y_range", panel.y_range, panel.y_log);
    check_ticks(path + ".x_ticks", panel.x_ticks);
    check_ticks(path + ".y_ticks", panel.y_ticks);
    check_at_least("draw", path + ".series.size", panel.series.size(), 1);
    for (std::size_t s = 0; s < panel.series.size(); ++s)
      std::visit(Checker(fmt::format("{}.series[{}]", path, s), panel), panel.series[s]);
    // Values near the largest double are finite, but their distances are not.
    const Frame frame = frame_of(panel);
    check_finite("draw", path + ".width of x", frame.x.high - frame.x.low);
    check_finite("draw", path + ".height of y", frame.y.high - frame.y.low);
  }
}

Frame frame_of(const Panel& panel) {
  Collector all(panel);
  for (const Series& series : panel.series) std::visit(all, series);
  const double margin = all.fills ? 0.0 : all.margins_in_x ? 0.04 : 0.0;
  const Range x = panel.x_range ? *panel.x_range
                  : panel.x_log ? log_range(all.x, margin)
                                : linear_range(all.x, margin);
  return {x, y_range(panel, all)};
}

namespace {

/// The label of a tick. Where the numbers of an axis are very large or very small, all of them
/// are multiples of the same power of ten.
std::string tick_label(double value, double step, double largest) {
  const int power =
      largest >= 1e6 || largest < 1e-3 ? static_cast<int>(std::floor(std::log10(largest))) : 0;
  const double unit = std::pow(10.0, power);
  const int decimals =
      std::clamp(static_cast<int>(std::ceil(-std::log10(step / unit) - 1e-9)), 0, 17);
  std::string text = fmt::format("{:.{}f}", std::abs(value) / unit, decimals);
  const bool zero = text.find_first_not_of("0.") == std::string::npos;
  if (value < 0.0 && !zero) text.insert(0, "−");
  if (power == 0) return text;
  return zero ? "0" : text + " × " + power_of_ten(power);
}

std::vector<Tick> linear_ticks(Range range, std::size_t count) {
  const double rough =
      (range.high - range.low) / static_cast<double>(std::max<std::size_t>(count, 1));
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = power;
  for (const double nice : {2.0, 5.0, 10.0})
    if (std::abs(std::log(nice * power / rough)) < std::abs(std::log(step / rough)))
      step = nice * power;
  std::vector<Tick> out;
  const double largest = std::max(std::abs(range.low), std::abs(range.high));
  const double tolerance = 1e-9 * (range.high - range.low);
  const auto first = std::ceil((range.low - tolerance) / step);
  for (double i = first; i * step <= range.high + tolerance; i += 1.0) {
    const double value = i == 0.0 ? 0.0 : i * step;
    out.push_back({value, tick_label(value, step, largest)});
    if (out.size() > 4 * count + 8) break;
  }
  return out;
}

std::vector<Tick> log_ticks(Range range, std::size_t count) {
  const double low = std::log10(range.low), high = std::log10(range.high);
  const double decades = high - low;
  std::vector<Tick> out;
  const auto add = [&](double value, double exponent, bool plain) {
    if (value < range.low * (1 - 1e-9) || value > range.high * (1 + 1e-9)) return;
    if (plain && exponent >= -3 && exponent <= 3)
      out.push_back({value, format_number(value, 3)});
    else
      out.push_back({value, power_of_ten(static_cast<int>(exponent))});
  };
  if (decades < 1.5) {
    for (double e = std::floor(low); e <= high; e += 1.0)
      for (const double m : {1.0, 2.0, 5.0}) add(m * std::pow(10.0, e), e, true);
    return out.size() >= 2 ? out : linear_ticks(range, count);
  }
  const double step =
      std::max(1.0, std::ceil(decades / static_cast<double>(std::max<std::size_t>(count, 1))));
  for (double e = std::ceil(low / step - 1e-9) * step; e <= high + 1e-9; e += step)
    add(std::pow(10.0, e), e, false);
  return out;
}

}  // namespace

std::vector<Tick> ticks(Range range, bool log, std::size_t count) {
  if (!(range.low < range.high))
    fail_argument("ticks", "range.low", fmt::format("{}", range.low),
                  fmt::format("below high ({})", range.high));
  if (log) check_positive("ticks", "range.low", range.low);
  return log ? log_ticks(range, count) : linear_ticks(range, count);
}

std::string file_stem(std::string_view name) {
  std::string stem;
  for (const char c : name) {
    const bool continuation = (static_cast<unsigned char>(c) & 0xc0u) == 0x80u;
    if (continuation) continue;  // a character of several bytes becomes one '_'
    const bool safe = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '-' || c == '_' || c == '.';
    stem += safe ? c : '_';
  }
  if (stem.empty()) return "figure";
  const char c = stem.front();
  return c == '-' || c == '_' || c == '.' ? "figure" + stem : stem;
}

std::string_view role_colour(Role role, bool dark) {
  return dark ? role_style(role).dark : role_style(role).light;
}

std::string_view role_name(Role role) { return role_style(role).name; }

}  // namespace neyman::reports
