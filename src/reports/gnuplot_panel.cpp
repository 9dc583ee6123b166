#include "reports/gnuplot_panel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <variant>

#include "reports/chrome.hpp"
#include "reports/subscripts.hpp"
#include "reports/utf8.hpp"

namespace neyman::reports {

std::string quote(std::string_view text) {
  std::string out = "'";
  for (; !text.empty(); text.remove_prefix(decode_utf8(text).bytes)) {
    const Utf8Character character = decode_utf8(text);
    if (!character.valid)
      out += "\ufffd";
    else if (character.code < 0x20 || character.code == 0x7f)
      out += ' ';
    else if (character.code == U'\'')
      out += "'.\"'\".'";
    else
      out += text.substr(0, character.bytes);
  }
  return out + "'";
}

std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  return text;
}

std::string num(double value) { return fmt::format("{:.15g}", value); }

std::size_t DataFile::add(const std::string& heading, std::string_view columns,
                          const std::string& rows) {
  if (blocks > 0) text += "\n\n";
  text += fmt::format("# [{}] {}\n# {}\n{}", blocks, one_line(heading), columns, rows);
  return blocks++;
}

const std::string& label_of(const Series& series) {
  static const std::string none;
  return std::visit(
      [](const auto& s) -> const std::string& {
        if constexpr (requires { s.label; })
          return s.label;
        else
          return none;
      },
      series);
}

namespace {

constexpr double title_size = 14.0, legend_row = 18.0, swatch = 20.0, end_mark = 10.0;

/// The width of a text in pixels, from the widths of common sans-serif fonts. It is an estimate
/// on the generous side: the reader's font is not known.
double text_width(std::string_view text, double size) {
  static constexpr std::u32string_view narrow = U"iljtf.,:;'|!()[] ", wide = U"mwMW";
  double units = 0.0;
  for (; !text.empty(); text.remove_prefix(decode_utf8(text).bytes)) {
    const char32_t code = decode_utf8(text).code;
    if (takes_no_column(code))
      units += 0.0;
    else if (narrow.find(code) != narrow.npos)
      units += 0.36;
    else if (wide.find(code) != wide.npos)
      units += 0.9;
    else
      units += code >= U'A' && code <= U'Z' ? 0.68 : 0.6;
  }
  return units * size;
}

double opacity(Role role) {
  switch (role) {
    case Role::band68:
      return 0.28;
    case Role::band95:
      return 0.14;
    default:
      return 0.22;
  }
}

std::string dash_type(Dash dash) {
  switch (dash) {
    case Dash::solid:
      return "solid";
    case Dash::dashed:
      return "(10,7)";
    case Dash::dotted:
      return "(3,5)";
  }
  return "solid";
}

std::string line_style(Role role, double width, Dash dash) {
  return fmt::format("lc rgb '{}' lw {} dt {}", role_colour(role), num(width), dash_type(dash));
}

std::string fill_style(Role role) {
  return fmt::format("fc rgb '{}' fs transparent solid {} noborder", role_colour(role),
                     num(opacity(role)));
}

std::string bar_style(Role role) {
  return fmt::format("fc rgb '{0}' fs transparent solid 0.3 border lc rgb '{0}' lw 1.1",
                     role_colour(role));
}

// gnuplot's unit of point size, in pixels of radius.
constexpr double point_unit = 4.87;

std::string point_style(Role role, double radius) {
  return fmt::format("pt 7 ps {} lc rgb '{}'", num(radius / point_unit), role_colour(role));
}

std::string rows_of(std::initializer_list<std::span<const double>> columns) {
  std::string out;
  for (std::size_t i = 0; i < columns.begin()->size(); ++i) {
    const char* separator = "";
    for (const auto& column : columns) {
      out += fmt::format("{}{}", separator, column[i]);
      separator = " ";
    }
    out += '\n';
  }
  return out;
}

/// The corners of a step function.
std::string corners(std::span<const double> edges, std::span<const double> values) {
  std::string out;
  for (std::size_t i = 0; i < values.size(); ++i)
    out += fmt::format("{0} {2}\n{1} {2}\n", edges[i], edges[i + 1], values[i]);
  return out;
}

Role role_of(const Series& series) {
  return std::visit(
      [](const auto& s) {
        if constexpr (requires { s.role; })
          return s.role;
        else
          return Role::reference;
      },
      series);
}

bool has_end(const Series& series) {
  return std::holds_alternative<Line>(series) || std::holds_alternative<Steps>(series);
}

bool in_legend(const Series& series) {
  return !std::holds_alternative<ReferenceLine>(series) &&
         !std::holds_alternative<Heatmap>(series) && !label_of(series).empty();
}

double fraction(double value, Range range, bool log) {
  if (log) return std::log(value / range.low) / std::log(range.high / range.low);
  return (value - range.low) / (range.high - range.low);
}

double entry_width(const std::string& label) {
  return swatch + 6.0 + text_width(label, text_size) + 16.0;
}

/// A text with indices as gnuplot's enhanced text, all else in it literal.
std::string enhanced(std::string_view text) {
  std::string out;
  for (const TextPiece& piece : text_pieces(text)) {
    std::string literal;
    for (const char c : piece.text) {
      if (std::string_view("{}^_@&~\\").find(c) != std::string_view::npos) literal += '\\';
      literal += c;
    }
    out += piece.low ? "_{" + literal + "}" : literal;
  }
  return out;
}

bool has_index(std::string_view text) {
  const auto pieces = text_pieces(text);
  return std::any_of(pieces.begin(), pieces.end(), [](const TextPiece& p) { return p.low; });
}

bool any_index(const std::vector<Tick>& ticks) {
  return std::any_of(ticks.begin(), ticks.end(),
                     [](const Tick& tick) { return has_index(tick.label); });
}

std::string label(std::string_view text, const std::string& where, std::string_view colour,
                  double size, std::string_view more = "", bool bold = false) {
  const bool index = has_index(text);
  return fmt::format("set label {} at {} {} textcolor rgb '{}' font 'Sans{},{}' {}\n",
                     index ? quote(enhanced(text)) : quote(text), where,
                     index ? "enhanced" : "noenhanced", colour, bold ? ":Bold" : "", num(size),
                     more);
}

}  // namespace

