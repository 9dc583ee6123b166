#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "neyman/data/reader.hpp"
#include "neyman/data/samples.hpp"

namespace neyman {

// Which columns of a table are the features of a simulator or of a model. Names decide, in whatever
// order the columns are; only columns without names are taken in their order, and that is told.

/// What is done with columns that are no features.
enum class OtherColumns {
  leave_out,
  refuse,  ///< where nobody chose the names of the features (x0, x1, …)
};

/// Where the features are among the columns of a table.
struct FeatureColumns {
  std::vector<std::size_t> places;    ///< of each feature, in the order of the features
  bool by_position = false;           ///< the columns have no names
  std::vector<std::string> left_out;  ///< columns that are no features
};

/// Finds features among columns. `named`: whether the columns have names; those of others are taken
/// by their default names x0, x1, … where the features have these, else in order where there are
/// as many.
/// @throw ArgumentError with both lists where a feature is not there, or another column must not
///   be.
FeatureColumns find_features(const std::vector<std::string>& features,
                             const std::vector<std::string>& columns, bool named,
                             OtherColumns others);

/// How the features are read from files.
struct FeatureReading {
  ReadOptions options;  ///< as given, with the features
  std::string note;     ///< what a user should know of it; empty: all columns have these names
};

/// Finds features in the columns of a file that `options` does not name otherwise.
/// @throw FileError where the file cannot be read or its columns are others.
FeatureReading find_features(const std::string& path, ReadOptions options,
                             const std::vector<std::string>& features, OtherColumns others);

/// The same for events in memory. Those that have no names, or default ones, are taken in order.
/// @throw ArgumentError "function: the events have …" where the columns are others.
Samples with_features(const char* function, const Samples& events,
                      const std::vector<std::string>& features, OtherColumns others,
                      std::string& note);

/// "a, b, c", of many names the first ten.
std::string some_names(const std::vector<std::string>& names);

}  // namespace neyman
