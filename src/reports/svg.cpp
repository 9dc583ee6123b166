#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

#include "neyman/core/error.hpp"
#include "neyman/reports/gnuplot.hpp"
#include "neyman/reports/html.hpp"
#include "reports/chrome.hpp"

// gnuplot's SVG is regular: a tree of groups with paths, polygons, texts and marks. This walks
// through its tags once and writes the tree again without what a page cannot use.
namespace neyman::reports {

namespace {

struct Attribute {
  std::string name, value;
};

struct Tag {
  std::string name;
  std::vector<Attribute> attributes;
  bool closing = false, empty = false;

  std::string_view get(std::string_view key) const {
    for (const auto& attribute : attributes)
      if (attribute.name == key) return attribute.value;
    return {};
  }
};

[[noreturn]] void broken(std::string_view what) {
  throw Error(fmt::format("adapt_svg: svg is broken ({}), but must be gnuplot's SVG", what));
}

bool blank(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

/// Parses the inside of <...>.
Tag parse_tag(std::string_view text) {
  Tag tag;
  if (!text.empty() && text.front() == '/') {
    tag.closing = true;
    text.remove_prefix(1);
  }
  if (!text.empty() && text.back() == '/') {
    tag.empty = true;
    text.remove_suffix(1);
  }
  std::size_t at = 0;
  const auto skip = [&] {
    while (at < text.size() && blank(text[at])) ++at;
  };
  while (at < text.size() && !blank(text[at])) tag.name += text[at++];
  for (skip(); at < text.size(); skip()) {
    Attribute attribute;
    while (at < text.size() && text[at] != '=' && !blank(text[at])) attribute.name += text[at++];
    skip();
    if (at >= text.size() || text[at] != '=') broken("an attribute without value");
    ++at;
    skip();
    if (at >= text.size() || (text[at] != '"' && text[at] != '\'')) broken("a value not quoted");
    const std::size_t end = text.find(text[at], at + 1);
    if (end == std::string_view::npos) broken("a quote not closed");
    attribute.value = text.substr(at + 1, end - at - 1);
    at = end + 1;
    tag.attributes.push_back(std::move(attribute));
  }
  return tag;
}

/// "rgb( 31,  35, 40)" or "#1f2328" as "#1f2328".
std::optional<std::string> hex_colour(std::string_view value) {
  if (value.size() == 7 && value.front() == '#') return std::string(value);
  int r = 0, g = 0, b = 0;
  if (std::sscanf(std::string(value).c_str(), "rgb( %d , %d , %d )", &r, &g, &b) != 3)
    return std::nullopt;
  return fmt::format("#{:02x}{:02x}{:02x}", r, g, b);
}

std::string tidy(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (!blank(c))
      out += c;
    else if (!out.empty() && out.back() != ' ')
      out += ' ';
  }
  if (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

const PaletteColour* find_colour(std::string_view light) {
  for (const auto& colour : palette)
    if (colour.light == light) return &colour;
  return nullptr;
}

/// Writes one element's attributes; colours of the palette get a class beside the light colour.
class Writer {
 public:
  explicit Writer(std::string& out, std::string_view name) : out_(out) {
    out_ += '<';
    out_ += name;
  }

  void add(std::string_view name, std::string_view value) {
    out_ += fmt::format(" {}=\"{}\"", name, tidy(value));
  }
  void add_colour(std::string_view name, std::string_view value) {
    const auto hex = hex_colour(value);
    if (!hex) return add(name, value);
    add(name, *hex);
    if (const PaletteColour* colour = find_colour(*hex)) {
      if (!classes_.empty()) classes_ += ' ';
      classes_ += fmt::format("n{}-{}", name == "stroke" ? 's' : 'f', colour->name);
    }
  }
  void close(bool empty) {
    if (!classes_.empty()) add("class", classes_);
    out_ += empty ? "/>" : ">";
  }

 private:
  std::string& out_;
  std::string classes_;
};

class Adapter {
 public:
  Adapter(std::string_view svg, std::string_view id, std::string_view title,
          std::string_view description)
      : in_(svg), id_(id), title_(title), description_(description) {}

  std::string run() {
    while (at_ < in_.size()) {
      if (in_[at_] != '<') {
        text();
        continue;
      }
      const std::size_t end = in_.find('>', at_);
      if (end == std::string_view::npos) broken("a tag not closed");
      const std::string_view inside = in_.substr(at_ + 1, end - at_ - 1);
      at_ = end + 1;
      if (inside.starts_with('?') || inside.starts_with('!')) continue;
      element(parse_tag(inside));
    }
    if (!open_.empty() || out_.empty()) broken("elements not closed");
    return std::move(out_);
  }

 private:
  struct Open {
    std::string name;
    std::size_t start;  ///< of its tag in the output
    bool used = false;  ///< has content, so it stays
  };
  struct Mark {
    double x, y, radius;
    std::string colour;
  };

  void text() {
    const std::size_t end = std::min(in_.find('<', at_), in_.size());
    if (!open_.empty() && (open_.back().name == "text" || open_.back().name == "tspan")) {
      // gnuplot escapes & unless a character reference seems to follow; texts have none.
      for (std::string_view rest = in_.substr(at_, end - at_); !rest.empty();) {
        const std::size_t next = std::min(rest.find("&#x"), rest.size());
        out_ += rest.substr(0, next);
        if (next < rest.size()) out_ += "&amp;#x";
        rest.remove_prefix(std::min(next + 3, rest.size()));
      }
      use();
    }
    at_ = end;
  }

  void use() {
    for (auto& open : open_) open.used = true;
  }

  void element(const Tag& tag) {
    if (tag.name != "use") flush_marks();
    if (tag.closing) return close(tag.name);
    if (tag.name == "title" || tag.name == "desc" || tag.name == "defs") return skip(tag);
    const std::size_t start = out_.size();
    if (tag.name == "svg")
      root(tag);
    else if (tag.name == "use")
      mark(tag);
    else if (tag.name == "rect" && tag.get("fill") == "none")
      return;  // the empty canvas
    else
      copy(tag);
    if (tag.empty)
      use();
    else
      open_.push_back({tag.name, start});
  }

  void close(std::string_view name) {
    if (open_.empty() || open_.back().name != name) broken("tags that do not match");
    const Open open = open_.back();
    open_.pop_back();
    if (open.used)
      // Between pieces of a text a line break would be a space.
      out_ += fmt::format("</{}>{}", name, name == "tspan" ? "" : "\n");
    else
      out_.resize(open.start);
  }

  void skip(const Tag& tag) {
    if (tag.empty) return;
    const std::string end = fmt::format("</{}>", tag.name);
    const std::size_t found = in_.find(end, at_);
    if (found == std::string_view::npos) broken("elements not closed");
    at_ = found + end.size();
  }

  void root(const Tag& tag) {
    const std::string_view box = tag.get("viewBox");
    double x = 0, y = 0, width = 0, height = 0;
    if (std::sscanf(std::string(box).c_str(), "%lf %lf %lf %lf", &x, &y, &width, &height) != 4)
      broken("no viewBox");
    out_ += fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"{}\" width=\"100%\" "
        "style=\"max-width:{}px;height:auto\" class=\"neyman-figure\" role=\"img\" "
        "aria-labelledby=\"{}-title {}-desc\" font-family=\"{}\" fill=\"none\">\n",
        tidy(box), width, id_, id_, font_stack);
    out_ += fmt::format("<title id=\"{0}-title\">{1}</title>\n<desc id=\"{0}-desc\">{2}</desc>\n",
                        id_, escape_html(title_), escape_html(description_));
    out_ += fmt::format("<style>{}</style>\n", palette_css());
  }

  /// A dot: <use href='#gpPt6' transform='translate(x,y) scale(r)' color='rgb(…)'/>.
  void mark(const Tag& tag) {
    double x = 0, y = 0, radius = 0;
    if (std::sscanf(std::string(tag.get("transform")).c_str(), "translate(%lf,%lf) scale(%lf)", &x,
                    &y, &radius) != 3)
      broken("a mark without place");
    if (radius == 0.0) return;
    const std::string_view colour = tag.get("color");
    if (!marks_.empty() && (marks_.front().radius != radius || marks_.front().colour != colour))
      flush_marks();
    marks_.push_back({x, y, radius, std::string(colour)});
  }

  /// A few dots as circles; many as one path of points with round ends, in a tenth of the space.
  void flush_marks() {
    constexpr std::size_t many = 60;
    if (marks_.size() >= many) {
      std::string d;
      for (const Mark& mark : marks_) d += fmt::format("M{:.1f},{:.1f}h0", mark.x, mark.y);
      Writer writer(out_, "path");
      writer.add("d", d);
      writer.add_colour("stroke", marks_.front().colour);
      writer.add("stroke-width", fmt::format("{:.2f}", 2.0 * marks_.front().radius));
      writer.add("stroke-linecap", "round");
      writer.close(true);
    } else {
      for (const Mark& mark : marks_) {
        Writer writer(out_, "circle");
        writer.add("cx", fmt::format("{:.2f}", mark.x));
        writer.add("cy", fmt::format("{:.2f}", mark.y));
        writer.add("r", fmt::format("{:.2f}", mark.radius));
        writer.add("stroke", "none");
        writer.add_colour("fill", mark.colour);
        writer.close(true);
      }
    }
    marks_.clear();
  }

  void copy(const Tag& tag) {
    Writer writer(out_, tag.name);
    for (const auto& [name, value] : tag.attributes) {
      if (name == "id" || name == "class" || name == "color" || name == "shape-rendering") continue;
      if (name == "stroke-linecap" || name == "stroke-linejoin") {
        writer.add(name, name == "stroke-linejoin" ? "round" : value);
      } else if (name == "stroke" || name == "fill") {
        if (value == "currentColor" || (tag.name == "g" && value == "none" && name == "fill"))
          continue;
        writer.add_colour(name, value);
      } else if (name == "font-family") {
        if (value.find(":Bold") != std::string::npos && tag.get("font-weight").empty())
          writer.add("font-weight", "600");
      } else if (name == "xlink:href") {
        writer.add("href", value);
      } else {
        writer.add(name, value);
      }
    }
    // The many small pieces of a colour scale must not show seams.
    if (tag.name == "polygon" && !find_colour(hex_colour(tag.get("fill")).value_or("")))
      writer.add("shape-rendering", "crispEdges");
    if (tag.name == "image") writer.add("style", "image-rendering:pixelated");
    writer.close(tag.empty);
    if (tag.empty) out_ += '\n';
  }

  std::string_view in_, id_, title_, description_;
  std::string out_;
  std::size_t at_ = 0;
  std::vector<Open> open_;
  std::vector<Mark> marks_;  ///< dots that follow each other, not yet written
};

}  // namespace

/// Light colours are in the attributes; these rules change them on a dark screen. A figure that
/// is a document of its own brings its ground along.
std::string palette_css() {
  std::string css = fmt::format("svg:root{{background:{}}}", light_ground);
  css += "@media screen and (prefers-color-scheme:dark){";
  css += fmt::format("svg:root{{background:{}}}", dark_ground);
  for (const auto& colour : palette)
    css += fmt::format(".ns-{0}{{stroke:{1}}}.nf-{0}{{fill:{1}}}", colour.name, colour.dark);
  return css + "}";
}

std::string adapt_svg(std::string_view svg, std::string_view id, std::string_view title,
                      std::string_view description) {
  return Adapter(svg, id, title, description).run();
}

}  // namespace neyman::reports