PanelWriter::PanelWriter(const Panel& panel, double width, double height)
    : panel_(panel), width_(width), height_(height), frame_(frame_of(panel)) {
  const auto marks = [](const std::optional<std::vector<Tick>>& own, Range range, bool log,
                        double count) {
    return own ? *own : ticks(range, log, static_cast<std::size_t>(std::max(count, 2.0)));
  };
  for (double count = width / 85.0; count >= 2.0; count -= 1.0) {
    x_ticks_ = marks(panel.x_ticks, frame_.x, panel.x_log, count);
    if (panel.x_ticks || !crowded(0.8 * width)) break;
  }
  upright_ = panel.x_upright || (panel.x_ticks && crowded(0.8 * width));
  y_ticks_ = marks(panel.y_ticks, frame_.y, panel.y_log, height / 60.0);
  std::set<std::string> seen;
  for (const Series& series : panel.series) {
    if (const auto* map = std::get_if<Heatmap>(&series)) heatmap_ = map;
    if (panel.legend == Legend::none || !in_legend(series)) continue;
    if (!seen.insert(label_of(series)).second) continue;
    const bool end = panel.legend == Legend::ends && has_end(series);
    (end ? ends_ : above_).push_back({label_of(series), &series});
  }
}

/// Whether labels along x would touch on an axis of that many pixels.
bool PanelWriter::crowded(double pixels) const {
  constexpr double gap = 6.0;
  double end = -1e300;
  for (const Tick& tick : x_ticks_) {
    if (tick.label.empty()) continue;
    const double middle = fraction(tick.value, frame_.x, panel_.x_log) * pixels;
    const double half = 0.5 * text_width(tick.label, text_size);
    if (middle - half < end + gap) return true;
    end = middle + half;
  }
  return false;
}

