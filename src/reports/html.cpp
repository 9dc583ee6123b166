#include "neyman/reports/html.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <system_error>

#include "neyman/core/check.hpp"
#include "neyman/data/atomic_file.hpp"
#include "neyman/reports/terminal.hpp"
#include "reports/chrome.hpp"
#include "reports/subscripts.hpp"
#include "reports/utf8.hpp"
#include "reports/words.hpp"

namespace neyman::reports {

namespace fs = std::filesystem;

namespace {

// The page is written so that it is well-formed XML too.
constexpr std::string_view style = R"css(
:root{color-scheme:light dark;--ground:#fff;--card:#f6f8fa;--ink:#1f2328;--muted:#57606a;
--line:#d8dee4;--link:#0860ca;--pass:#0a6b3d;--pass-bg:#e1f5e9;--warn:#7a4b00;--warn-bg:#fff1d2;
--fail:#a1160a;--fail-bg:#ffe6e2;--info:#0a558c;--info-bg:#e2f0fb}
@media screen and (prefers-color-scheme:dark){:root{--ground:#14171a;--card:#1c2126;--ink:#e8edf2;
--muted:#a5adb6;--line:#333b43;--link:#6cb6ff;--pass:#6fdca4;--pass-bg:#12321f;--warn:#f3c465;
--warn-bg:#382a0c;--fail:#ff9f94;--fail-bg:#421a15;--info:#84c8f7;--info-bg:#102d45}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%;scroll-behavior:smooth}
body{margin:0;background:var(--ground);color:var(--ink);font-size:1.0625rem;line-height:1.6;
overflow-wrap:break-word}
main,.top,.end{max-width:78rem;margin:0 auto;padding:0 clamp(1rem,4vw,2.5rem)}
.top{padding-top:clamp(2rem,6vw,4rem)}
h1{font-size:clamp(1.8rem,1.3rem + 2.2vw,2.7rem);line-height:1.15;letter-spacing:-.02em;
font-weight:680;margin:0;text-wrap:balance}
.subtitle{font-size:1.18rem;line-height:1.5;margin:.8rem 0 0;max-width:56rem;text-wrap:pretty}
h2{font-size:1.5rem;line-height:1.25;letter-spacing:-.012em;font-weight:650;margin:3.25rem 0 .9rem;
padding-top:1.1rem;border-top:1px solid var(--line)}
h3{font-size:1.12rem;font-weight:650;margin:2rem 0 .6rem}
p{max-width:52rem;margin:.8rem 0}
a{color:var(--link);text-underline-offset:.18em;text-decoration-thickness:.06em}
:focus-visible{outline:2px solid var(--link);outline-offset:2px;border-radius:3px}
code,pre{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;
font-size:.88em}
code{background:var(--card);border-radius:4px;padding:.12em .35em}
pre{background:var(--card);border-radius:8px;padding:.9rem 1.1rem;overflow-x:auto;line-height:1.5;
margin:1rem 0}
nav{margin-top:1.6rem}
nav ul{list-style:none;display:flex;flex-wrap:wrap;gap:.35rem 1.3rem;margin:0;padding:0;
font-size:.95rem}
nav a{text-decoration:none}nav a:hover{text-decoration:underline}
.headlines{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,24rem),1fr));
gap:1rem;margin:1.8rem 0}
.headline{background:var(--card);border-radius:12px;padding:1.15rem 1.35rem 1.05rem}
.headline .label{color:var(--muted);font-size:.92rem;margin:0}
.headline .label::before{content:"";display:inline-block;width:.68em;height:.68em;
border-radius:50%;background:var(--role);margin-right:.5em}
.headline .value{font-size:clamp(1.5rem,1.1rem + 1.6vw,2.05rem);font-weight:640;line-height:1.25;
letter-spacing:-.015em;font-variant-numeric:tabular-nums;margin:.15rem 0 .5rem}
.headline .value{overflow-wrap:normal}
.errors{display:inline-flex;flex-direction:column;vertical-align:middle;font-size:.52em;
line-height:1.2;letter-spacing:0;text-align:right}
.headline .bar{display:block;width:100%;max-width:25rem;height:auto;margin:.2rem 0 .3rem}
.headline .intervals{color:var(--muted);font-size:.88rem;margin:0;
font-variant-numeric:tabular-nums;display:flex;flex-wrap:wrap;gap:0 1.2rem}
.headline .note{color:var(--muted);font-size:.88rem;margin:.3rem 0 0}
.facts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,9.5rem),1fr));
gap:.9rem 1.4rem;margin:1.2rem 0}
.facts div{min-width:0}.facts .long{grid-column:span 2}.facts .longest{grid-column:1/-1}
@media screen and (max-width:24rem){.facts .long{grid-column:auto}}
dt{color:var(--muted);font-size:.88rem;line-height:1.35}
dd{margin:.1rem 0 0;font-variant-numeric:tabular-nums}
.scroll{overflow-x:auto;margin:1.2rem 0}
table{border-collapse:collapse;font-size:.95rem;line-height:1.4;font-variant-numeric:tabular-nums;
min-width:min(100%,50rem)}
caption{text-align:left;color:var(--muted);font-size:.92rem;padding-bottom:.5rem}
th,td{padding:.45rem 1.1rem .45rem 0;text-align:left;vertical-align:top;
border-bottom:1px solid var(--line)}
th:last-child,td:last-child{padding-right:0}
thead th{font-weight:600;border-bottom:1.5px solid var(--muted);vertical-align:bottom}
tbody th{font-weight:400}
sub{font-size:.72em;line-height:0;vertical-align:-.25em;white-space:nowrap}
.n{text-align:right;white-space:nowrap}thead .n{white-space:normal}
.badge{display:inline-block;font-size:.8rem;font-weight:600;line-height:1;letter-spacing:.01em;
padding:.34em .62em .36em;border-radius:99px;white-space:nowrap}
.pass{color:var(--pass);background:var(--pass-bg)}.warn{color:var(--warn);background:var(--warn-bg)}
.fail{color:var(--fail);background:var(--fail-bg)}.info{color:var(--info);background:var(--info-bg)}
.note-box{border-radius:10px;padding:.75rem 1.1rem;margin:1.1rem 0}
.note-box strong{margin-right:.4em}
.note-box code{background:none;padding:0}
.note-box ul{margin:.35rem 0 0;padding-left:1.2rem}.note-box li{margin:.2rem 0}
main>ul,section>ul{max-width:56rem;padding-left:1.2rem}section>ul li{margin:.5rem 0}
.verdicts{margin:1.4rem 0}.verdicts p{margin:0 0 .55rem}
.verdicts ul{list-style:none;display:flex;flex-wrap:wrap;gap:.5rem .6rem;margin:0;padding:0}
.verdicts li{font-size:.92rem;line-height:1.3;border:1px solid var(--line);border-radius:99px;
padding:.22rem .8rem .22rem .26rem;font-variant-numeric:tabular-nums}
.verdicts a{color:inherit;text-decoration:none}.verdicts a:hover{text-decoration:underline}
.verdicts .badge{margin-right:.25em}.verdicts small{color:var(--muted);font-size:.88em}
figure{margin:1.8rem 0 2.4rem;scroll-margin-top:1rem;display:flex;flex-wrap:wrap;gap:.7rem 2.2rem;
align-items:center}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,27rem),1fr));gap:0 2.4rem;
align-items:start}.figures>*{min-width:0}.figures .wide{grid-column:1/-1}
.panels{display:grid;gap:1.4rem 1.6rem;min-width:0;max-width:100%;overflow-x:auto;
grid-template-columns:repeat(var(--columns),minmax(0,1fr));flex:0 1 var(--width)}
.wide .panels{flex:1 1 100%}
.panels>*{min-width:0}
.panels svg{display:block;max-width:none!important;min-width:var(--least)}
figcaption{color:var(--muted);font-size:.95rem;line-height:1.5;flex:1 1 20rem;min-width:min(100%,20rem)}
.wide figcaption{flex-basis:100%}figcaption>*{max-width:60rem}
figcaption b{color:var(--ink);font-weight:620}
.files{font-size:.86rem;margin-top:.25rem;display:flex;flex-wrap:wrap;gap:0 1rem}
.end{color:var(--muted);font-size:.88rem;padding-top:1rem;padding-bottom:3rem}
.end dl{border-top:1px solid var(--line);padding-top:1.2rem;margin-top:3.5rem}
.end dd{color:var(--ink)}
@media screen and (max-width:48rem){.panels{grid-template-columns:minmax(0,1fr)}
body{font-size:1rem}h2{margin-top:2.5rem}}
@media screen and (max-width:40rem){.stack table,.stack caption,.stack tbody,.stack tr,.stack th{
display:block}.stack thead{position:absolute;width:1px;height:1px;overflow:hidden;
clip-path:inset(50%);white-space:nowrap}.stack tbody{border-top:1.5px solid var(--muted)}
.stack tr{border-bottom:1px solid var(--line);padding:.55rem 0 .6rem}
.stack th,.stack td{border:0;padding:.08rem 0}.stack tbody th{font-weight:620}
.stack td{display:flex;justify-content:space-between;gap:1.2rem;text-align:right;
white-space:normal}.stack td:empty{display:none}
.stack td::before{content:attr(data-label);color:var(--muted);text-align:left;flex:none;
max-width:60%}.stack .text{display:block;text-align:left;padding-top:.25rem}
.stack .text::before{content:none}}
@media print{:root{font-size:9.5pt}.panels svg{min-width:0}figure{margin:1.2rem 0 1.6rem}
figure:not(.wide) .panels{max-width:32rem}.figures{grid-template-columns:1fr 1fr;gap:0 1.6rem}
.headlines{grid-template-columns:1fr 1fr}.scroll{overflow:visible}table{font-size:.88rem;min-width:0}
th,td{padding-right:.8rem}thead th{white-space:normal;vertical-align:bottom}tr{break-inside:avoid}
h2{margin-top:2rem}pre{white-space:pre-wrap}@page{margin:16mm}nav,.files{display:none}
main,.top,.end{max-width:none;padding:0}.top{padding-top:0}
figure,.headline,.note-box,.facts div{break-inside:avoid}h2,h3{break-after:avoid}
*{-webkit-print-color-adjust:exact;print-color-adjust:exact}a{color:inherit}}
)css";

