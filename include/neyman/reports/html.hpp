#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "neyman/reports/figure.hpp"
#include "neyman/reports/gnuplot.hpp"

// A report as one self-contained HTML page: no script, nothing loaded from elsewhere. It follows
// the reader's light or dark preference, reads on a phone, prints, and works with a screen reader.
//
// All texts are escaped. In running text (paragraphs, notes, captions, details) `code` between
// backticks is set as code; nothing else is special.
namespace neyman::reports {

/// Text with &, <, >, " and ' as entities, and without the control characters that HTML forbids.
std::string escape_html(std::string_view text);

struct Fact {
  std::string name = {}, value = {};
};

enum class Verdict { pass, warn, fail, info };

/// An interval and its confidence level, in (0, 1).
struct LevelRange {
  double level = 0.0;
  Range range = {0.0, 0.0};
  std::vector<Range> pieces = {};  ///< of a range with gaps; empty: the range itself
};

/// A result in large type, with its intervals as a bar. Headlines given together whose
/// `parameter` is the same share one scale, so that they can be compared.
struct Headline {
  std::string parameter = {};  ///< "γ"
  std::string label = {};      ///< "approximate", "exact", …
  double estimate = 0.0;
  double error_low = 0.0, error_high = 0.0;  ///< both positive
  std::vector<LevelRange> intervals = {};    ///< lowest level first
  std::optional<double> truth = {};
  std::string note = {};  ///< small, below; for example "converged, 5000 events"
  Role role = Role::approximate;
};

/// One line of a list of checks.
struct CheckLine {
  std::string name = {};
  Verdict verdict = Verdict::pass;
  std::string detail = {};                   ///< what it means, in words
  std::string statistic = {}, p_value = {};  ///< as written; empty: none
  std::string figure = {};                   ///< name of the figure that shows it; empty: none
};

struct Table {
  std::string caption = {};
  std::vector<std::string> columns = {};
  std::vector<std::vector<std::string>> rows = {};  ///< each as long as `columns`
  /// Columns of numbers are set flush right; absent: those whose cells all look like numbers.
  std::vector<bool> numeric = {};
};

/// A page, built from top to bottom. What comes before the first section stands above them all.
/// Figures are numbered in their order and must have different names.
class Page {
 public:
  explicit Page(std::string title, std::string subtitle = {});

  Page& section(std::string_view heading);
  Page& subsection(std::string_view heading);
  Page& paragraph(std::string_view text);
  Page& facts(const std::vector<Fact>& facts);
  Page& headlines(const std::vector<Headline>& headlines);
  /// The verdicts of checks at a glance, in a row, below a line of words. Those with a figure link
  /// to it.
  Page& verdicts(std::string_view words, const std::vector<CheckLine>& checks);
  Page& checks(const std::vector<CheckLine>& checks);
  Page& table(const Table& table);
  /// A highlighted remark: warnings, limitations, good news.
  Page& note(Verdict kind, std::string_view text);
  /// Several remarks of one kind in one box, under a heading in words.
  Page& notes(Verdict kind, std::string_view words, const std::vector<std::string>& remarks);
  Page& list(const std::vector<std::string>& items);
  /// Preformatted text, for example a command.
  Page& code(std::string_view text);
  /// Its panels, its caption, and its PDF and its data (CSV) to download. Both stand inside the
  /// page where they have at most `Page::embed_limit` bytes; else the links name the files beside
  /// it ("figures/<name>.pdf", "figures/<name>.dat").
  Page& figure(const DrawnFigure& figure);
  /// Several figures; those of one panel stand side by side where there is room.
  Page& figures(const std::vector<DrawnFigure>& figures);
  /// The end of the page: version, seed, command, date, …
  Page& footer(const std::vector<Fact>& facts);

  std::string html() const;
  /// Writes the page, atomically. @throw FileError
  void write(const std::filesystem::path& path) const;

  static constexpr std::size_t embed_limit = 600'000;

 private:
  struct Entry {
    std::string heading, id;
  };
  std::string& target() { return open_section_ ? body_ : lead_; }
  std::string unique_id(std::string_view text);

  std::string title_, subtitle_;
  std::string lead_, body_, footer_;
  std::vector<Entry> contents_;
  std::vector<std::string> ids_, figure_names_;
  bool open_section_ = false;
};

}  // namespace neyman::reports
