#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace neyman::reports {

/// A part of a text that stands on the line, or below it.
struct TextPiece {
  std::string text;
  bool low = false;
};

/// Texts are plain: an index follows its letter after an underscore. "CL_s", "θ̂_a", "μ_jet_scale"
/// and "x_1" have the indices "s", "a", "jet scale" and "1". Names of several letters before an
/// underscore are names of the user and stay as they are, as do names of files and "a_long_name".
std::vector<TextPiece> text_pieces(std::string_view text);

}  // namespace neyman::reports