/// Escaped, with indices below the line.
std::string indexed(std::string_view text) {
  std::string out;
  for (const TextPiece& piece : text_pieces(text))
    out += piece.low ? "<sub>" + escape_html(piece.text) + "</sub>" : escape_html(piece.text);
  return out;
}

/// The same, with `code` between backticks.
std::string running(std::string_view text) {
  std::string out;
  for (;;) {
    const std::size_t open = text.find('`');
    const std::size_t shut = open == text.npos ? text.npos : text.find('`', open + 1);
    if (shut == text.npos) return out + indexed(text);
    out += indexed(text.substr(0, open));
    out += "<code>" + escape_html(text.substr(open + 1, shut - open - 1)) + "</code>";
    text.remove_prefix(shut + 1);
  }
}

std::string_view verdict_class(Verdict verdict) {
  switch (verdict) {
    case Verdict::pass:
      return "pass";
    case Verdict::warn:
      return "warn";
    case Verdict::fail:
      return "fail";
    case Verdict::info:
      return "info";
  }
  return "info";
}

// Words and signs as well as colours.
std::string badge(Verdict verdict) {
  static const std::map<Verdict, std::string_view> words = {{Verdict::pass, "✓ pass"},
                                                            {Verdict::warn, "! warning"},
                                                            {Verdict::fail, "✕ fail"},
                                                            {Verdict::info, "i note"}};
  return fmt::format("<span class=\"badge {}\">{}</span>", verdict_class(verdict),
                     words.at(verdict));
}

