#pragma once

#include <string>
#include <vector>

#include "neyman/reports/results.hpp"

namespace neyman::reports {

/// The results as the text of results.json, schema neyman.results/1 (docs/results.md).
///
/// Numbers are written so that reading them gives the same bits. JSON has no NaN and no
/// infinity: where a result is not finite, `null` stands in its place, its path is in
/// `not_finite`, and a warning about it is among the warnings of the text.
///
/// What differs between two runs of one study stands under "timing", "threads" and "command"
/// alone.
struct ResultsJson {
  std::string text;
  std::vector<std::string> not_finite;  ///< for example "fit.parameters.gamma.error"
};
ResultsJson results_json(const Results& results);

/// The warning about a result that is not finite.
std::string not_finite_warning(const std::string& path);

}  // namespace neyman::reports