Margins PanelWriter::margins(double least_left) const {
  Margins m;
  double tick_width = 0.0;
  for (const Tick& tick : y_ticks_)
    tick_width = std::max(tick_width, text_width(tick.label, text_size));
  m.left = std::max(tick_width + 16.0 + (panel_.y_label.empty() ? 0.0 : 22.0), least_left);
  m.right = 18.0;
  for (const Entry& entry : ends_)
    m.right = std::max(m.right, text_width(entry.label, text_size) + end_mark + 15.0);
  if (heatmap_ != nullptr) m.right = std::max(m.right, 84.0);
  m.right = std::max(m.right, level_labels_width());
  m.bottom = 34.0 + (panel_.x_label.empty() ? 0.0 : 22.0);
  if (upright_)
    for (const Tick& tick : x_ticks_)
      m.bottom = std::max(m.bottom, text_width(tick.label, text_size) + 18.0 +
                                        (panel_.x_label.empty() ? 0.0 : 22.0));
  m.top = 10.0 + (panel_.title.empty() ? 0.0 : 24.0) +
          legend_row * static_cast<double>(legend_rows(m).size());
  return m;
}

/// The room at the right for the labels of horizontal lines; 0 where other things stand there.
double PanelWriter::level_labels_width() const {
  double width = 0.0;
  if (heatmap_ != nullptr || !ends_.empty()) return width;
  for (const Series& series : panel_.series)
    if (const auto* line = std::get_if<ReferenceLine>(&series);
        line != nullptr && line->axis == Axis::y && !line->label.empty() &&
        line->value >= frame_.y.low && line->value <= frame_.y.high)
      width = std::max(width, text_width(line->label, text_size - 0.5) + 8.0);
  return width;
}

void PanelWriter::place(const Margins& margins, const Cell& cell, double canvas_width,
                        double canvas_height) {
  margins_ = margins;
  origin_x_ = cell.x;
  origin_y_ = cell.y;
  width_ = cell.width;
  height_ = cell.height;
  canvas_width_ = canvas_width;
  canvas_height_ = canvas_height;
}

std::string PanelWriter::at(double px, double py) const {
  return fmt::format("screen {:.6f}, screen {:.6f}", (origin_x_ + px) / canvas_width_,
                     1.0 - (origin_y_ + py) / canvas_height_);
}

double PanelWriter::pixel_x(double value) const {
  return margins_.left + fraction(value, frame_.x, panel_.x_log) * plot_width();
}

double PanelWriter::pixel_y(double value) const {
  return margins_.top + (1.0 - fraction(value, frame_.y, panel_.y_log)) * plot_height();
}

std::vector<std::vector<PanelWriter::Entry>> PanelWriter::legend_rows(const Margins& m) const {
  const double room = width_ - m.left - 8.0;
  std::vector<std::vector<Entry>> rows;
  double used = 0.0;
  for (const Entry& entry : above_) {
    const double need = entry_width(entry.label);
    if (rows.empty() || used + need - 16.0 > room) {
      rows.emplace_back();
      used = 0.0;
    }
    rows.back().push_back(entry);
    used += need;
  }
  return rows;
}

