#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "commands.hpp"
#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"

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

int copy_example(const std::string& name, std::string target) {
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
    const fs::path partial = target + ".partial";
    fs::remove_all(partial);
    fs::create_directories(partial);
    for (const auto& entry : fs::directory_iterator(folder))
      if (entry.is_regular_file()) fs::copy_file(entry.path(), partial / entry.path().filename());
    // What is compiled against neyman's C interface brings its header along.
    const bool compiled = fs::exists(partial / "Makefile");
    if (compiled) {
      fs::create_directories(partial / "neyman");
      fs::copy_file(installed(NEYMAN_HEADERS_INSTALLED, NEYMAN_HEADERS_SOURCE, "neyman/plugin.h"),
                    partial / "neyman" / "plugin.h");
    }
    fs::rename(partial, target);
    fmt::print("{0} is ready. Edit {0}/study.toml, then:\n\n{1}  neyman run {0}/study.toml\n",
               target, compiled ? fmt::format("  make -C {}\n", target) : "");
    return success;
  }
  throw ArgumentError("example: " + unknown_name(name, "an example", names));
}

}  // namespace

void add_example(CLI::App& app, int& status) {
  auto* command = app.add_subcommand("example", "Make a ready study to edit, with its data");
  auto name = std::make_shared<std::string>();
  auto target = std::make_shared<std::string>();
  command->add_option("name", *name, "Which example; without it, they are listed");
  command->add_option("folder", *target, "New folder for the study (default: the name)");
  command->footer(
      "\nExamples:\n  neyman example\n  neyman example mixture my-study\n  neyman example command "
      "my-own      # a simulator that is a program; also plugin, files");
  command->callback([name, target, &status] {
    if (name->empty()) {
      for (const auto& folder : examples()) fmt::print("{}\n", name_of(folder));
      status = success;
      return;
    }
    status = copy_example(*name, target->empty() ? *name : *target);
  });
}

}  // namespace neyman::cli
