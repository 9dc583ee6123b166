#include "neyman/reports/html.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <set>

#include "neyman/core/error.hpp"
#include "reports/xml_check.hpp"

namespace neyman::reports {
namespace {

namespace fs = std::filesystem;
using testing::count;
using testing::Element;
using testing::ids;
using testing::parse_xml;

class PageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "neyman-page-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  DrawnFigure drawn(const std::string& name, std::size_t points = 3) {
    Panel panel;
    panel.title = "same title";
    Line line;
    for (std::size_t i = 0; i < points; ++i) {
      line.x.push_back(static_cast<double>(i));
      line.y.push_back(static_cast<double>(i % 7));
    }
    panel.series = {line};
    Figure figure;
    figure.name = name;
    figure.title = "About " + name;
    figure.caption = "What `" + name + "` shows.";
    figure.columns = 2;
    figure.panels = {panel, panel};
    return draw(figure, folder_ / "figures");
  }
  fs::path folder_;
};

Headline headline(std::string parameter, double estimate) {
  Headline h;
  h.parameter = std::move(parameter);
  h.label = "approximate";
  h.estimate = estimate;
  h.error_low = 0.0065;
  h.error_high = 0.0067;
  h.intervals = {{0.683, {estimate - 0.0065, estimate + 0.0067}},
                 {0.95, {estimate - 0.013, estimate + 0.0135}}};
  h.truth = 0.05;
  return h;
}

/// A page with one of everything.
Page full_page() {
  Page page("Study <1> & more", "a subtitle with `code`");
  page.headlines({headline("γ", 0.0459), headline("γ", 0.0465)})
      .section("Results & so on")
      .subsection("Details")
      .paragraph("Text with `a < b` and an open ` tick.")
      .facts({{"Events", "5000"}, {"Seed", "1"}})
      .checks({{"normalisation", Verdict::pass, "1.000 ± 0.001"},
               {"support", Verdict::fail, "12 % outside"}})
      .section("Tables")
      .table({"A caption", {"ratio", "bias"}, {{"exact", "−0.01"}, {"<i>", ""}}, {}})
      .note(Verdict::warn, "3 events outside")
      .code("neyman run study.toml > log && echo")
      .section("Tables")
      .footer({{"version", "0.1.0"}});
  return page;
}

TEST(EscapeHtml, KnownAnswers) {
  EXPECT_EQ(escape_html("a<b>&\"c\"'d'"), "a&lt;b&gt;&amp;&quot;c&quot;&#39;d&#39;");
  EXPECT_EQ(escape_html("γ\u0302 −2 log Λ 😀"), "γ\u0302 −2 log Λ 😀");
  EXPECT_EQ(escape_html(std::string_view("a\0b\x01\x7f\tc\n", 8)), "ab\tc\n");
  EXPECT_EQ(escape_html("a\xff"
                        "b\xc3"),
            "a\ufffd"
            "b\ufffd");
  EXPECT_EQ(escape_html("\xed\xa0\x80").find("\xed\xa0"), std::string::npos);  // a lone surrogate
}

TEST(Page, IsWellFormedWithHeadingsInOrder) {
  const auto elements = parse_xml(full_page().html());
  EXPECT_EQ(elements.front().name, "html");
  EXPECT_EQ(elements.front().attributes.at("lang"), "en");
  EXPECT_EQ(count(elements, "h1"), 1u);
  int level = 0;
  for (const Element& element : elements)
    if (element.name.size() == 2 && element.name[0] == 'h' && element.name[1] <= '6') {
      const int next = element.name[1] - '0';
      EXPECT_LE(next, level + 1) << element.text;
      level = next;
    }
  const auto all = ids(elements);
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), all.size());
}

TEST(Page, ContentsLinkToSections) {
  const auto elements = parse_xml(full_page().html());
  const auto all = ids(elements);
  std::vector<std::string> targets;
  for (const Element& element : elements)
    if (element.name == "a" && element.attributes.at("href").starts_with('#'))
      targets.push_back(element.attributes.at("href").substr(1));
  EXPECT_EQ(targets, (std::vector<std::string>{"results-so-on", "tables", "tables-2"}));
  for (const auto& target : targets) EXPECT_EQ(std::count(all.begin(), all.end(), target), 1);
}

TEST(Page, EscapesEveryText) {
  const std::string attack = "<script>alert('x')</script>\"&";
  Headline h = headline(attack, 0.05);
  h.label = h.note = attack;
  Page page(attack, attack);
  page.headlines({h}).section(attack).subsection(attack).paragraph("`" + attack + "`" + attack);
  page.facts({{attack, attack}}).checks({{attack, Verdict::pass, attack}});
  page.table({attack, {attack}, {{attack}}, {}}).note(Verdict::fail, attack).code(attack);
  page.footer({{attack, attack}});
  const std::string html = page.html();
  const auto elements = parse_xml(html);
  EXPECT_EQ(count(elements, "script"), 0u);
  EXPECT_EQ(html.find("<script"), html.npos);
  EXPECT_EQ(html.find("alert('x')"), html.npos);
}

