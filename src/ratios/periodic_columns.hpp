#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "neyman/core/archive.hpp"
#include "neyman/core/matrix.hpp"
#include "neyman/core/settings.hpp"
#include "neyman/data/samples.hpp"

namespace neyman::across {

/// The key `periodic` of a [classifier] table.
std::vector<PeriodicFeature> read_periodic_features(Settings& settings);

/// Which features are angles, and their periods.
class PeriodicColumns {
 public:
  struct Period {
    std::size_t column;
    double low, high;
  };

  PeriodicColumns() = default;
  /// @throw ArgumentError where no feature has the name, one is named twice, or a period is empty
  ///   or not finite.
  PeriodicColumns(const char* function, const std::vector<PeriodicFeature>& angles,
                  const std::vector<std::string>& feature_names);

  bool empty() const { return periods_.empty(); }
  std::size_t size() const { return periods_.size(); }
  auto begin() const { return periods_.begin(); }
  auto end() const { return periods_.end(); }
  /// Null where a feature is no angle.
  const Period* find(std::size_t feature) const;

  /// The events with each angle told by its cosine, in its place, and its sine, behind all
  /// features. Where nothing is an angle they are x itself, else they are put into `room`.
  MatrixView told(MatrixView x, Matrix& room) const;

  /// As the value "angles".
  void save(Archive& archive) const;
  /// None where there is no such value. @throw FileError where it does not fit the features.
  static PeriodicColumns load(const Archive& archive, std::size_t features);

 private:
  std::vector<Period> periods_;
};

}  // namespace neyman::across
