#include "neyman/data/feature_columns.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "neyman/core/error.hpp"

namespace neyman {

namespace {

bool among(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// What a user should know of where features were found.
std::string note_of(const std::string& what, const FeatureColumns& found,
                    const std::vector<std::string>& features) {
  if (found.by_position && found.left_out.empty())
    return fmt::format("the columns of {} have no names: they are taken in their order as {}", what,
                       some_names(features));
  if (found.by_position)
    return fmt::format("the columns of {} have no names: {} are those counted from 0", what,
                       some_names(features));
  if (!found.left_out.empty())
    return fmt::format("of {}, {} {} no feature{} of the model and left out", what,
                       some_names(found.left_out), found.left_out.size() == 1 ? "is" : "are",
                       found.left_out.size() == 1 ? "" : "s");
  return {};
}

}  // namespace

std::string some_names(const std::vector<std::string>& names) {
  constexpr std::size_t most = 10;
  if (names.size() <= most) return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format(
      "{}, … ({} in all)",
      fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(most), ", "),
      names.size());
}

FeatureColumns find_features(const std::vector<std::string>& features,
                             const std::vector<std::string>& columns, bool named,
                             OtherColumns others) {
  FeatureColumns out;
  out.by_position = !named;
  const bool all = std::all_of(features.begin(), features.end(),
                               [&](const auto& name) { return among(columns, name); });
  if (!all && !named && columns.size() == features.size()) {
    out.places.resize(features.size());
    std::iota(out.places.begin(), out.places.end(), std::size_t{0});
    return out;
  }
  for (const auto& name : columns)
    if (!among(features, name)) out.left_out.push_back(name);
  if (!all || (others == OtherColumns::refuse && !out.left_out.empty())) {
    if (named)
      throw ArgumentError(
          fmt::format("find_features: has the columns {}, but must have {}, in any order",
                      some_names(columns), some_names(features)));
    throw ArgumentError(
        fmt::format("find_features: has {} columns without names, but must have {} ({})",
                    columns.size(), features.size(), some_names(features)));
  }
  for (const auto& name : features)
    out.places.push_back(static_cast<std::size_t>(std::find(columns.begin(), columns.end(), name) -
                                                  columns.begin()));
  return out;
}

FeatureReading find_features(const std::string& path, ReadOptions options,
                             const std::vector<std::string>& features, OtherColumns others) {
  const auto table = table_columns(path, options);
  auto rest = table.names;
  const auto named_otherwise = [&](const std::string& name) {
    return name == options.weight || name == options.group || among(options.parameters, name);
  };
  std::erase_if(rest, named_otherwise);
  const auto found = [&] {
    try {
      return find_features(features, rest, table.named, others);
    } catch (const ArgumentError& error) {
      throw FileError(fmt::format("{}: {}", path, error.reason()));
    }
  }();
  FeatureReading out{std::move(options),
                     note_of(std::filesystem::path(path).filename().string(), found, features)};
  out.options.features = features;
  if (table.named) return out;
  // The features' own names, where they are.
  out.options.columns = table.names;
  for (std::size_t i = 0; i < features.size(); ++i) {
    const auto at = std::find(table.names.begin(), table.names.end(), rest[found.places[i]]);
    out.options.columns[static_cast<std::size_t>(at - table.names.begin())] = features[i];
  }
  return out;
}

Samples with_features(const char* function, const Samples& events,
                      const std::vector<std::string>& features, OtherColumns others,
                      std::string& note) {
  const auto defaults = default_feature_names(events.features());
  const bool named = !events.feature_names.empty() && events.feature_names != defaults;
  const auto& columns = named ? events.feature_names : defaults;
  const auto found = [&] {
    try {
      return find_features(features, columns, named, others);
    } catch (const ArgumentError& error) {
      throw ArgumentError(fmt::format("{}: the table of events {}", function, error.reason()));
    }
  }();
  note = found.left_out.empty() ? "" : note_of("the data", found, features);
  Samples out;
  out.feature_names = features;
  out.parameter_names = events.parameter_names;
  out.theta = events.theta;
  out.weights = events.weights;
  out.groups = events.groups;
  if (columns == features) {
    out.x = events.x;
    return out;
  }
  out.x = Matrix(events.size(), features.size());
  for (std::size_t i = 0; i < events.size(); ++i)
    for (std::size_t j = 0; j < features.size(); ++j) out.x(i, j) = events.x(i, found.places[j]);
  return out;
}

}  // namespace neyman