TEST(Page, CodeBetweenBackticks) {
  const std::string html = full_page().html();
  EXPECT_NE(html.find("<p>Text with <code>a &lt; b</code> and an open ` tick.</p>"), html.npos);
}

TEST(Page, HeadlineShowsTheRoundedResultAndBothIntervals) {
  const std::string html = Page("t").headlines({headline("γ", 0.04588)}).html();
  EXPECT_NE(
      html.find("γ = 0.0459 <span class=\"errors\"><span>+0.0067</span> <span>−0.0065</span>"),
      html.npos);
  EXPECT_NE(html.find("68.3\u00a0% [0.0394, 0.0526]"), html.npos);
  EXPECT_NE(html.find("truth 0.05"), html.npos);
}

/// The places of the estimates on their bars.
std::vector<double> dots(const std::vector<Element>& elements) {
  std::vector<double> out;
  for (const Element& element : elements)
    if (element.name == "circle") out.push_back(std::stod(element.attributes.at("cx")));
  return out;
}

TEST(Page, HeadlinesOfOneParameterShareAScale) {
  const auto same =
      dots(parse_xml(Page("t").headlines({headline("γ", 0.04), headline("γ", 0.06)}).html()));
  const auto other =
      dots(parse_xml(Page("t").headlines({headline("γ", 0.04), headline("α", 0.06)}).html()));
  ASSERT_EQ(same.size(), 2u);
  EXPECT_GT(same[1] - same[0], 80.0);
  EXPECT_NE(same[0], other[0]);
}

TEST(Page, HeadlineWithoutErrorsOrIntervals) {
  Headline h;
  h.parameter = "γ";
  const std::string html = Page("t").headlines({h}).html();
  EXPECT_EQ(html.find("nan"), html.npos);
  EXPECT_NE(html.find("γ = 0"), html.npos);
  EXPECT_EQ(html.find("± 0<"), html.npos);
}

TEST(Page, RefusesWhatIsNotAResult) {
  Page page("t");
  EXPECT_THROW(page.headlines({headline("γ", std::numeric_limits<double>::quiet_NaN())}),
               ArgumentError);
  Headline negative = headline("γ", 1.0);
  negative.error_low = -1.0;
  EXPECT_THROW(page.headlines({negative}), ArgumentError);
  Headline turned = headline("γ", 1.0);
  turned.intervals[0].range = Range{2.0, 1.0};
  EXPECT_THROW(page.headlines({turned}), ArgumentError);
  Headline percent = headline("γ", 1.0);
  percent.intervals[0].level = 68.3;
  EXPECT_THROW(page.headlines({percent}), ArgumentError);
  EXPECT_THROW(page.table({"", {"a", "b"}, {{"1"}}, {}}), ArgumentError);
  EXPECT_THROW(page.table({"", {"a"}, {{"1"}}, {true, false}}), ArgumentError);
  EXPECT_THROW(page.subsection("before any section"), ArgumentError);
}

TEST(Page, NumbersAreFlushRightAndRowsHaveHeadings) {
  const auto elements =
      parse_xml(Page("t").table({"", {"ratio", "bias"}, {{"exact", "−0.01"}}, {}}).html());
  std::size_t right = 0, row_headings = 0;
  for (const Element& element : elements) {
    const auto& a = element.attributes;
    right += a.contains("class") && a.at("class") == "n" ? 1 : 0;
    row_headings += a.contains("scope") && a.at("scope") == "row" ? 1 : 0;
  }
  EXPECT_EQ(right, 2u);  // heading and cell of the second column
  EXPECT_EQ(row_headings, 1u);
}

TEST_F(PageTest, FiguresAreInlineNumberedAndHaveDifferentIds) {
  Page page("t");
  page.section("s").figure(drawn("one")).figure(drawn("two"));
  const std::string html = page.html();
  const auto elements = parse_xml(html);
  EXPECT_EQ(count(elements, "figure"), 2u);
  EXPECT_EQ(count(elements, "figcaption"), 2u);
  EXPECT_EQ(count(elements, "svg"), 4u);
  EXPECT_EQ(count(elements, "style"), 1u);
  EXPECT_NE(html.find("<b>Figure 2. About two.</b> What <code>two</code> shows."), html.npos);
  const auto all = ids(elements);
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), all.size());
  EXPECT_THROW(page.figure(drawn("two")), ArgumentError);
}

TEST_F(PageTest, NothingIsLoadedFromElsewhere) {
  Page page = full_page();
  page.figure(drawn("one"));
  const std::string html = page.html();
  for (std::size_t at = html.find("http"); at != html.npos; at = html.find("http", at + 1)) {
    const std::string_view rest = std::string_view(html).substr(at);
    EXPECT_TRUE(rest.starts_with("http://www.w3.org/2000/svg") || rest.starts_with("http-equiv"))
        << rest.substr(0, 40);
  }
  for (const Element& element : parse_xml(html)) {
    EXPECT_NE(element.name, "script");
    EXPECT_NE(element.name, "link");
    EXPECT_FALSE(element.attributes.contains("src"));
    for (const auto& [name, value] : element.attributes) {
      EXPECT_FALSE(name.starts_with("on")) << name;
      const bool inside = value.starts_with('#') || value.starts_with("data:");
      const bool beside = element.attributes.contains("download") && value.starts_with("figures/");
      EXPECT_TRUE(name != "href" || inside || beside) << value;
    }
  }
}

