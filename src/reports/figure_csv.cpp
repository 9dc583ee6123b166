#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "neyman/reports/figure.hpp"

namespace neyman::reports {

namespace {

constexpr double nothing = std::numeric_limits<double>::quiet_NaN();

struct Row {
  std::size_t panel = 0, series = 0;  ///< indices of their names
  double line = nothing;
  double x = nothing, x_low = nothing, x_high = nothing;
  double y = nothing, y_low = nothing, y_high = nothing;
  double value = nothing;
};

struct Column {
  const char* name;
  double Row::*field;
};
constexpr std::array<Column, 8> columns = {{{"line", &Row::line},
                                            {"x", &Row::x},
                                            {"x_low", &Row::x_low},
                                            {"x_high", &Row::x_high},
                                            {"y", &Row::y},
                                            {"y_low", &Row::y_low},
                                            {"y_high", &Row::y_high},
                                            {"value", &Row::value}}};

/// The rows of one series; each starts as a copy of `base`.
struct Rows {
  std::vector<Row>& rows;
  Row base;

  Row& add() const { return rows.emplace_back(base); }

  void operator()(const Line& s) const {
    for (std::size_t i = 0; i < s.x.size(); ++i) {
      Row& row = add();
      row.x = s.x[i], row.y = s.y[i];
    }
  }
  void operator()(const Band& s) const {
    for (std::size_t i = 0; i < s.x.size(); ++i) {
      Row& row = add();
      row.x = s.x[i], row.y_low = s.low[i], row.y_high = s.high[i];
    }
  }
  void operator()(const Histogram& s) const { bins(s.edges, s.values, s.errors); }
  void operator()(const Steps& s) const { bins(s.edges, s.values, {}); }
  void bins(const std::vector<double>& edges, const std::vector<double>& values,
            const std::vector<double>& errors) const {
    for (std::size_t i = 0; i < values.size(); ++i) {
      Row& row = add();
      row.x_low = edges[i], row.x_high = edges[i + 1], row.y = values[i];
      if (!errors.empty()) row.y_low = values[i] - errors[i], row.y_high = values[i] + errors[i];
    }
  }
  void operator()(const Points& s) const {
    for (std::size_t i = 0; i < s.x.size(); ++i) {
      Row& row = add();
      row.x = s.x[i], row.y = s.y[i];
      if (!s.x_errors.empty())
        row.x_low = s.x[i] - s.x_errors[i], row.x_high = s.x[i] + s.x_errors[i];
      if (!s.y_errors.empty())
        row.y_low = s.y[i] - s.y_errors[i], row.y_high = s.y[i] + s.y_errors[i];
    }
  }
  void operator()(const Bars& s) const {
    for (std::size_t i = 0; i < s.at.size(); ++i) {
      Row& row = add();
      const bool along_x = s.axis == Axis::x;
      (along_x ? row.y : row.x) = s.at[i];
      (along_x ? row.x_low : row.y_low) = s.low[i];
      (along_x ? row.x_high : row.y_high) = s.high[i];
    }
  }
  void operator()(const ReferenceLine& s) const {
    (s.axis == Axis::x ? add().x : add().y) = s.value;
  }
  void operator()(const Span& s) const {
    Row& row = add();
    (s.axis == Axis::x ? row.x_low : row.y_low) = s.low;
    (s.axis == Axis::x ? row.x_high : row.y_high) = s.high;
  }
  void operator()(const Heatmap& s) const {
    for (std::size_t i = 0; i < s.y.size(); ++i)
      for (std::size_t j = 0; j < s.x.size(); ++j) {
        Row& row = add();
        row.x = s.x[j], row.y = s.y[i], row.value = s.values[i * s.x.size() + j];
      }
  }
  void operator()(const Contour& s) const {
    for (std::size_t l = 0; l < s.lines.size(); ++l)
      for (const auto& [x, y] : s.lines[l]) {
        Row& row = add();
        row.line = static_cast<double>(l + 1), row.x = x, row.y = y;
      }
  }
  void operator()(const Annotation&) const {}
};

/// A cell of text, between quotes where it needs them.
std::string cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + '"';
}

std::string name_of(const std::string& name, std::size_t index) {
  return cell(name.empty() ? std::to_string(index + 1) : name);
}

std::string series_name(const Series& series, std::size_t index) {
  return std::visit(
      [&](const auto& s) {
        if constexpr (requires { s.label; })
          return name_of(s.label, index);
        else
          return name_of({}, index);
      },
      series);
}

}  // namespace

std::string figure_csv(const Figure& figure) {
  std::vector<Row> rows;
  for (std::size_t p = 0; p < figure.panels.size(); ++p)
    for (std::size_t s = 0; s < figure.panels[p].series.size(); ++s) {
      Row base;
      base.panel = p, base.series = s;
      std::visit(Rows{rows, base}, figure.panels[p].series[s]);
    }
  std::vector<Column> used;
  for (const Column& column : columns)
    if (std::any_of(rows.begin(), rows.end(),
                    [&](const Row& row) { return !std::isnan(row.*column.field); }))
      used.push_back(column);
  std::string out = "panel,series";
  for (const Column& column : used) out += fmt::format(",{}", column.name);
  out += '\n';
  std::string names;
  const Row* before = nullptr;
  for (const Row& row : rows) {
    if (before == nullptr || row.panel != before->panel || row.series != before->series) {
      const Panel& panel = figure.panels[row.panel];
      names =
          name_of(panel.title, row.panel) + ',' + series_name(panel.series[row.series], row.series);
    }
    before = &row;
    out += names;
    for (const Column& column : used) {
      const double value = row.*column.field;
      out += std::isnan(value) ? "," : fmt::format(",{:.8g}", value);
    }
    out += '\n';
  }
  return out;
}

}  // namespace neyman::reports