std::string definition_list(std::string_view css, const std::vector<Fact>& facts) {
  std::string out = fmt::format("<dl class=\"{}\">\n", css);
  for (const Fact& fact : facts)
    out += fmt::format("<div{}><dt>{}</dt><dd>{}</dd></div>\n",
                       fact.value.size() > 60   ? " class=\"longest\""
                       : fact.value.size() > 26 ? " class=\"long\""
                                                : "",
                       indexed(fact.name), running(fact.value));
  return out + "</dl>\n";
}

std::string base64(std::string_view bytes) {
  static constexpr std::string_view letters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k)
      out += i + k <= bytes.size() ? letters[group >> (18 - 6 * k) & 63u] : '=';
  }
  return out;
}

/// A link that saves `content`, which stands inside the page.
std::string content_link(const std::string& name, std::string_view type, std::string_view content,
                         std::string_view words) {
  return fmt::format("<a download=\"{}\" href=\"data:{};base64,{}\">{}</a>\n", escape_html(name),
                     type, base64(content), words);
}

/// A link to a file in the folder of figures beside the page; empty where there is none.
std::string file_link(const fs::path& path, std::string_view words) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return {};
  const std::string name = path.filename().string();
  const std::string target = (path.parent_path().filename() / path.filename()).generic_string();
  return fmt::format("<a download=\"{}\" href=\"{}\">{}</a>\n", escape_html(name),
                     escape_html(target), words);
}