std::string decode_base64(std::string_view text) {
  static constexpr std::string_view letters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  unsigned bits = 0;
  int have = 0;
  for (const char c : text) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<unsigned>(letters.find(c));
    have += 6;
    if (have >= 8) out += static_cast<char>(bits >> (have -= 8) & 0xff);
  }
  return out;
}

/// The links of a page that save a file, by its name.
std::map<std::string, std::string> downloads(const Page& page) {
  std::map<std::string, std::string> out;
  for (const Element& element : parse_xml(page.html()))
    if (element.attributes.contains("download"))
      out[element.attributes.at("download")] = element.attributes.at("href");
  return out;
}

TEST_F(PageTest, PdfAndDataAreInsideThePageByteForByte) {
  for (const std::size_t length : {1u, 2u, 3u, 256u}) {
    DrawnFigure figure;
    figure.name = "bytes";
    figure.pdf = folder_ / "bytes.pdf";
    for (std::size_t i = 0; i < length; ++i) figure.csv += static_cast<char>(255 - i);
    std::ofstream(figure.pdf, std::ios::binary) << "%PDF" << figure.csv;
    Page page("t");
    page.figure(figure);
    const auto links = downloads(page);
    ASSERT_EQ(links.size(), 2u);
    const std::string &pdf = links.at("bytes.pdf"), &csv = links.at("bytes.csv");
    EXPECT_TRUE(pdf.starts_with("data:application/pdf;base64,")) << pdf;
    EXPECT_TRUE(csv.starts_with("data:text/csv;charset=utf-8;base64,")) << csv;
    EXPECT_EQ(decode_base64(pdf.substr(pdf.find(',') + 1)), "%PDF" + figure.csv) << length;
    EXPECT_EQ(decode_base64(csv.substr(csv.find(',') + 1)), figure.csv) << length;
  }
}

TEST(Page, VerdictsLinkToTheirFigures) {
  const std::string html =
      Page("t")
          .verdicts("1 of 2 checks pass.",
                    {{"closure", Verdict::pass, "", "", "0.4", "diagnostic-closure"},
                     {"wilks", Verdict::fail, "", "", "", ""}})
          .html();
  parse_xml(html);
  EXPECT_NE(html.find("<a href=\"#figure:diagnostic-closure\">"), html.npos);
  EXPECT_NE(html.find("closure <small>p = 0.4</small>"), html.npos);
  EXPECT_NE(html.find("✕ fail</span> wilks</li>"), html.npos);
}

TEST(Page, SeveralNotesAreOneBox) {
  const std::string html = Page("t").notes(Verdict::warn, "2 warnings:", {"a < b", "c"}).html();
  EXPECT_EQ(count(parse_xml(html), "li"), 2u);
  EXPECT_NE(html.find("<strong>2 warnings:</strong>"), html.npos);
  EXPECT_NE(html.find("<li>a &lt; b</li>"), html.npos);
}

TEST(Page, LevelsAreWrittenAsTheyAre) {
  Headline h = headline("γ", 0.05);
  h.intervals[0].level = 0.6827;
  h.intervals.push_back({0.9973, {0.02, 0.09}});
  const std::string html = Page("t").headlines({h}).html();
  for (const char* words : {"68.27\u00a0% [", "95\u00a0% [", "99.73\u00a0% [0.02"})
    EXPECT_NE(html.find(words), html.npos) << words;
}

TEST(Page, ChecksHaveColumnsForWhatTheyHave) {
  Page plain("t"), full("t");
  plain.checks({{"a", Verdict::pass, "fine"}});
  EXPECT_EQ(plain.html().find("p\u2011value"), std::string::npos);
  full.checks({{"a", Verdict::pass, "fine", "1.5", "0.2"}, {"b", Verdict::fail, "bad", "9", ""}});
  const auto elements = parse_xml(full.html());
  EXPECT_EQ(count(elements, "td"), 8u);
  EXPECT_NE(full.html().find("data-label=\"Statistic\">1.5</td><td class=\"n\" role=\"cell\" "
                             "data-label=\"p\u2011value\">0.2</td><td class=\"text\" role=\"cell\" "
                             "data-label=\"Meaning\">fine</td>"),
            std::string::npos);
}

TEST_F(PageTest, LargeFilesAreLinkedBesideThePage) {
  const DrawnFigure figure = drawn("large", 30'000);
  ASSERT_GT(figure.csv.size(), Page::embed_limit);
  Page page("t");
  page.figure(figure);
  EXPECT_EQ(downloads(page).at("large.dat"), "figures/large.dat");
}

TEST_F(PageTest, WriteIsAtomicAndReportsFailure) {
  const fs::path path = folder_ / "report.html";
  const Page page = full_page();
  page.write(path);
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  EXPECT_EQ(text, page.html());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
  EXPECT_THROW(page.write(folder_ / "absent" / "report.html"), FileError);
}

}  // namespace
}  // namespace neyman::reports
