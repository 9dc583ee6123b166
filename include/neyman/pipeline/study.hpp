#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "neyman/core/parameters.hpp"
#include "neyman/data/reader.hpp"
#include "neyman/inference/ensemble.hpp"
#include "neyman/inference/hypothesis_test.hpp"
#include "neyman/ratios/cross_fit.hpp"
#include "neyman/simulators/mixture.hpp"

namespace neyman {

/// What a study file asks for, read and validated. docs/study.md describes the file.
struct Study {
  std::string file;    ///< where it was read from
  std::string folder;  ///< relative file names in it start here

  std::string name;
  std::uint64_t seed = 1;
  ParameterSpace parameters;
  std::shared_ptr<const Mixture> simulator;
  std::vector<double> reference;  ///< θ1

  std::size_t training_samples = 200000;  ///< simulated events in all, shared by the components
  RatioConfig learning;

  struct Data {
    std::optional<std::string> file;
    ReadOptions options;
    std::size_t events = 5000;  ///< simulated at the truth where there is no file
  } data;

  std::vector<double> levels = {0.683, 0.95};
  std::size_t scan_points = 101;
  std::optional<SimpleTestConfig> test;
  std::optional<EnsembleConfig> ensemble;

  /// Ratios between θ0 and the reference, learned by several classifiers, beside the exact one.
  struct Compare {
    std::vector<double> point;  ///< θ0
    std::vector<std::shared_ptr<const Classifier>> classifiers;
    std::size_t evaluation_events = 100000;
  };
  std::optional<Compare> compare;

  std::string title;
  bool figures = true;
};

/// Reads a study and validates all of it: keys, types, ranges, expressions, files and columns.
/// @throw StudyError with every problem, each with file and line; FileError where the file
///   cannot be read.
Study read_study(const std::string& path);
/// The same from a text; `folder` is where relative file names start.
Study parse_study(const std::string& text, const std::string& name, const std::string& folder);

/// Gives a study another seed, everywhere it is used.
void reseed(Study& study, std::uint64_t seed);

/// The values of a θ given as a table, for example { gamma = 0.05 }; parameters that are not
/// named take `fallback`.
std::vector<double> read_point(Settings table, const ParameterSpace& parameters,
                               const std::vector<double>& fallback);

}  // namespace neyman