std::string pdf_link(const DrawnFigure& figure) {
  std::error_code error;
  const auto size = fs::file_size(figure.pdf, error);
  if (error) return {};
  if (size > Page::embed_limit) return file_link(figure.pdf, "PDF");
  return content_link(figure.pdf.filename().string(), "application/pdf",
                      read_file(figure.pdf.string()), "PDF");
}

std::string data_link(const DrawnFigure& figure) {
  if (figure.csv.empty() || figure.csv.size() > Page::embed_limit)
    return file_link(figure.data, "Data");
  return content_link(figure.name + ".csv", "text/csv;charset=utf-8", figure.csv, "Data (CSV)");
}

/// A figure's SVG without its style rules: the page has them once.
std::string without_style(std::string svg) {
  const std::size_t open = svg.find("<style>"), shut = svg.find("</style>");
  if (open != svg.npos && shut != svg.npos) svg.erase(open, shut + 8 - open);
  return svg;
}

// -------------------------------------------------------------------------------- headlines

void check_headline(const Headline& headline) {
  check_finite("headlines", "estimate", headline.estimate);
  check_non_negative("headlines", "error_low", {&headline.error_low, 1});
  check_non_negative("headlines", "error_high", {&headline.error_high, 1});
  for (const auto& interval : headline.intervals) {
    const Range range = interval.range;
    check_in_range("headlines", "interval.level", interval.level, 0.0, 1.0);
    check_finite("headlines", "interval.low", range.low);
    check_finite("headlines", "interval.high", range.high);
    if (range.low > range.high)
      fail_argument("headlines", "interval.low", fmt::format("{}", range.low),
                    fmt::format("at most high ({})", range.high));
  }
  if (headline.truth) check_finite("headlines", "truth", *headline.truth);
}

/// All that the bars of a parameter must show, with a margin.
Range bar_range(const std::vector<Headline>& headlines, const std::string& parameter) {
  Range range{0, 0};
  bool first = true;
  const auto add = [&](double value) {
    range = first ? Range{value, value}
                  : Range{std::min(range.low, value), std::max(range.high, value)};
    first = false;
  };
  for (const Headline& h : headlines) {
    if (h.parameter != parameter) continue;
    add(h.estimate);
    if (h.intervals.empty()) {
      add(h.estimate - h.error_low);
      add(h.estimate + h.error_high);
    }
    for (const auto& interval : h.intervals) {
      add(interval.range.low);
      add(interval.range.high);
    }
    if (h.truth) add(*h.truth);
  }
  const double size = range.high - range.low;
  const double pad = size > 0.0 ? 0.1 * size : std::max(std::abs(range.low), 1.0);
  return {range.low - pad, range.high + pad};
}

std::vector<Range> pieces_of(const LevelRange& interval) {
  return interval.pieces.empty() ? std::vector<Range>{interval.range} : interval.pieces;
}

