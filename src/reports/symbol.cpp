#include "neyman/reports/symbol.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "neyman/core/check.hpp"
#include "neyman/reports/terminal.hpp"

namespace neyman::reports {

namespace {

using Letter = std::pair<std::string_view, std::string_view>;

// Capitals only where they do not look like Latin letters.
constexpr std::array<Letter, 35> letters = {{
    {"alpha", "α"},  {"beta", "β"},    {"gamma", "γ"},  {"delta", "δ"}, {"epsilon", "ε"},
    {"zeta", "ζ"},   {"eta", "η"},     {"theta", "θ"},  {"iota", "ι"},  {"kappa", "κ"},
    {"lambda", "λ"}, {"mu", "μ"},      {"nu", "ν"},     {"xi", "ξ"},    {"omicron", "ο"},
    {"pi", "π"},     {"rho", "ρ"},     {"sigma", "σ"},  {"tau", "τ"},   {"upsilon", "υ"},
    {"phi", "φ"},    {"chi", "χ"},     {"psi", "ψ"},    {"omega", "ω"}, {"Gamma", "Γ"},
    {"Delta", "Δ"},  {"Theta", "Θ"},   {"Lambda", "Λ"}, {"Xi", "Ξ"},    {"Pi", "Π"},
    {"Sigma", "Σ"},  {"Upsilon", "Υ"}, {"Phi", "Φ"},    {"Psi", "Ψ"},   {"Omega", "Ω"},
}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string subscript(std::string_view digits) {
  static constexpr std::array<std::string_view, 10> signs = {"₀", "₁", "₂", "₃", "₄",
                                                             "₅", "₆", "₇", "₈", "₉"};
  std::string out;
  for (const char c : digits) out += signs[static_cast<std::size_t>(c - '0')];
  return out;
}

}  // namespace

std::string symbol(std::string_view name) {
  const auto end =
      std::find_if(name.begin(), name.end(), [](char c) { return c == '_' || is_digit(c); });
  const auto word = name.substr(0, static_cast<std::size_t>(end - name.begin()));
  const auto rest = name.substr(word.size());
  const auto letter = std::find_if(letters.begin(), letters.end(),
                                   [&](const Letter& l) { return l.first == word; });
  if (letter == letters.end()) return std::string(name);
  const auto digits = rest.starts_with('_') ? rest.substr(1) : rest;
  const bool number = !digits.empty() && std::all_of(digits.begin(), digits.end(), is_digit);
  return std::string(letter->second) + (number ? subscript(digits) : std::string(rest));
}

std::string point_words(const ParameterSpace& parameters, std::span<const double> point,
                        int digits) {
  check_same_size("point_words", "point", point.size(), parameters.size(),
                  "one for each parameter");
  std::string out;
  for (std::size_t p = 0; p < point.size(); ++p)
    out += (p == 0 ? "" : ", ") + symbol(parameters[p].name) + "\u00a0=\u00a0" +
           format_number(point[p], digits);
  return out;
}

}  // namespace neyman::reports
