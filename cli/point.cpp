#include "point.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <optional>

#include "neyman/core/check.hpp"

namespace neyman::cli {

namespace {

[[noreturn]] void refuse(const char* option, const std::string& reason) {
  throw CLI::ValidationError(option, reason);
}

}  // namespace

std::vector<double> parse_point(const char* option, const std::string& text,
                                const ParameterSpace& parameters) {
  std::vector<std::optional<double>> values(parameters.size());
  for (const auto& part : CLI::detail::split(text, ',')) {
    const auto equals = part.find('=');
    const auto name = CLI::detail::trim_copy(part.substr(0, equals));
    const auto index = parameters.find(name);
    if (!index) refuse(option, unknown_name(name, "a parameter", parameters.names()));
    const auto word =
        equals == std::string::npos ? "" : CLI::detail::trim_copy(part.substr(equals + 1));
    double value = 0.0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size())
      refuse(option, fmt::format("{} is '{}', but must be a number, as in {}=1", name, word, name));
    const auto& parameter = parameters[*index];
    if (!(value >= parameter.low && value <= parameter.high))
      refuse(option, fmt::format("{} is {}, but must be between {} and {}", name, value,
                                 parameter.low, parameter.high));
    values[*index] = value;
  }
  std::vector<double> point;
  for (std::size_t p = 0; p < values.size(); ++p) {
    if (!values[p]) refuse(option, fmt::format("{} is missing", parameters[p].name));
    point.push_back(*values[p]);
  }
  return point;
}

}  // namespace neyman::cli
