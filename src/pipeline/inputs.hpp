#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "neyman/pipeline/study.hpp"

namespace neyman::pipeline {

/// What a stage depends on, as a text that two studies share where the stage gives both the same.
class Inputs {
 public:
  explicit Inputs(const Study& study) : study_(study) {}

  /// A table or a key of the study, such as "inference.levels", without some of its keys. Comments
  /// and the order of keys do not count, nor how a number is written. A file that a text in it
  /// names, alone or as a word of a command, counts with its content.
  Inputs& setting(const std::string& path, const std::vector<std::string>& except = {});
  /// All tables but these.
  Inputs& all_but(const std::vector<std::string>& tables);
  /// Anything else, by name.
  Inputs& value(std::string_view name, std::string_view text);
  Inputs& value(std::string_view name, const std::vector<double>& numbers);

  const std::string& text() const { return text_; }

 private:
  const Study& study_;
  std::string text_;
};

}  // namespace neyman::pipeline
