#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "answer.hpp"
#include "commands.hpp"
#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/data/settings_file.hpp"
#include "neyman/reports/terminal.hpp"
#include "terminal.hpp"

namespace neyman::cli {

namespace {

namespace fs = std::filesystem;

/// A part of the installation: beside the installed program, or in the source tree.
fs::path installed(const char* place, const char* source, const char* part) {
  std::error_code ignored;
  const auto program = fs::read_symlink("/proc/self/exe", ignored);
  for (const auto& found :
       {program.parent_path().parent_path() / place / part, fs::path(source) / part})
    if (fs::exists(found, ignored)) return found;
  throw FileError(
      fmt::format("{}: is not there; install neyman again", (fs::path(place) / part).string()));
}

fs::path examples_folder() {
  return installed(NEYMAN_EXAMPLES_INSTALLED, NEYMAN_EXAMPLES_SOURCE, "");
}

/// 01_mixture is called "mixture".
std::string name_of(const fs::path& folder) {
  const auto text = folder.filename().string();
  const auto underscore = text.find('_');
  return underscore == std::string::npos ? text : text.substr(underscore + 1);
}

std::vector<fs::path> examples() {
  std::vector<fs::path> out;
  for (const auto& entry : fs::directory_iterator(examples_folder()))
    if (entry.is_directory() && fs::exists(entry.path() / "study.toml"))
      out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

/// All or nothing. What is compiled against neyman's C interface brings its header along.
void copy_into(const fs::path& folder, const std::string& target, bool compiled) {
  const fs::path partial = target + ".partial";
  fs::remove_all(partial);
  fs::create_directories(partial);
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_regular_file()) fs::copy_file(entry.path(), partial / entry.path().filename());
  if (compiled) {
    fs::create_directories(partial / "neyman");
    fs::copy_file(installed(NEYMAN_HEADERS_INSTALLED, NEYMAN_HEADERS_SOURCE, "neyman/plugin.h"),
                  partial / "neyman" / "plugin.h");
  }
  fs::rename(partial, target);
}

/// One study of an example, as its file describes itself.
struct Shown {
  std::string file, title;
  std::string takes;  ///< "20 s": from the line "# Takes about 20 s on two cores."
};

Shown describe(const fs::path& study) {
  Shown out{study.filename().string(),
            read_settings(study.string()).table("report").text("title", ""), ""};
  std::ifstream file(study);
  const std::string begin = "# Takes about ", end = " on two cores";
  for (std::string line; std::getline(file, line) && line.starts_with('#');)
    if (line.starts_with(begin))
      out.takes = line.substr(begin.size(), line.find(end) - begin.size());
  return out;
}

/// study.toml first, then the others.
std::vector<Shown> studies_of(const fs::path& example) {
  std::vector<Shown> out = {describe(example / "study.toml")};
  std::vector<fs::path> others;
  for (const auto& entry : fs::directory_iterator(example))
    if (entry.path().extension() == ".toml" && entry.path().filename() != "study.toml")
      others.push_back(entry.path());
  std::sort(others.begin(), others.end());
  for (const auto& other : others) out.push_back(describe(other));
  return out;
}

int list_examples(bool json) {
  Json listed = Json::array();
  std::vector<std::vector<std::string>> rows;
  for (const auto& folder : examples()) {
    Json studies = Json::array();
    for (const auto& [file, title, takes] : studies_of(folder)) {
      studies.push_back({{"file", file}, {"title", title}, {"takes", takes}});
      rows.push_back({studies.size() == 1 ? name_of(folder) : "  " + file, title,
                      takes.substr(0, takes.find(','))});
    }
    listed.push_back({{"name", name_of(folder)}, {"studies", studies}});
  }
  if (json) {
    print_answer("example", success, {{"examples", listed}});
    return success;
  }
  say("{}\n"
      "To get one:  neyman example mixture my-study\n"
      "The times are those of two cores; with --quick all take less than two minutes.\n",
      reports::format_table({"example", "what it shows", "takes"}, rows));
  return success;
}

int copy_example(const std::string& name, std::string target, bool json) {
  while (target.size() > 1 && target.back() == '/') target.pop_back();
  std::vector<std::string> names;
  for (const auto& folder : examples()) {
    names.push_back(name_of(folder));
    if (names.back() != name) continue;
    if (fs::exists(target))
      throw FileError(
          fmt::format("{}: exists already; choose a new folder, so that nothing is "
                      "overwritten",
                      target));
    const bool compiled = fs::exists(folder / "Makefile");
    try {
      copy_into(folder, target, compiled);
    } catch (const fs::filesystem_error& error) {
      throw AdvisedError(
          fmt::format("{}: the example cannot be written: {}", target, error.code().message()),
          fmt::format("Choose another folder: neyman example {} FOLDER", name));
    }
    std::vector<std::string> next;
    if (compiled) next.push_back("make -C " + target);
    next.push_back(fmt::format("neyman run {}/study.toml", target));
    if (json) {
      print_answer("example", success, {{"folder", target}, {"next", next}});
      return success;
    }
    say("{0} is ready. Edit {0}/study.toml, then:\n\n", target);
    for (const auto& line : next) say("  {}\n", line);
    return success;
  }
  throw ArgumentError("example: " + unknown_name(name, "an example", names));
}

}  // namespace

std::vector<std::pair<std::string, std::string>> example_titles() {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& folder : examples())
    out.emplace_back(name_of(folder), describe(folder / "study.toml").title);
  return out;
}

void add_example(CLI::App& app, int& status) {
  auto* command = app.add_subcommand("example", "Make a ready study to edit, with its data");
  struct Arguments {
    std::string name, folder;
    Talk talk;
  };
  auto arguments = std::make_shared<Arguments>();
  command->add_option("name", arguments->name, "Which example; without it, they are listed")
      ->type_name("EXAMPLE");
  command->add_option("folder", arguments->folder, "New folder for the study (default: the name)")
      ->type_name("FOLDER");
  arguments->talk.add_json_to(*command);
  command->footer(R"(
Examples:
  neyman example
  neyman example mixture my-study
  neyman example command my-own      # a simulator that is a program; also plugin, files)");
  command->callback([arguments, &status] {
    const auto& [name, folder, talk] = *arguments;
    status = name.empty() ? list_examples(talk.json)
                          : copy_example(name, folder.empty() ? name : folder, talk.json);
  });
}

}  // namespace neyman::cli