std::string bar(const Headline& h, Range range, std::string_view words) {
  constexpr double width = 320.0, middle = 12.0, foot = 24.0;
  const auto x = [&](double value) {
    return (value - range.low) / (range.high - range.low) * width;
  };
  const std::string_view role = role_name(h.role), colour = role_colour(h.role);
  std::string out = fmt::format(
      "<svg class=\"bar\" viewBox=\"0 0 {} 42\" role=\"img\" aria-label=\"{}\" fill=\"none\" "
      "font-size=\"11\">\n",
      width, escape_html(words));
  out += fmt::format("<path d=\"M0,{0} H{1}\" stroke=\"{2}\" class=\"ns-axis\"/>\n", foot, width,
                     chrome_colour("axis"));
  for (const Tick& tick : ticks(range, false, 4)) {
    out += fmt::format("<path d=\"M{0:.1f},{1} v4\" stroke=\"{2}\" class=\"ns-axis\"/>",
                       x(tick.value), foot, chrome_colour("axis"));
    if (x(tick.value) < 12.0 || x(tick.value) > width - 12.0) continue;
    out += fmt::format(
        "<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\" fill=\"{}\" "
        "class=\"nf-muted\">{}</text>\n",
        x(tick.value), foot + 15.0, muted, tick.label);
  }
  const auto stretch = [&](Range interval, double thickness, double opacity) {
    out += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" rx=\"{}\" fill=\"{}\" "
        "fill-opacity=\"{}\" class=\"nf-{}\"/>\n",
        x(interval.low), middle - 0.5 * thickness,
        std::max(x(interval.high) - x(interval.low), 1.0), thickness, 0.5 * thickness, colour,
        opacity, role);
  };
  // The widest first, each thicker and darker than the one around it.
  for (std::size_t i = h.intervals.size(); i-- > 1;)
    for (const Range& piece : pieces_of(h.intervals[i]))
      stretch(piece, i == 1 ? 5.0 : 2.0, i == 1 ? 0.35 : 0.55);
  if (h.intervals.empty())
    stretch({h.estimate - h.error_low, h.estimate + h.error_high}, 9.0, 0.55);
  else
    for (const Range& piece : pieces_of(h.intervals.front())) stretch(piece, 9.0, 0.55);
  if (h.truth)
    out += fmt::format(
        "<path d=\"M{:.1f},1 V{}\" stroke=\"{}\" stroke-width=\"1.5\" stroke-dasharray=\"3 2\" "
        "class=\"ns-ink\"/>\n",
        x(*h.truth), foot, ink);
  out += fmt::format("<circle cx=\"{:.1f}\" cy=\"{}\" r=\"5\" fill=\"{}\" class=\"nf-{}\"/>\n",
                     x(h.estimate), middle, colour, role);
  return out + "</svg>\n";
}

/// A measurement with two different errors one above the other.
std::string stacked_errors(const std::string& value) {
  static constexpr std::string_view between = " −";
  const std::size_t high = value.find(" +");
  const std::size_t low = high == value.npos ? value.npos : value.find(between, high);
  if (low == value.npos) return value;
  const std::size_t end = std::min(value.find(')', low), value.size());
  return fmt::format("{} <span class=\"errors\"><span>{}</span> <span>{}</span></span>{}",
                     value.substr(0, high), value.substr(high + 1, low - high - 1),
                     value.substr(low + 1, end - low - 1), value.substr(end));
}

std::string headline_card(const Headline& h, Range range) {
  const bool known = h.error_low > 0.0 || h.error_high > 0.0;
  const std::string value = known ? format_measurement(h.estimate, h.error_low, h.error_high)
                                  : format_number(h.estimate, 6);
  std::string intervals;
  for (const auto& interval : h.intervals) {
    Interval all{interval.level, interval.range.low, interval.range.high};
    for (const Range& piece : pieces_of(interval)) all.pieces.push_back({piece.low, piece.high});
    intervals +=
        fmt::format("<span>{}\u00a0% {}</span>\n", format_number(100.0 * interval.level, 6),
                    interval_words(all, 0.5 * (h.error_low + h.error_high)));
  }
  if (h.truth)
    intervals += fmt::format("<span>truth {} (dashed)</span>\n", format_number(*h.truth, 6));
  std::string out = fmt::format(
      "<div class=\"headline\" style=\"--role:var(--role-{})\">\n<p class=\"label\">{}</p>\n"
      "<p class=\"value\">{} = {}</p>\n",
      role_name(h.role), indexed(h.label), indexed(h.parameter), stacked_errors(value));
  out += bar(h, range, fmt::format("{}: {} = {}", h.label, h.parameter, value));
  if (!intervals.empty()) out += "<p class=\"intervals\">" + intervals + "</p>\n";
  if (!h.note.empty()) out += "<p class=\"note\">" + running(h.note) + "</p>\n";
  return out + "</div>\n";
}

// ----------------------------------------------------------------------------------- tables

struct Column {
  std::string name;
  bool numeric = false;
  bool text = false;  // sentences, which need no name
};