void PanelWriter::write_data(DataFile& file, const std::string& where) {
  blocks_.clear();
  for (const Series& series : panel_.series) {
    const std::string& name = label_of(series);
    const std::string heading = where + (name.empty() ? "" : ": " + name);
    const std::size_t block = file.blocks;
    if (const auto* line = std::get_if<Line>(&series)) {
      file.add(heading, "x y", rows_of({line->x, line->y}));
    } else if (const auto* band = std::get_if<Band>(&series)) {
      file.add(heading, "x low high", rows_of({band->x, band->low, band->high}));
    } else if (const auto* histogram = std::get_if<Histogram>(&series)) {
      file.add(heading, "edge value (two rows for each bin, down to 0 at both ends)",
               fmt::format("{} 0\n{}{} 0\n", histogram->edges.front(),
                           corners(histogram->edges, histogram->values), histogram->edges.back()));
      if (!histogram->errors.empty()) {
        std::vector<double> centres;
        for (std::size_t i = 0; i < histogram->values.size(); ++i)
          centres.push_back(0.5 * (histogram->edges[i] + histogram->edges[i + 1]));
        file.add(heading + ", errors", "centre value error",
                 rows_of({centres, histogram->values, histogram->errors}));
      }
    } else if (const auto* steps = std::get_if<Steps>(&series)) {
      file.add(heading, "edge value (two rows for each step)",
               corners(steps->edges, steps->values));
    } else if (const auto* points = std::get_if<Points>(&series)) {
      const std::vector<double> none(points->x.size(), 0.0);
      file.add(heading, "x y x_error y_error",
               rows_of({points->x, points->y, points->x_errors.empty() ? none : points->x_errors,
                        points->y_errors.empty() ? none : points->y_errors}));
    } else if (const auto* bars = std::get_if<Bars>(&series)) {
      file.add(heading, "at low high", rows_of({bars->at, bars->low, bars->high}));
    } else if (const auto* map = std::get_if<Heatmap>(&series)) {
      std::string rows;
      for (std::size_t i = 0; i < map->y.size(); ++i) {
        for (std::size_t j = 0; j < map->x.size(); ++j)
          rows +=
              fmt::format("{} {} {}\n", map->x[j], map->y[i], map->values[i * map->x.size() + j]);
        if (i + 1 < map->y.size()) rows += '\n';
      }
      file.add(heading, "x y value", rows);
    } else if (const auto* contour = std::get_if<Contour>(&series)) {
      std::string rows;
      for (const auto& polyline : contour->lines) {
        if (polyline.empty()) continue;
        if (!rows.empty()) rows += '\n';
        for (const auto& [x, y] : polyline) rows += fmt::format("{} {}\n", x, y);
      }
      if (!rows.empty()) file.add(heading, "x y (an empty line between polylines)", rows);
    }
    blocks_.push_back(block);
  }
}

std::string PanelWriter::commands(const std::string& data_file) const {
  std::string out = "unset label\nunset arrow\nunset object\n";
  out += fmt::format("set lmargin at screen {:.6f}\nset rmargin at screen {:.6f}\n",
                     (origin_x_ + margins_.left) / canvas_width_,
                     (origin_x_ + width_ - margins_.right) / canvas_width_);
  out += fmt::format("set tmargin at screen {:.6f}\nset bmargin at screen {:.6f}\n",
                     1.0 - (origin_y_ + margins_.top) / canvas_height_,
                     1.0 - (origin_y_ + height_ - margins_.bottom) / canvas_height_);
  return out + axes() + titles() + legend() + end_labels() + marks() + plots(data_file);
}

std::string PanelWriter::tick_list(const std::vector<Tick>& list, Range range, bool log) const {
  std::string out;
  for (const Tick& tick : list) {
    // Labels of ticks are formats of their numbers.
    std::string text;
    for (const char c : any_index(list) ? enhanced(tick.label) : tick.label)
      text += c == '%' ? std::string("%%") : std::string(1, c);
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", quote(text), num(tick.value));
  }
  if (!log || std::log10(range.high / range.low) > 8.0) return out;
  for (double e = std::floor(std::log10(range.low)); std::pow(10.0, e) < range.high; e += 1.0)
    for (int m = 2; m < 10; ++m) {
      const double value = m * std::pow(10.0, e);
      if (value > range.low && value < range.high)
        out += fmt::format("{}'' {} 1", out.empty() ? "" : ", ", num(value));
    }
  return out;
}

