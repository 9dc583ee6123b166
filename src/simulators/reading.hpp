#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "neyman/core/matrix.hpp"
#include "neyman/core/parameters.hpp"
#include "neyman/core/settings.hpp"
#include "neyman/simulators/expression.hpp"

// How a distribution reads its table of a study. What does not fit becomes a problem of the
// settings with file and line; a distribution is then not made.
namespace neyman::detail {

/// θ at which formulas are tried when a study is read: the middle of the ranges and, where it is
/// known, the truth.
std::vector<std::vector<double>> trial_points(const ParameterSpace& parameters);

/// "gamma = 0.5, beta = 1": the parameters with these indices, for messages.
std::string describe_point(const ParameterSpace& parameters, std::span<const double> point,
                           const std::vector<std::size_t>& indices);

/// A number or formula; a problem is noted where it is absent without a fallback, does not parse,
/// or breaks the limits at a trial point.
Expression read_expression(Settings& settings, Key key, const ParameterSpace& parameters,
                           Limits limits = Limits::any(),
                           std::optional<double> fallback = std::nullopt);

/// A list of numbers and formulas.
std::vector<Expression> read_expressions(Settings& settings, Key key,
                                         const ParameterSpace& parameters,
                                         Limits limits = Limits::any());

/// A matrix of numbers and formulas: rows of equal length.
std::vector<std::vector<Expression>> read_expression_rows(Settings& settings, Key key,
                                                          const ParameterSpace& parameters);

/// Events of a file: `file`, `columns` (all but the weights where absent), `weights` (a column).
struct Events {
  Matrix x;
  std::vector<double> weights;
  std::vector<std::string> names;  ///< of the features, where the file has names
};
std::optional<Events> read_events(Settings& settings, const std::string& folder,
                                  Key::Presence presence = Key::required);

}  // namespace neyman::detail