/// Cells are HTML. On a narrow screen the cells of a row stand one below the other, each with the
/// name of its column, where there are more than a phone is wide enough for.
std::string table_html(const std::string& label, const std::string& caption,
                       const std::vector<Column>& columns,
                       const std::vector<std::vector<std::string>>& rows) {
  constexpr std::size_t narrow = 3;  // columns
  const bool stack = columns.size() > narrow;
  // A display other than that of a table takes its meaning away; roles give it back.
  const auto role = [&](const char* name) {
    return stack ? fmt::format(" role=\"{}\"", name) : std::string();
  };
  std::string out = fmt::format(
      "<div class=\"scroll{}\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table{}>\n",
      stack ? " stack" : "", escape_html(label), role("table"));
  if (!caption.empty()) out += fmt::format("<caption>{}</caption>\n", running(caption));
  out += fmt::format("<thead{}><tr{}>", role("rowgroup"), role("row"));
  for (const auto& column : columns)
    out += fmt::format("<th scope=\"col\"{}{}>{}</th>", column.numeric ? " class=\"n\"" : "",
                       role("columnheader"), indexed(column.name));
  out += fmt::format("</tr></thead>\n<tbody{}>\n", role("rowgroup"));
  for (const auto& row : rows) {
    out += fmt::format("<tr{}>", role("row"));
    for (std::size_t c = 0; c < row.size(); ++c) {
      const auto& column = columns[c];
      if (c == 0 && !column.numeric) {
        out += fmt::format("<th scope=\"row\"{}>{}</th>", role("rowheader"), row[c]);
        continue;
      }
      const char* css = column.numeric ? " class=\"n\"" : column.text ? " class=\"text\"" : "";
      out += fmt::format("<td{}{}{}>{}</td>", css, role("cell"),
                         stack ? fmt::format(" data-label=\"{}\"", escape_html(column.name)) : "",
                         row[c]);
    }
    out += "</tr>\n";
  }
  return out + "</tbody>\n</table></div>\n";
}

std::string role_variables() {
  std::string light, dark;
  for (const auto& colour : palette) {
    light += fmt::format("--role-{}:{};", colour.name, colour.light);
    dark += fmt::format("--role-{}:{};", colour.name, colour.dark);
  }
  return fmt::format(":root{{{}}}\n@media screen and (prefers-color-scheme:dark){{:root{{{}}}}}\n",
                     light, dark);
}

}  // namespace

std::string escape_html(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Utf8Character character = decode_utf8(text);
    const char c = text.front();
    if (!character.valid)
      out += "\ufffd";
    else if (character.bytes > 1)
      out += text.substr(0, character.bytes);
    else if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (c == '\'')
      out += "&#39;";
    else if (c == '\n' || c == '\t' || (c >= 0x20 && c != 0x7f))
      out += c;
    text.remove_prefix(character.bytes);
  }
  return out;
}

Page::Page(std::string title, std::string subtitle)
    : title_(std::move(title)), subtitle_(std::move(subtitle)) {}

std::string Page::unique_id(std::string_view text) {
  std::string id;
  for (const char c : text) {
    if (c >= 'A' && c <= 'Z')
      id += static_cast<char>(c - 'A' + 'a');
    else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
      id += c;
    else if (!id.empty() && id.back() != '-')
      id += '-';
  }
  while (!id.empty() && id.back() == '-') id.pop_back();
  if (id.empty()) id = "section";
  std::string candidate = id;
  for (int i = 2; std::find(ids_.begin(), ids_.end(), candidate) != ids_.end(); ++i)
    candidate = fmt::format("{}-{}", id, i);
  ids_.push_back(candidate);
  return candidate;
}

Page& Page::section(std::string_view heading) {
  if (open_section_) body_ += "</section>\n";
  open_section_ = true;
  const std::string id = unique_id(heading);
  contents_.push_back({std::string(heading), id});
  body_ += fmt::format("<section aria-labelledby=\"{0}\">\n<h2 id=\"{0}\">{1}</h2>\n", id,
                       indexed(heading));
  return *this;
}

Page& Page::subsection(std::string_view heading) {
  if (!open_section_)
    fail_argument("subsection", "heading", fmt::format("'{}'", heading), "inside a section");
  body_ += fmt::format("<h3 id=\"{}\">{}</h3>\n", unique_id(heading), indexed(heading));
  return *this;
}

Page& Page::paragraph(std::string_view text) {
  target() += fmt::format("<p>{}</p>\n", running(text));
  return *this;
}

Page& Page::facts(const std::vector<Fact>& facts) {
  if (!facts.empty()) target() += definition_list("facts", facts);
  return *this;
}

