#pragma once

#include <string>
#include <vector>

#include "neyman/core/error.hpp"
#include "neyman/pipeline/study.hpp"

namespace neyman::test {

/// Two shifted normals of one width, whose log ratio is linear in x: a logistic classifier is of
/// the right form, so that a study of some thousand events is both quick and accurate.
inline const std::string small_study = R"([study]
name = "small"
seed = 3

[parameters]
gamma = { range = [0, 1], truth = 0.3 }

[simulator]
kind = "mixture"
weights = ["1 - gamma", "gamma"]
components = [
  { name = "background", kind = "normal", mean = 0, sigma = 1 },
  { name = "signal", kind = "normal", mean = 2, sigma = 1 },
]

[reference]
gamma = 0.1

[training]
samples = 4001
folds = 2

[classifier]
kind = "logistic"

[calibration]
kind = "sigmoid"
replicas = 10

[diagnostics]
events = 400

[data]
events = 500
)";

/// A study's text with one part of it replaced by another.
inline std::string edited(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  if (at == std::string::npos) throw ArgumentError("edited: there is no \"" + from + "\"");
  return text.replace(at, from.size(), to);
}

inline std::string with(const std::string& from, const std::string& to) {
  return edited(small_study, from, to);
}

inline Study parse(const std::string& text, const std::string& folder = ".") {
  return parse_study(text, "study.toml", folder);
}

/// Every problem of a text, as a user reads it.
inline std::vector<std::string> problems_of(const std::string& text,
                                            const std::string& folder = ".") {
  std::vector<std::string> out;
  try {
    parse(text, folder);
  } catch (const StudyError& error) {
    for (const auto& problem : error.problems()) out.push_back(to_string(problem));
  }
  return out;
}

}  // namespace neyman::test
