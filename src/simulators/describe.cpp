#include "neyman/simulators/describe.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <vector>

#include "neyman/simulators/command.hpp"
#include "neyman/simulators/files.hpp"
#include "neyman/simulators/mixture.hpp"
#include "neyman/simulators/plugin.hpp"

namespace neyman {

namespace {

std::string file_name(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

/// The first names, and how many more there are.
std::string first_of(const std::vector<std::string>& paths) {
  constexpr std::size_t most = 3;
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < paths.size() && i < most; ++i) shown.push_back(file_name(paths[i]));
  std::string out = fmt::format("{}", fmt::join(shown, ", "));
  if (paths.size() > most) out += fmt::format(" and {} more", paths.size() - most);
  return out;
}

std::string describe_mixture(const Mixture& mixture) {
  std::string out = "mixture of ";
  const auto& parts = mixture.components();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string what = describe(*parts[i]);
    const bool named = i < mixture.names().size() && !mixture.names()[i].empty();
    out += i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ";
    out += named ? fmt::format("{} ({})", mixture.names()[i], what) : what;
  }
  return out;
}

}  // namespace

std::string describe(const Distribution& simulator) {
  if (const auto* command = dynamic_cast<const Command*>(&simulator))
    return fmt::format("command: {}", fmt::join(command->command(), " "));
  if (const auto* plugin = dynamic_cast<const Plugin*>(&simulator))
    return "plugin: " + file_name(plugin->library());
  if (const auto* files = dynamic_cast<const Files*>(&simulator))
    return "files: " + first_of(files->names());
  if (const auto* mixture = dynamic_cast<const Mixture*>(&simulator))
    return describe_mixture(*mixture);
  std::vector<std::string> parts;
  for (const auto& part : simulator.parts()) parts.push_back(describe(*part));
  return parts.empty() ? simulator.kind()
                       : fmt::format("{} ({})", simulator.kind(), fmt::join(parts, ", "));
}

}  // namespace neyman