Page& Page::headlines(const std::vector<Headline>& headlines) {
  for (const Headline& headline : headlines) check_headline(headline);
  if (headlines.empty()) return *this;
  std::string out = "<div class=\"headlines\">\n";
  for (const Headline& headline : headlines)
    out += headline_card(headline, bar_range(headlines, headline.parameter));
  target() += out + "</div>\n";
  return *this;
}

Page& Page::verdicts(std::string_view words, const std::vector<CheckLine>& checks) {
  if (checks.empty()) return *this;
  std::string out = fmt::format(
      "<div class=\"verdicts\" role=\"group\" aria-label=\"Checks\">\n<p>{}</p>\n<ul>\n",
      running(words));
  for (const CheckLine& check : checks) {
    const std::string inside =
        fmt::format("{} {}{}", badge(check.verdict), indexed(check.name),
                    check.p_value.empty() ? std::string()
                                          : fmt::format(" <small>p {}{}</small>",
                                                        check.p_value.starts_with('<') ? "" : "= ",
                                                        escape_html(check.p_value)));
    out += check.figure.empty() ? fmt::format("<li>{}</li>\n", inside)
                                : fmt::format("<li><a href=\"#figure:{}\">{}</a></li>\n",
                                              escape_html(check.figure), inside);
  }
  target() += out + "</ul>\n</div>\n";
  return *this;
}

Page& Page::checks(const std::vector<CheckLine>& checks) {
  if (checks.empty()) return *this;
  const auto any = [&](std::string CheckLine::*text) {
    return std::any_of(checks.begin(), checks.end(),
                       [&](const CheckLine& check) { return !(check.*text).empty(); });
  };
  const bool statistics = any(&CheckLine::statistic), p_values = any(&CheckLine::p_value);
  std::vector<Column> columns = {{"Check"}, {"Verdict"}};
  if (statistics) columns.push_back({"Statistic", true});
  if (p_values) columns.push_back({"p\u2011value", true});
  columns.push_back({"Meaning", false, true});
  std::vector<std::vector<std::string>> rows;
  for (const CheckLine& check : checks) {
    auto& row = rows.emplace_back();
    row = {running(check.name), badge(check.verdict)};
    if (statistics) row.push_back(running(check.statistic));
    if (p_values) row.push_back(running(check.p_value));
    row.push_back(running(check.detail));
  }
  target() += table_html("Checks", "", columns, rows);
  return *this;
}

Page& Page::table(const Table& table) {
  for (std::size_t i = 0; i < table.rows.size(); ++i)
    check_same_size("table", fmt::format("rows[{}]", i), table.rows[i].size(), table.columns.size(),
                    "one for each column");
  if (!table.numeric.empty())
    check_same_size("table", "numeric", table.numeric.size(), table.columns.size(),
                    "one for each column");
  const auto numeric = [&](std::size_t c) {
    if (!table.numeric.empty()) return static_cast<bool>(table.numeric[c]);
    return !table.rows.empty() &&
           std::all_of(table.rows.begin(), table.rows.end(),
                       [&](const auto& row) { return row[c].empty() || looks_numeric(row[c]); });
  };
  std::vector<Column> columns;
  for (std::size_t c = 0; c < table.columns.size(); ++c)
    columns.push_back({table.columns[c], numeric(c)});
  auto rows = table.rows;
  for (auto& row : rows)
    for (auto& cell : row) cell = running(cell);
  target() +=
      table_html(table.caption.empty() ? "Table" : table.caption, table.caption, columns, rows);
  return *this;
}

Page& Page::note(Verdict kind, std::string_view text) {
  static const std::map<Verdict, std::string_view> words = {{Verdict::pass, "Good."},
                                                            {Verdict::warn, "Warning."},
                                                            {Verdict::fail, "Failed."},
                                                            {Verdict::info, "Note."}};
  target() += fmt::format("<div class=\"note-box {}\" role=\"note\"><strong>{}</strong>{}</div>\n",
                          verdict_class(kind), words.at(kind), running(text));
  return *this;
}

Page& Page::notes(Verdict kind, std::string_view words, const std::vector<std::string>& remarks) {
  if (remarks.empty()) return *this;
  std::string out =
      fmt::format("<div class=\"note-box {}\" role=\"note\"><strong>{}</strong>\n<ul>\n",
                  verdict_class(kind), running(words));
  for (const auto& remark : remarks) out += fmt::format("<li>{}</li>\n", running(remark));
  target() += out + "</ul></div>\n";
  return *this;
}