std::string PanelWriter::axes() const {
  std::string out =
      fmt::format("set border 3 lc rgb '{}' lw 1\nset grid xtics ytics lt 1 lc rgb '{}' lw 1\n",
                  axis_grey, grid_grey);
  const auto axis = [&](char name, const std::vector<Tick>& list, Range range, bool log,
                        std::string_view offset, std::string_view turn = "norotate") {
    out += log ? fmt::format("set logscale {}\n", name) : fmt::format("unset logscale {}\n", name);
    out += fmt::format("set {}range [{}:{}]\n", name, num(range.low), num(range.high));
    out += list.empty() ? fmt::format("unset {}tics\n", name)
                        : fmt::format(
                              "set {}tics border out nomirror {} scale 0.45,0.25 offset {} "
                              "font 'Sans,{}' textcolor rgb '{}' {}enhanced ({})\n",
                              name, turn, offset, num(text_size), muted,
                              any_index(list) ? "" : "no", tick_list(list, range, log));
  };
  if (upright_)
    axis('x', x_ticks_, frame_.x, panel_.x_log, "0,0", "rotate by 90 right");
  else
    axis('x', x_ticks_, frame_.x, panel_.x_log, "0,0.35");
  axis('y', y_ticks_, frame_.y, panel_.y_log, "0.4,0");
  if (!panel_.axes) out += "unset border\nunset grid\nunset xtics\nunset ytics\n";
  return out + colour_scale();
}

std::string PanelWriter::colour_scale() const {
  if (heatmap_ == nullptr) return "unset colorbox\n";
  const auto [least, largest] =
      std::minmax_element(heatmap_->values.begin(), heatmap_->values.end());
  Range range = heatmap_->range.value_or(Range{*least, *largest});
  if (!(range.low < range.high)) range = {range.low - 0.5, range.low + 0.5};
  const std::string_view colours =
      heatmap_->colours == Colours::sequential
          ? "0 '#2d1160', 1 '#3b528b', 2 '#21918c', 3 '#5ec962', 4 '#fde725'"
          : "0 '#2166ac', 1 '#92c5de', 2 '#f7f7f7', 3 '#f4a582', 4 '#b2182b'";
  const auto count = static_cast<std::size_t>(std::max(plot_height() / 45.0, 3.0));
  const double left = width_ - margins_.right + 14.0;
  return fmt::format(
      "set palette defined ({})\nset cbrange [{}:{}]\n"
      "set colorbox vertical user origin {} size {:.6f}, {:.6f} noborder\n"
      "set cbtics scale 0 font 'Sans,{}' textcolor rgb '{}' offset -0.6,0 noenhanced ({})\n",
      colours, num(range.low), num(range.high), at(left, height_ - margins_.bottom),
      12.0 / canvas_width_, plot_height() / canvas_height_, num(text_size), muted,
      tick_list(ticks(range, false, count), range, false));
}

std::string PanelWriter::titles() const {
  std::string out;
  const double centre_x = margins_.left + 0.5 * plot_width();
  const double centre_y = margins_.top + 0.5 * plot_height();
  if (!panel_.title.empty()) {
    const double room = width_ - margins_.left - 4.0;
    const double fit = room / text_width(panel_.title, 1.07);  // bold is a little wider
    out += label(panel_.title, at(margins_.left, 14.0), ink, std::clamp(fit, 9.0, title_size),
                 "left", true);
  }
  if (!panel_.x_label.empty())
    out += label(panel_.x_label, at(centre_x, height_ - 20.0), ink, text_size + 1, "center");
  if (!panel_.y_label.empty())
    out += label(panel_.y_label, at(12.0, centre_y), ink, text_size + 1, "center rotate by 90");
  for (const Series& series : panel_.series)
    if (const auto* map = std::get_if<Heatmap>(&series); map != nullptr && !map->label.empty())
      out += label(map->label, at(width_ - 10.0, centre_y), ink, text_size, "center rotate by 90");
  return out;
}

