#pragma once

#include <array>
#include <string>
#include <string_view>

#include "neyman/reports/figure.hpp"

// What the figures and the page share: colours and fonts.
namespace neyman::reports {

inline constexpr std::string_view font_stack =
    "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Noto Sans', 'DejaVu Sans', "
    "sans-serif";

struct PaletteColour {
  std::string_view name, light, dark;
};

// The roles in their order, then text, axes and grid. After the palettes of Okabe and Ito,
// darkened to a contrast of 3 or more on white, and lightened for dark ground. No two light
// colours are equal: adapt_svg tells roles by their colour.
inline constexpr std::array<PaletteColour, 23> palette = {{
    {"exact", "#24292f", "#f0f3f6"},
    {"approximate", "#cf4a00", "#ff8a4c"},
    {"uncalibrated", "#c77c02", "#f2b33d"},
    {"calibrated", "#0072b2", "#56b4f5"},
    {"decomposed", "#008a64", "#2fcf9e"},
    {"data", "#30363d", "#e6edf3"},
    {"numerator", "#8250c4", "#b794f6"},
    {"denominator", "#5a7184", "#a3b8c9"},
    {"band68", "#2a7fb8", "#4aa8e8"},
    {"band95", "#2b80b9", "#4ba9e9"},
    {"reference", "#6a737d", "#a0a8b1"},
    {"first", "#3596d4", "#6cc3ff"},
    {"second", "#c9920e", "#f0c244"},
    {"third", "#b8578f", "#e78fc0"},
    {"truth", "#d3222d", "#ff6b6b"},
    {"exact_estimate", "#1d8a3c", "#4cd471"},
    {"learned_estimate", "#1666d6", "#62a8ff"},
    {"light", "#fefefe", "#fefefe"},
    {"dark", "#12161a", "#12161a"},
    {"ink", "#1f2328", "#e8edf2"},
    {"muted", "#57606a", "#a5adb6"},
    {"axis", "#8c959f", "#6e7681"},
    {"grid", "#e6e9ed", "#2b3138"},
}};

constexpr std::string_view chrome_colour(std::string_view name) {
  for (const auto& colour : palette)
    if (colour.name == name) return colour.light;
  return {};
}
inline constexpr std::string_view ink = chrome_colour("ink"), muted = chrome_colour("muted"),
                                  axis_grey = chrome_colour("axis"),
                                  grid_grey = chrome_colour("grid");

inline constexpr std::string_view light_ground = "#ffffff", dark_ground = "#14171a";

constexpr const PaletteColour& role_style(Role role) {
  return palette[static_cast<std::size_t>(role)];
}

/// The style rules that give figures their colours on dark ground.
std::string palette_css();

}  // namespace neyman::reports
