#include "neyman/reports/gnuplot.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <set>

#include "neyman/core/error.hpp"
#include "neyman/core/progress.hpp"
#include "neyman/data/atomic_file.hpp"
#include "reports/gnuplot_script.hpp"

extern char** environ;

namespace neyman::reports {

namespace fs = std::filesystem;

namespace {

/// Where gnuplot works: what it leaves behind when it or we are killed never passes for a figure.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const fs::path& inside) {
    std::string name = (fs::absolute(inside) / ".drawing-XXXXXX").string();
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
  make_folder(folder.string());

  DrawnFigure drawn;
  drawn.name = stem;
  drawn.title = figure.title;
  drawn.caption = figure.caption;
  drawn.svg = folder / (stem + ".svg");
  drawn.pdf = folder / (stem + ".pdf");
  drawn.script = folder / (stem + ".gp");
  drawn.data = folder / (stem + ".dat");
  drawn.csv = figure_csv(figure);
  drawn.columns = figure.joined && !figure.apart ? 1 : figure.columns;

  FigureWriter writer(figure, stem);
  drawn.panel_width = writer.picture_width();
  write_file_atomically(drawn.data.string(), writer.data());
  write_file_atomically(drawn.script.string(), writer.script());
  const TemporaryFolder temporary(folder);
  for (const auto& file : {drawn.data, drawn.script})
    fs::copy_file(file, temporary.path() / file.filename());
  std::vector<std::string> arguments = {config.program, "-d", stem + ".gp"};
  const fs::path panels = temporary.path() / "panels";
  const std::size_t pictures = figure.joined ? drawn.columns : figure.panels.size();
  const bool several = pictures > 1;
  if (several) {
    fs::create_directory(panels);
    write_file_atomically((panels / "panels.gp").string(), writer.panel_script(panels));
    arguments.push_back((panels / "panels.gp").string());
  }
  // Files of an earlier run must not pass for this one's.
  std::error_code ignored;
  fs::remove(drawn.svg, ignored);
  fs::remove(drawn.pdf, ignored);
  const Outcome outcome = run(arguments, temporary.path());
  const fs::path svg_file = temporary.path() / drawn.svg.filename();
  const fs::path pdf_file = temporary.path() / drawn.pdf.filename();
  const bool complete = fs::exists(svg_file) && fs::exists(pdf_file);
  if (!WIFEXITED(outcome.status) || WEXITSTATUS(outcome.status) != 0 || !complete) {
    std::string message = outcome.output;
    message.erase(message.find_last_not_of(" \n\t") + 1);
    throw Error(fmt::format("draw: {} could not draw {}: {}", config.program, drawn.script.string(),
                            message.empty() ? "no message" : message));
  }

  const std::string& name = figure.title.empty() ? stem : figure.title;
  const std::string svg =
      adapt_svg(read_file(svg_file.string()), "figure:" + stem + ":0", name, figure.caption);
  write_file_atomically(drawn.svg.string(), svg);
  write_file_atomically(drawn.pdf.string(), read_file(pdf_file.string()));
  if (!several) {
    drawn.panels.push_back(svg);
    return drawn;
  }
  for (std::size_t i = 0; i < pictures; ++i) {
    const Panel& panel = figure.panels[i];  // of a column, the first
    drawn.panels.push_back(
        adapt_svg(read_file((panels / fmt::format("{}.svg", i + 1)).string()),
                  fmt::format("figure:{}:{}", stem, i + 1),
                  panel.title.empty() ? fmt::format("{}, panel {}", name, i + 1) : panel.title,
                  describe_panel(panel)));
  }
  return drawn;
}

std::vector<DrawnFigure> draw_all(const std::vector<Figure>& figures, const fs::path& folder,
                                  std::vector<std::string>& warnings) {
  std::vector<DrawnFigure> drawn;
  std::string last;  // without gnuplot all fail for one reason
  Progress progress("figures", figures.size(), "figures");
  for (const auto& figure : figures) {
    check_stop();
    try {
      drawn.push_back(draw(figure, folder));
    } catch (const Error& error) {
      const std::string reason = error.what();
      if (reason != last)
        warnings.push_back(
            fmt::format("the figure '{}' could not be drawn: {}", figure.name, reason));
      last = reason;
    }
    progress.advance();
  }
  return drawn;
}

}  // namespace neyman::reports