std::string PanelWriter::legend() const {
  std::string out;
  double y = (panel_.title.empty() ? 0.0 : 24.0) + 0.5 * legend_row + 2.0;
  for (const auto& row : legend_rows(margins_)) {
    double x = margins_.left;
    for (const Entry& entry : row) {
      out += legend_mark(*entry.series, x, y, swatch);
      out += label(entry.label, at(x + swatch + 6.0, y), muted, text_size, "left");
      x += entry_width(entry.label);
    }
    y += legend_row;
  }
  return out;
}

std::string PanelWriter::legend_mark(const Series& series, double x, double y, double size) const {
  const auto line = [&](Role role, double width, Dash dash) {
    return fmt::format("set arrow from {} to {} nohead {}\n", at(x, y), at(x + size, y),
                       line_style(role, width, dash));
  };
  const auto patch = [&](Role role) {
    return fmt::format("set object rectangle from {} to {} {}\n", at(x, y + 5.0),
                       at(x + size, y - 5.0), fill_style(role));
  };
  if (const auto* s = std::get_if<Line>(&series)) return line(s->role, s->width, s->dash);
  if (const auto* s = std::get_if<Steps>(&series)) return line(s->role, s->width, s->dash);
  if (const auto* s = std::get_if<Contour>(&series)) return line(s->role, s->width, s->dash);
  if (const auto* s = std::get_if<Points>(&series))
    return fmt::format("set label '' at {} point {}\n", at(x + 0.5 * size, y),
                       point_style(s->role, s->size));
  if (const auto* s = std::get_if<Bars>(&series))
    return fmt::format("set object rectangle from {} to {} {}\n", at(x, y + 5.0),
                       at(x + size, y - 5.0), bar_style(s->role));
  if (const auto* s = std::get_if<Histogram>(&series)) {
    const std::string top =
        fmt::format("set arrow from {} to {} nohead {}\n", at(x, y - 5.0), at(x + size, y - 5.0),
                    line_style(s->role, 1.4, Dash::solid));
    return s->filled ? patch(s->role) + top : line(s->role, 1.4, Dash::solid);
  }
  return patch(role_of(series));
}

/// Labels at the right ends of the curves, moved apart where they would touch.
std::string PanelWriter::end_labels() const {
  struct End {
    double y;
    const Entry* entry;
  };
  std::vector<End> found;
  for (const Entry& entry : ends_) {
    const auto* line = std::get_if<Line>(entry.series);
    double y = 0.0;
    if (line != nullptr) {
      y = line->y.back();
      for (std::size_t i = 0; i < line->x.size(); ++i)
        if (line->x[i] >= frame_.x.low && line->x[i] <= frame_.x.high) y = line->y[i];
    } else {
      y = std::get<Steps>(*entry.series).values.back();
    }
    y = std::clamp(y, frame_.y.low, frame_.y.high);
    found.push_back({pixel_y(y), &entry});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const End& a, const End& b) { return a.y < b.y; });
  const double gap = text_size + 3.0, bottom = height_ - margins_.bottom;
  for (std::size_t i = 1; i < found.size(); ++i)
    found[i].y = std::max(found[i].y, found[i - 1].y + gap);
  for (std::size_t i = found.size(); i-- > 0;) {
    const double limit = i + 1 < found.size() ? found[i + 1].y - gap : bottom;
    found[i].y = std::min(found[i].y, limit);
  }
  // The words in grey, for contrast; a piece of the curve before them has its colour.
  std::string out;
  const double left = width_ - margins_.right + 6.0;
  for (const End& end : found) {
    out += legend_mark(*end.entry->series, left, end.y, end_mark);
    out += label(end.entry->label, at(left + end_mark + 5.0, end.y), muted, text_size, "left");
  }
  return out;
}

