#include "neyman/reports/gnuplot.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <span>

#include "neyman/core/error.hpp"
#include "neyman/reports/terminal.hpp"
#include "reports/chrome.hpp"

extern char** environ;

namespace neyman::reports {

namespace fs = std::filesystem;

namespace {

// ------------------------------------------------------------------------------ small parts

constexpr double text_size = 12.0, title_size = 14.0, legend_row = 18.0, swatch = 20.0;

/// A text as a gnuplot string. Between single quotes nothing is special but the quote itself,
/// which is joined in from a string of its own, and the terminals are asked not to interpret
/// marks such as _ and ^.
std::string quote(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20)
      out += ' ';
    else if (c == '\'')
      out += "'.\"'\".'";
    else
      out += c;
  }
  return out + "'";
}

/// A text for a comment: one line.
std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  return text;
}

std::string num(double value) { return fmt::format("{:.15g}", value); }

/// The width of a text in pixels, from the widths of common sans-serif fonts. It is an estimate
/// on the generous side: the reader's font is not known.
double text_width(std::string_view text, double size) {
  double units = 0.0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if ((c & 0xc0u) == 0x80u) continue;
    const bool combining = c == 0xcc && i + 1 < text.size();
    if (combining)
      continue;
    else if (std::strchr("iljtf.,:;'|!()[] ", text[i]) != nullptr)
      units += 0.36;
    else if (std::strchr("mwMW", text[i]) != nullptr)
      units += 0.9;
    else if (c >= 'A' && c <= 'Z')
      units += 0.68;
    else
      units += 0.6;
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

// gnuplot's unit of point size, in pixels of radius.
constexpr double point_unit = 4.87;

std::string point_style(Role role, double radius) {
  return fmt::format("pt 7 ps {} lc rgb '{}'", num(radius / point_unit), role_colour(role));
}

// ----------------------------------------------------------------------------------- data

/// The data file: a block for each series that has data, two empty lines between them.
struct DataFile {
  std::string text;
  std::size_t blocks = 0;

  std::size_t add(const std::string& heading, std::string_view columns, const std::string& rows) {
    if (blocks > 0) text += "\n\n";
    text += fmt::format("# [{}] {}\n# {}\n{}", blocks, one_line(heading), columns, rows);
    return blocks++;
  }
};

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

// --------------------------------------------------------------------------------- layout

struct Entry {
  std::string label;
  const Series* series;
};

/// Space around the axes of a panel, in pixels.
struct Margins {
  double left = 0, right = 0, top = 0, bottom = 0;
};

struct Box {
  double left, right, top, bottom;  ///< y grows downwards
  bool overlaps(const Box& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

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

/// Writes one panel: its commands and its data.
class PanelWriter {
 public:
  PanelWriter(const Panel& panel, double width, double height)
      : panel_(panel), width_(width), height_(height), frame_(frame_of(panel)) {
    x_ticks_ = ticks(frame_.x, panel.x_log, static_cast<std::size_t>(std::max(width / 85.0, 2.0)));
    y_ticks_ = ticks(frame_.y, panel.y_log, static_cast<std::size_t>(std::max(height / 60.0, 2.0)));
    std::set<std::string> seen;
    for (const Series& series : panel.series) {
      if (panel.legend == Legend::none || !in_legend(series)) continue;
      if (!seen.insert(label_of(series)).second) continue;
      const bool end = panel.legend == Legend::ends && has_end(series);
      (end ? ends_ : above_).push_back({label_of(series), &series});
    }
    heatmap_ = std::any_of(panel.series.begin(), panel.series.end(),
                           [](const Series& s) { return std::holds_alternative<Heatmap>(s); });
  }

  /// The space that the panel needs; `least_left` is what its neighbours need at the left, which
  /// leaves less room for the legend.
  Margins margins(double least_left = 0.0) const {
    Margins m;
    double tick_width = 0.0;
    for (const Tick& tick : y_ticks_)
      tick_width = std::max(tick_width, text_width(tick.label, text_size));
    m.left = tick_width + 16.0 + (panel_.y_label.empty() ? 0.0 : 22.0);
    m.left = std::max(m.left, least_left);
    m.right = 18.0;
    for (const Entry& entry : ends_)
      m.right = std::max(m.right, text_width(entry.label, text_size) + 14.0);
    if (heatmap_) m.right = std::max(m.right, 84.0);
    m.bottom = 34.0 + (panel_.x_label.empty() ? 0.0 : 22.0);
    m.top = 10.0 + (panel_.title.empty() ? 0.0 : 24.0) +
            legend_row * static_cast<double>(legend_rows(m).size());
    return m;
  }

  /// Fixes where the axes stand; `x`, `y` is the top left corner of the panel on a canvas.
  void place(const Margins& margins, double x, double y, double canvas_width,
             double canvas_height) {
    margins_ = margins;
    origin_x_ = x;
    origin_y_ = y;
    canvas_width_ = canvas_width;
    canvas_height_ = canvas_height;
  }

  /// Adds the data of all series; `commands` then refers to them.
  void write_data(DataFile& file, const std::string& where);
  std::string commands(const std::string& data_file) const;

 private:
  double plot_width() const { return width_ - margins_.left - margins_.right; }
  double plot_height() const { return height_ - margins_.top - margins_.bottom; }

  // Pixels of the panel (y downwards) to gnuplot's screen coordinates.
  std::string at(double px, double py) const {
    return fmt::format("screen {:.6f}, screen {:.6f}", (origin_x_ + px) / canvas_width_,
                       1.0 - (origin_y_ + py) / canvas_height_);
  }
  double pixel_x(double value) const {
    return margins_.left + fraction(value, frame_.x, panel_.x_log) * plot_width();
  }
  double pixel_y(double value) const {
    return margins_.top + (1.0 - fraction(value, frame_.y, panel_.y_log)) * plot_height();
  }
  static double fraction(double value, Range range, bool log) {
    if (log) return std::log(value / range.low) / std::log(range.high / range.low);
    return (value - range.low) / (range.high - range.low);
  }

  std::vector<std::vector<Entry>> legend_rows(const Margins& m) const {
    const double room = width_ - m.left - 8.0;
    std::vector<std::vector<Entry>> rows;
    double used = 0.0;
    for (const Entry& entry : above_) {
      const double need = entry_width(entry);
      if (rows.empty() || used + need - 16.0 > room) {
        rows.emplace_back();
        used = 0.0;
      }
      rows.back().push_back(entry);
      used += need;
    }
    return rows;
  }
  static double entry_width(const Entry& entry) {
    return swatch + 6.0 + text_width(entry.label, text_size) + 16.0;
  }

  static std::string label(std::string_view text, const std::string& where, std::string_view colour,
                           double size, std::string_view more = "", bool bold = false) {
    return fmt::format("set label {} at {} textcolor rgb '{}' font 'Sans{},{}' {}\n", quote(text),
                       where, colour, bold ? ":Bold" : "", num(size), more);
  }

  std::string axes() const;
  std::string tick_list(const std::vector<Tick>& list, Range range, bool log) const;
  std::string titles() const;
  std::string legend() const;
  std::string legend_mark(const Series& series, double x, double y) const;
  std::string end_labels() const;
  std::string marks() const;
  std::string reference(const ReferenceLine& line, std::vector<Box>& taken) const;
  std::string plots(const std::string& data_file) const;
  std::string plot_of(const Series& series, std::size_t block, const std::string& file) const;
  std::string y_column(int column) const;
  std::string y_bar(int column, int error) const;

  const Panel& panel_;
  double width_, height_;
  Frame frame_;
  std::vector<Tick> x_ticks_, y_ticks_;
  std::vector<Entry> above_, ends_;
  bool heatmap_ = false;
  Margins margins_;
  double origin_x_ = 0, origin_y_ = 0, canvas_width_ = 1, canvas_height_ = 1;
  std::vector<std::size_t> blocks_;  ///< of each series, where it has data
};

void PanelWriter::write_data(DataFile& file, const std::string& where) {
  blocks_.clear();
  for (const Series& series : panel_.series) {
    const std::string& label = label_of(series);
    const std::string heading = where + (label.empty() ? "" : ": " + label);
    std::size_t block = file.blocks;
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
  for (const Tick& tick : list)
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", quote(tick.label), num(tick.value));
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
  std::string out;
  const auto axis = [&](char name, const std::vector<Tick>& list, Range range, bool log,
                        std::string_view offset) {
    out += log ? fmt::format("set logscale {}\n", name) : fmt::format("unset logscale {}\n", name);
    out += fmt::format("set {}range [{}:{}]\n", name, num(range.low), num(range.high));
    out += fmt::format(
        "set {}tics border out nomirror norotate scale 0.45,0.25 offset {} font 'Sans,{}' "
        "textcolor rgb '{}' ({})\n",
        name, offset, num(text_size), muted, tick_list(list, range, log));
  };
  axis('x', x_ticks_, frame_.x, panel_.x_log, "0,0.35");
  axis('y', y_ticks_, frame_.y, panel_.y_log, "0.4,0");
  if (!heatmap_) return out + "unset colorbox\n";
  const double left = width_ - margins_.right + 14.0;
  return out + fmt::format(
                   "set colorbox vertical user origin {} size {:.6f}, {:.6f} noborder\n"
                   "set cbtics scale 0 font 'Sans,{}' textcolor rgb '{}' offset -0.6,0\n",
                   at(left, height_ - margins_.bottom), 12.0 / canvas_width_,
                   plot_height() / canvas_height_, num(text_size), muted);
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
      out += legend_mark(*entry.series, x, y);
      out += label(entry.label, at(x + swatch + 6.0, y), muted, text_size, "left");
      x += entry_width(entry);
    }
    y += legend_row;
  }
  return out;
}

std::string PanelWriter::legend_mark(const Series& series, double x, double y) const {
  const auto line = [&](Role role, double width, Dash dash) {
    return fmt::format("set arrow from {} to {} nohead {}\n", at(x, y), at(x + swatch, y),
                       line_style(role, width, dash));
  };
  const auto patch = [&](Role role) {
    return fmt::format("set object rectangle from {} to {} {}\n", at(x, y + 5.0),
                       at(x + swatch, y - 5.0), fill_style(role));
  };
  if (const auto* s = std::get_if<Line>(&series)) return line(s->role, s->width, s->dash);
  if (const auto* s = std::get_if<Steps>(&series)) return line(s->role, s->width, s->dash);
  if (const auto* s = std::get_if<Contour>(&series)) return line(s->role, s->width, s->dash);
  if (const auto* s = std::get_if<Points>(&series))
    return fmt::format("set label '' at {} point {}\n", at(x + 0.5 * swatch, y),
                       point_style(s->role, s->size));
  if (const auto* s = std::get_if<Histogram>(&series)) {
    const std::string top =
        fmt::format("set arrow from {} to {} nohead {}\n", at(x, y - 5.0), at(x + swatch, y - 5.0),
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
  std::string out;
  for (const End& end : found)
    out += label(end.entry->label, at(width_ - margins_.right + 7.0, end.y),
                 role_colour(role_of(*end.entry->series)), text_size, "left");
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
  } else {
    y = pixel_y(line.value) - 8.0;
  }
  const auto box = [&] {
    const double left = right_aligned ? x - width : x;
    return Box{left, left + width, y - 7.0, y + 7.0};
  };
  const auto hit = [&] {
    return std::any_of(taken.begin(), taken.end(), [&](const Box& b) { return b.overlaps(box()); });
  };
  for (int tries = 0; tries < 12 && hit(); ++tries) (vertical ? y : x) += vertical ? 14.0 : -width;
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
  if (std::holds_alternative<Heatmap>(series)) return source(block, "1:2:3") + " with image";
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

// --------------------------------------------------------------------------------- script

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

/// The whole figure as a script that draws SVG and PDF, and panels one by one.
class FigureWriter {
 public:
  FigureWriter(const Figure& figure, std::string stem) : figure_(figure), stem_(std::move(stem)) {
    data_.text = fmt::format("# {}\n", one_line(figure.title.empty() ? stem_ : figure.title));
    for (std::size_t i = 0; i < figure.panels.size(); ++i) {
      const Panel& panel = figure.panels[i];
      writers_.emplace_back(panel, figure.panel_width, figure.panel_height);
      writers_.back().write_data(
          data_, fmt::format("panel {}{}{}", i + 1, panel.title.empty() ? "" : " ", panel.title));
    }
    align_margins();
  }

  const std::string& data() const { return data_.text; }

  std::string script() {
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

  /// Draws each panel as an SVG of its own: folder/1.svg, folder/2.svg, …
  std::string panel_script(const fs::path& folder) {
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

 private:
  /// Panels above each other share their left and right edges, panels side by side their top
  /// and bottom.
  void align_margins() {
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
        if (same_column(i, j)) margins_[i].right = std::max(margins_[i].right, own[j].right);
        if (!same_row(i, j)) continue;
        margins_[i].top = std::max(margins_[i].top, own[j].top);
        margins_[i].bottom = std::max(margins_[i].bottom, own[j].bottom);
      }
  }

  const Figure& figure_;
  std::string stem_;
  DataFile data_;
  std::vector<PanelWriter> writers_;
  std::vector<Margins> margins_;
};

// ------------------------------------------------------------------------ files and process

void write_text(const fs::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw FileError(fmt::format("{}: cannot be written", path.string()));
}

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file) throw FileError(fmt::format("{}: cannot be read", path.string()));
  return text;
}

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "neyman-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr)
      throw FileError(fmt::format("{}: cannot be made: {}", name, std::strerror(errno)));
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

/// The environment with a UTF-8 locale that writes numbers with a point.
std::vector<std::string> plain_environment() {
  std::vector<std::string> out = {"LC_ALL=C.UTF-8"};
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!text.starts_with("LC_") && !text.starts_with("LANG=") && !text.starts_with("GNUTERM="))
      out.emplace_back(text);
  }
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (auto& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

struct Outcome {
  int status;          ///< of waitpid
  std::string output;  ///< standard output and error
};

/// Runs a program in a folder without a shell.
Outcome run(std::vector<std::string> arguments, const fs::path& folder) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw Error(fmt::format("draw: no pipe for {}: {}", arguments[0], std::strerror(errno)));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  auto environment = plain_environment();
  const auto argv = pointers(arguments);
  const auto envp = pointers(environment);
  pid_t child = 0;
  const int failure = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  Outcome outcome{0, {}};
  if (failure == 0) {
    std::array<char, 4096> buffer;
    for (;;) {
      const ssize_t count = read(ends[0], buffer.data(), buffer.size());
      if (count > 0)
        outcome.output.append(buffer.data(), static_cast<std::size_t>(count));
      else if (count == 0 || errno != EINTR)
        break;
    }
    while (waitpid(child, &outcome.status, 0) < 0 && errno == EINTR) {
    }
  }
  close(ends[0]);
  if (failure == ENOENT)
    throw Error(
        fmt::format("draw: program '{}' was not found, but is needed to draw figures; "
                    "install gnuplot-nox (Debian, Ubuntu) or gnuplot",
                    arguments[0]));
  if (failure != 0)
    throw Error(fmt::format("draw: program '{}' could not be started: {}", arguments[0],
                            std::strerror(failure)));
  return outcome;
}

/// What to tell of a panel to somebody who cannot see it.
std::string describe_panel(const Panel& panel) {
  std::string text = panel.y_label.empty() ? "" : panel.y_label;
  if (!panel.x_label.empty()) text += (text.empty() ? "" : " against ") + panel.x_label;
  std::set<std::string> seen;
  std::string shown;
  for (const Series& series : panel.series)
    if (!label_of(series).empty() && seen.insert(label_of(series)).second)
      shown += (shown.empty() ? "" : ", ") + label_of(series);
  if (!shown.empty()) text += (text.empty() ? "" : ": ") + shown;
  return text.empty() ? "A panel" : text;
}

}  // namespace

DrawnFigure draw(const Figure& figure, const fs::path& folder, const DrawConfig& config) {
  check_figure(figure);
  const std::string stem = file_stem(figure.name);
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw FileError(fmt::format("{}: cannot be made: {}", folder.string(), error.message()));

  DrawnFigure drawn;
  drawn.name = stem;
  drawn.title = figure.title;
  drawn.caption = figure.caption;
  drawn.svg = folder / (stem + ".svg");
  drawn.pdf = folder / (stem + ".pdf");
  drawn.script = folder / (stem + ".gp");
  drawn.data = folder / (stem + ".dat");
  drawn.columns = figure.columns;
  drawn.panel_width = figure.panel_width;

  FigureWriter writer(figure, stem);
  write_text(drawn.data, writer.data());
  write_text(drawn.script, writer.script());
  const TemporaryFolder temporary;
  std::vector<std::string> arguments = {config.program, "-d", stem + ".gp"};
  const bool several = figure.panels.size() > 1;
  if (several) {
    const fs::path panels = temporary.path() / "panels.gp";
    write_text(panels, writer.panel_script(temporary.path()));
    arguments.push_back(panels.string());
  }
  // Files of an earlier run must not pass for this one's.
  fs::remove(drawn.svg, error);
  fs::remove(drawn.pdf, error);
  const Outcome outcome = run(arguments, folder);
  const bool complete = fs::exists(drawn.svg) && fs::exists(drawn.pdf);
  if (!WIFEXITED(outcome.status) || WEXITSTATUS(outcome.status) != 0 || !complete) {
    std::string message = outcome.output;
    message.erase(message.find_last_not_of(" \n\t") + 1);
    throw Error(fmt::format("draw: {} could not draw {}: {}", config.program, drawn.script.string(),
                            message.empty() ? "no message" : message));
  }

  const std::string& name = figure.title.empty() ? stem : figure.title;
  const std::string svg =
      adapt_svg(read_text(drawn.svg), "figure:" + stem + ":0", name, figure.caption);
  write_text(drawn.svg, svg);
  if (!several) {
    drawn.panels.push_back(svg);
    return drawn;
  }
  for (std::size_t i = 0; i < figure.panels.size(); ++i) {
    const Panel& panel = figure.panels[i];
    drawn.panels.push_back(
        adapt_svg(read_text(temporary.path() / fmt::format("{}.svg", i + 1)),
                  fmt::format("figure:{}:{}", stem, i + 1),
                  panel.title.empty() ? fmt::format("{}, panel {}", name, i + 1) : panel.title,
                  describe_panel(panel)));
  }
  return drawn;
}

}  // namespace neyman::reports
