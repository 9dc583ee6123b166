#include "simulators/reading.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <span>

#include "neyman/core/error.hpp"
#include "neyman/data/feature_columns.hpp"
#include "neyman/data/reader.hpp"
#include "neyman/data/settings_file.hpp"

namespace neyman::detail {

namespace {

using NumberOrText = std::variant<double, std::string>;

/// `key` may name the element of a list: "weights[1]".
std::optional<Expression> make_expression(Settings& settings, std::string_view key,
                                          const NumberOrText& value,
                                          const ParameterSpace& parameters, Limits limits) {
  try {
    const Expression expression = std::holds_alternative<double>(value)
                                      ? Expression(std::get<double>(value))
                                      : Expression(std::get<std::string>(value), parameters);
    for (const auto& point : trial_points(parameters)) {
      const double number = expression(point);
      if (limits.contains(number)) continue;
      if (expression.constant())
        settings.problem(key, fmt::format("is {}, but must be {}", number, limits.words()));
      else
        settings.problem(
            key, fmt::format("is \"{}\", which is {:.6g} at {}, but must be {}", expression.text(),
                             number, describe_point(parameters, point, expression.uses()),
                             limits.words()));
      return std::nullopt;
    }
    return expression;
  } catch (const ArgumentError& error) {
    settings.problem(key, "does not hold: " + error.reason());
    return std::nullopt;
  }
}

}  // namespace

std::vector<std::vector<double>> trial_points(const ParameterSpace& parameters) {
  std::vector<double> middle, truth;
  for (const auto& parameter : parameters) {
    middle.push_back(parameter.low + 0.5 * (parameter.high - parameter.low));
    truth.push_back(parameter.truth.value_or(middle.back()));
  }
  if (truth == middle) return {middle};
  return {middle, truth};
}

std::string describe_point(const ParameterSpace& parameters, std::span<const double> point,
                           const std::vector<std::size_t>& indices) {
  std::string text;
  for (const std::size_t i : indices)
    text += fmt::format("{}{} = {:.6g}", text.empty() ? "" : ", ", parameters[i].name, point[i]);
  return text;
}

Expression read_expression(Settings& settings, Key key, const ParameterSpace& parameters,
                           Limits limits, std::optional<double> fallback) {
  const bool absent = !settings.has(key.name);
  const auto value = settings.number_or_text(key, limits, fallback);
  if (absent && !fallback)
    settings.problem(key.name, "is missing, but must be a number or a formula in quotes");
  if (!value) return fallback.value_or(1.0);
  return make_expression(settings, key.name, *value, parameters, limits)
      .value_or(fallback.value_or(1.0));
}

std::vector<Expression> read_expressions(Settings& settings, Key key,
                                         const ParameterSpace& parameters, Limits limits) {
  std::vector<Expression> out;
  const auto values = settings.numbers_or_texts(key, limits);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (auto expression = make_expression(settings, fmt::format("{}[{}]", key.name, i), values[i],
                                          parameters, limits))
      out.push_back(std::move(*expression));
  return out;
}

std::vector<std::vector<Expression>> read_expression_rows(Settings& settings, Key key,
                                                          const ParameterSpace& parameters) {
  std::vector<std::vector<Expression>> out;
  const auto rows = settings.lists_of_numbers_or_texts(key);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].size() != rows[0].size()) {
      settings.problem(key.name, fmt::format("has {} values in row {}, but {} in the first",
                                             rows[i].size(), i, rows[0].size()));
      return {};
    }
    out.emplace_back();
    for (std::size_t j = 0; j < rows[i].size(); ++j)
      if (auto expression = make_expression(settings, fmt::format("{}[{}][{}]", key.name, i, j),
                                            rows[i][j], parameters, Limits::any()))
        out.back().push_back(std::move(*expression));
  }
  return out;
}

std::optional<Events> read_events(Settings& settings, const std::string& folder,
                                  Key::Presence presence) {
  const std::size_t before = settings.problems().size();
  const Key key(
      "file",
      "events: CSV, NPY or HDF5 (sims.h5:group/dataset names a table inside); also a list of "
      "files, or a pattern",
      presence);
  const auto files = read_file_names(settings, key, folder);
  if (!settings.has("file")) settings.text(key);  // tells that it is missing
  ReadOptions options;
  options.features =
      settings.texts({"columns", "the feature columns; absent: all but the weights"}, {});
  options.weight = settings.text({"weights", "a column of event weights"}, "");
  const auto format = settings.choice({"format", "of the files"}, "by-extension",
                                      {"by-extension", "csv", "npy", "hdf5"});
  if (format != "by-extension") options.format = file_format_by_name(format);
  if (settings.problems().size() > before) return std::nullopt;
  try {
    Samples samples;
    for (const auto& file : files) {
      const auto more = read_samples(file, options).samples;
      std::string note;
      samples.append(samples.size() == 0 ? more
                                         : with_features("file", more, samples.feature_names,
                                                         OtherColumns::refuse, note));
    }
    if (samples.size() == 0) {
      settings.problem("file", "names no file, but must name one at least");
      return std::nullopt;
    }
    const bool named = table_columns(files[0], options).named;
    return Events{std::move(samples.x), std::move(samples.weights),
                  named ? samples.feature_names : std::vector<std::string>()};
  } catch (const Error& error) {
    settings.problem("file", fmt::format("cannot be used: {}", error.what()));
    return std::nullopt;
  }
}

}  // namespace neyman::detail