std::string PanelWriter::reference(const ReferenceLine& line, std::vector<Box>& taken) const {
  const bool vertical = line.axis == Axis::x;
  const Range range = vertical ? frame_.x : frame_.y;
  if (line.value < range.low || line.value > range.high) return {};
  const std::string value = num(line.value);
  std::string out =
      vertical ? fmt::format("set arrow from {0}, graph 0 to {0}, graph 1", value)
               : fmt::format("set arrow from graph 0, first {0} to graph 1, first {0}", value);
  out += fmt::format(" nohead back {}\n", line_style(line.role, 1.2, line.dash));
  if (line.label.empty()) return out;
  const double size = text_size - 0.5, width = text_width(line.label, size);
  bool right_aligned = !vertical;
  double x = width_ - margins_.right - 4.0, y = 0.0;
  if (vertical) {
    x = pixel_x(line.value);
    right_aligned = x + 5.0 + width > width_ - margins_.right;
    x += right_aligned ? -5.0 : 5.0;
    y = margins_.top + 8.0;
  } else if (width + 8.0 <= margins_.right && level_labels_width() > 0.0) {
    right_aligned = false;
    x = width_ - margins_.right + 5.0;
    y = pixel_y(line.value);
  } else {
    y = pixel_y(line.value) - 8.0;
  }
  const bool outside = !vertical && !right_aligned;
  const auto box = [&] {
    const double left = right_aligned ? x - width : x;
    return Box{left, left + width, y - 7.0, y + 7.0};
  };
  const auto hit = [&] {
    return std::any_of(taken.begin(), taken.end(), [&](const Box& b) { return b.overlaps(box()); });
  };
  for (int tries = 0; tries < 12 && hit(); ++tries)
    (vertical || outside ? y : x) += vertical ? 14.0 : outside ? -14.0 : -width;
  taken.push_back(box());
  return out +
         label(line.label, at(x, y), muted, size, right_aligned ? "right front" : "left front");
}

/// Spans, reference lines and words.
std::string PanelWriter::marks() const {
  std::string out;
  std::vector<Box> taken;
  for (const Series& series : panel_.series) {
    if (const auto* span = std::get_if<Span>(&series)) {
      const Range range = span->axis == Axis::x ? frame_.x : frame_.y;
      const std::string low = num(std::max(span->low, range.low));
      const std::string high = num(std::min(span->high, range.high));
      if (span->high <= range.low || span->low >= range.high) continue;
      out += span->axis == Axis::x
                 ? fmt::format("set object rectangle from {}, graph 0 to {}, graph 1", low, high)
                 : fmt::format("set object rectangle from graph 0, first {} to graph 1, first {}",
                               low, high);
      out += fmt::format(" behind {}\n", fill_style(span->role));
    } else if (const auto* line = std::get_if<ReferenceLine>(&series)) {
      out += reference(*line, taken);
    } else if (const auto* words = std::get_if<Annotation>(&series)) {
      const std::string where =
          words->fraction ? fmt::format("graph {}, graph {}", num(words->x), num(words->y))
                          : fmt::format("first {}, first {}", num(words->x), num(words->y));
      const std::string_view align = words->align == Align::left     ? "left front"
                                     : words->align == Align::centre ? "center front"
                                                                     : "right front";
      const std::string_view colour =
          words->role == Role::reference ? muted : role_colour(words->role);
      out += label(words->text, where, colour, text_size, align);
    }
  }
  return out;
}

/// A column of the data; on a logarithmic axis nothing lies below its bottom.
std::string PanelWriter::y_column(int column) const {
  if (!panel_.y_log) return fmt::format("{}", column);
  return fmt::format("(${0} > {1} ? ${0} : {1})", column, num(frame_.y.low));
}

/// An error bar as start and length, its start inside a logarithmic axis.
std::string PanelWriter::y_bar(int column, int error) const {
  std::string low = fmt::format("(${}-${})", column, error);
  if (panel_.y_log) low = fmt::format("({0} > {1} ? {0} : {1})", low, num(frame_.y.low));
  return fmt::format("1:{0}:(0):(${1}+${2}-{0})", low, column, error);
}

