#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Checks of arguments. Each throws ArgumentError in the one form
// "function: name is value, but must be condition", and names the index where there is one.
namespace neyman {

[[noreturn]] void fail_argument(std::string_view function, std::string_view name,
                                std::string_view value, std::string_view condition);

void check_finite(std::string_view function, std::string_view name, double value);
void check_finite(std::string_view function, std::string_view name, std::span<const double> values);
void check_positive(std::string_view function, std::string_view name, double value);
void check_non_negative(std::string_view function, std::string_view name,
                        std::span<const double> values);
void check_in_range(std::string_view function, std::string_view name, double value, double low,
                    double high);
void check_at_least(std::string_view function, std::string_view name, std::size_t value,
                    std::size_t least);
/// Two sizes that must agree: "fit: labels has 10 values, but must have 12 (one for each row)".
void check_same_size(std::string_view function, std::string_view name, std::size_t size,
                     std::size_t expected, std::string_view meaning);

/// "logistic, mlp (did you mean 'mlp'?)"
std::string candidates_for(std::string_view name, const std::vector<std::string>& candidates);

/// "'mpl' is not a classifier; candidates are logistic, mlp (did you mean mlp?)"
std::string unknown_name(std::string_view name, std::string_view what,
                         const std::vector<std::string>& candidates);

}  // namespace neyman
