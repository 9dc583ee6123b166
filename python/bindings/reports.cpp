#include "reports.hpp"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "neyman/reports/study_figures.hpp"

namespace neyman::python {

namespace {

namespace py = pybind11;

py::array_t<double> array(const std::vector<double>& values) {
  return py::array_t<double>(static_cast<py::ssize_t>(values.size()), values.data());
}

py::object range(const std::optional<reports::Range>& given) {
  if (!given) return py::none();
  return py::make_tuple(given->low, given->high);
}

py::object ticks(const std::optional<std::vector<reports::Tick>>& given) {
  if (!given) return py::none();
  py::list out;
  for (const auto& tick : *given) out.append(py::make_tuple(tick.value, tick.label));
  return out;
}

py::str name(reports::Role role) { return py::str(std::string(reports::role_name(role))); }

const char* name(reports::Dash dash) {
  static constexpr std::array names = {"solid", "dashed", "dotted"};
  return names.at(static_cast<std::size_t>(dash));
}

const char* name(reports::Axis axis) { return axis == reports::Axis::x ? "x" : "y"; }

const char* name(reports::Align align) {
  static constexpr std::array names = {"left", "center", "right"};
  return names.at(static_cast<std::size_t>(align));
}

/// What every series has, in the form that Python knows it by.
py::dict base(const char* type, const std::string& label, reports::Role role) {
  py::dict out;
  out["type"] = type;
  out["label"] = label;
  out["role"] = name(role);
  return out;
}

struct ToDict {
  py::dict operator()(const reports::Line& s) const {
    auto out = base("line", s.label, s.role);
    out["x"] = array(s.x);
    out["y"] = array(s.y);
    out["dash"] = name(s.dash);
    out["width"] = s.width;
    return out;
  }
  py::dict operator()(const reports::Band& s) const {
    auto out = base("band", s.label, s.role);
    out["x"] = array(s.x);
    out["low"] = array(s.low);
    out["high"] = array(s.high);
    return out;
  }
  py::dict operator()(const reports::Histogram& s) const {
    auto out = base("histogram", s.label, s.role);
    out["edges"] = array(s.edges);
    out["values"] = array(s.values);
    out["errors"] = array(s.errors);
    out["filled"] = s.filled;
    return out;
  }
  py::dict operator()(const reports::Steps& s) const {
    auto out = base("steps", s.label, s.role);
    out["edges"] = array(s.edges);
    out["values"] = array(s.values);
    out["dash"] = name(s.dash);
    out["width"] = s.width;
    return out;
  }
  py::dict operator()(const reports::Points& s) const {
    auto out = base("points", s.label, s.role);
    out["x"] = array(s.x);
    out["y"] = array(s.y);
    out["x_errors"] = array(s.x_errors);
    out["y_errors"] = array(s.y_errors);
    out["size"] = s.size;
    return out;
  }
  py::dict operator()(const reports::Bars& s) const {
    auto out = base("bars", s.label, s.role);
    out["axis"] = name(s.axis);
    out["at"] = array(s.at);
    out["low"] = array(s.low);
    out["high"] = array(s.high);
    out["thickness"] = s.thickness;
    return out;
  }
  py::dict operator()(const reports::ReferenceLine& s) const {
    auto out = base("reference", s.label, s.role);
    out["axis"] = name(s.axis);
    out["value"] = s.value;
    out["dash"] = name(s.dash);
    return out;
  }
  py::dict operator()(const reports::Span& s) const {
    auto out = base("span", s.label, s.role);
    out["axis"] = name(s.axis);
    out["low"] = s.low;
    out["high"] = s.high;
    return out;
  }
  py::dict operator()(const reports::Heatmap& s) const {
    py::dict out;
    out["type"] = "heatmap";
    out["label"] = s.label;
    out["x"] = array(s.x);
    out["y"] = array(s.y);
    out["values"] = array(s.values).reshape(
        {static_cast<py::ssize_t>(s.y.size()), static_cast<py::ssize_t>(s.x.size())});
    out["range"] = range(s.range);
    out["diverging"] = s.colours == reports::Colours::diverging;
    return out;
  }
  py::dict operator()(const reports::Contour& s) const {
    auto out = base("contour", s.label, s.role);
    py::list lines;
    for (const auto& line : s.lines) {
      std::vector<double> points;
      for (const auto& [x, y] : line) points.insert(points.end(), {x, y});
      lines.append(array(points).reshape({static_cast<py::ssize_t>(line.size()), py::ssize_t{2}}));
    }
    out["lines"] = std::move(lines);
    out["dash"] = name(s.dash);
    out["width"] = s.width;
    return out;
  }
  py::dict operator()(const reports::Annotation& s) const {
    auto out = base("annotation", s.text, s.role);
    out["x"] = s.x;
    out["y"] = s.y;
    out["fraction"] = s.fraction;
    out["align"] = name(s.align);
    return out;
  }
};

py::dict panel_of(const reports::Panel& panel) {
  py::dict out;
  out["title"] = panel.title;
  out["x_label"] = panel.x_label;
  out["y_label"] = panel.y_label;
  out["x_range"] = range(panel.x_range);
  out["y_range"] = range(panel.y_range);
  out["x_log"] = panel.x_log;
  out["y_log"] = panel.y_log;
  out["x_ticks"] = ticks(panel.x_ticks);
  out["y_ticks"] = ticks(panel.y_ticks);
  out["x_upright"] = panel.x_upright;
  out["legend"] = panel.legend != reports::Legend::none;
  out["axes"] = panel.axes;
  py::list series;
  for (const auto& entry : panel.series) series.append(std::visit(ToDict{}, entry));
  out["series"] = std::move(series);
  return out;
}

}  // namespace

py::dict figure_dict(const reports::Figure& figure) {
  py::dict out;
  out["name"] = figure.name;
  out["title"] = figure.title;
  out["caption"] = figure.caption;
  out["columns"] = figure.columns;
  out["width"] = figure.panel_width;
  out["height"] = figure.panel_height;
  out["joined"] = figure.joined;
  out["row_heights"] = figure.row_heights;
  py::list panels;
  for (const auto& panel : figure.panels) panels.append(panel_of(panel));
  out["panels"] = std::move(panels);
  return out;
}

py::list figures_of(const Results& results) {
  py::list out;
  for (const auto& figure : reports::study_figures(results)) out.append(figure_dict(figure));
  return out;
}

}  // namespace neyman::python