Page& Page::list(const std::vector<std::string>& items) {
  if (items.empty()) return *this;
  std::string out = "<ul>\n";
  for (const auto& item : items) out += fmt::format("<li>{}</li>\n", running(item));
  target() += out + "</ul>\n";
  return *this;
}

Page& Page::code(std::string_view text) {
  target() += fmt::format("<pre tabindex=\"0\">{}</pre>\n", escape_html(text));
  return *this;
}

Page& Page::figure(const DrawnFigure& figure) {
  if (std::find(figure_names_.begin(), figure_names_.end(), figure.name) != figure_names_.end())
    fail_argument("figure", "name", fmt::format("'{}'", figure.name),
                  "another one: the page has a figure of that name");
  // A wide screen has room for larger figures; on a narrow one text stays legible, and what is then
  // wider than the screen moves inside its frame.
  constexpr double enlarged = 1.25, least_text = 9.1, phone = 340.0;
  const double least = std::round(least_text / 12.0 * figure.panel_width);
  figure_names_.push_back(figure.name);
  const std::size_t columns = std::min(figure.columns, figure.panels.size());
  std::string out = fmt::format(
      "<figure id=\"figure:{}\"{}>\n<div class=\"panels\"{} "
      "style=\"--columns:{};--width:{}px;--least:{}px\">\n",
      figure.name, figure.panels.size() > 1 ? " class=\"wide\"" : "",
      // What moves can be moved by keys too.
      least > phone ? fmt::format(" tabindex=\"0\" role=\"region\" aria-label=\"Figure {}\"",
                                  figure_names_.size())
                    : std::string(),
      std::max<std::size_t>(columns, 1), std::round(enlarged * figure.panel_width), least);
  for (const std::string& panel : figure.panels) out += without_style(panel);
  out += fmt::format(
      "</div>\n<figcaption>\n<div><b>Figure {}{}</b> {}</div>\n", figure_names_.size(),
      figure.title.empty() ? "." : ". " + indexed(figure.title) + ".", running(figure.caption));
  const std::string links = pdf_link(figure) + data_link(figure);
  if (!links.empty())
    out += fmt::format(
        "<div class=\"files\" aria-label=\"Figure {} to download\" role=\"group\">{}</div>\n",
        figure_names_.size(), links);
  target() += out + "</figcaption>\n</figure>\n";
  return *this;
}

Page& Page::figures(const std::vector<DrawnFigure>& figures) {
  target() += "<div class=\"figures\">\n";
  for (const DrawnFigure& drawn : figures) figure(drawn);
  target() += "</div>\n";
  return *this;
}

Page& Page::footer(const std::vector<Fact>& facts) {
  footer_ += definition_list("facts", facts);
  return *this;
}

std::string Page::html() const {
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\" />\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src &#39;none&#39;; "
      "style-src &#39;unsafe-inline&#39;; img-src data:\" />\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\" />\n"
      "<meta name=\"generator\" content=\"neyman\" />\n<title>{}</title>\n<style>{}{}{}",
      escape_html(title_), style, role_variables(), palette_css());
  out += fmt::format("body{{font-family:{}}}</style>\n</head>\n<body>\n", font_stack);
  out += fmt::format("<header class=\"top\">\n<h1>{}</h1>\n", indexed(title_));
  if (!subtitle_.empty()) out += fmt::format("<p class=\"subtitle\">{}</p>\n", running(subtitle_));
  if (contents_.size() > 2) {
    out += "<nav aria-label=\"Contents\"><ul>\n";
    for (const Entry& entry : contents_)
      out += fmt::format("<li><a href=\"#{}\">{}</a></li>\n", entry.id, indexed(entry.heading));
    out += "</ul></nav>\n";
  }
  out +=
      "</header>\n<main>\n" + lead_ + body_ + (open_section_ ? "</section>\n" : "") + "</main>\n";
  if (!footer_.empty()) out += "<footer class=\"end\">\n" + footer_ + "</footer>\n";
  return out + "</body>\n</html>\n";
}

void Page::write(const fs::path& path) const { write_file_atomically(path.string(), html()); }

}  // namespace neyman::reports