std::string PanelWriter::plot_of(const Series& series, std::size_t block,
                                 const std::string& file) const {
  const auto source = [&](std::size_t index, const std::string& columns) {
    return fmt::format("{} index {} using {}", quote(file), index, columns);
  };
  const std::string xy = "1:" + y_column(2);
  const auto bars = [&](std::size_t index, const std::string& columns, Role role) {
    return fmt::format(" notitle, \\\n  {} with vectors nohead lc rgb '{}' lw 1.3",
                       source(index, columns), role_colour(role));
  };
  const auto lines = [&](Role role, double width, Dash dash) {
    return source(block, xy) + " with lines " + line_style(role, width, dash);
  };
  if (const auto* s = std::get_if<Line>(&series)) return lines(s->role, s->width, s->dash);
  if (const auto* s = std::get_if<Steps>(&series)) return lines(s->role, s->width, s->dash);
  if (const auto* s = std::get_if<Contour>(&series)) {
    const bool any = std::any_of(s->lines.begin(), s->lines.end(),
                                 [](const auto& polyline) { return !polyline.empty(); });
    return any ? lines(s->role, s->width, s->dash) : std::string();
  }
  if (const auto* s = std::get_if<Band>(&series))
    return source(block, fmt::format("1:{}:{}", y_column(2), y_column(3))) + " with filledcurves " +
           fill_style(s->role);
  // A few cells as rectangles: not every viewer keeps the edges of a small image sharp. Diverging
  // colours are those of matrices, where every cell has its own meaning.
  if (const auto* s = std::get_if<Heatmap>(&series))
    return source(block, "1:2:3") + (s->values.size() <= 100 || s->colours == Colours::diverging
                                         ? " with image pixels"
                                         : " with image");
  if (const auto* s = std::get_if<Bars>(&series)) {
    const std::string half = num(0.5 * s->thickness);
    return source(block, s->axis == Axis::x ? fmt::format("2:1:2:3:($1-{0}):($1+{0})", half)
                                            : fmt::format("1:{1}:($1-{0}):($1+{0}):{1}:{2}", half,
                                                          y_column(2), y_column(3))) +
           " with boxxyerror " + bar_style(s->role);
  }
  if (const auto* s = std::get_if<Histogram>(&series)) {
    const double base = panel_.y_log ? frame_.y.low : std::clamp(0.0, frame_.y.low, frame_.y.high);
    std::string out;
    if (s->filled)
      out += source(block, xy) + fmt::format(" with filledcurves y1={} ", num(base)) +
             fill_style(s->role) + " notitle, \\\n  ";
    out += lines(s->role, 1.4, Dash::solid);
    if (!s->errors.empty()) out += bars(block + 1, y_bar(2, 3), s->role);
    return out;
  }
  if (const auto* s = std::get_if<Points>(&series)) {
    std::string out = source(block, xy) + " with points " + point_style(s->role, s->size);
    if (!s->x_errors.empty())
      out += bars(block, fmt::format("($1-$3):{}:(2*$3):(0)", y_column(2)), s->role);
    if (!s->y_errors.empty()) out += bars(block, y_bar(2, 4), s->role);
    return out;
  }
  return {};
}

std::string PanelWriter::plots(const std::string& data_file) const {
  std::string out;
  for (std::size_t i = 0; i < panel_.series.size(); ++i) {
    const std::string part = plot_of(panel_.series[i], blocks_[i], data_file);
    if (!part.empty()) out += (out.empty() ? "plot " : ", \\\n  ") + part + " notitle";
  }
  // Reference lines and words alone still need axes; a curve below the frame draws nothing.
  if (out.empty()) out = fmt::format("plot {} notitle", num(frame_.y.low - 1.0));
  return out + "\n";
}

}  // namespace neyman::reports
