#include "ratios/periodic_columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"

namespace neyman::across {

std::vector<PeriodicFeature> read_periodic_features(Settings& settings) {
  std::vector<PeriodicFeature> out;
  if (!settings.has("periodic")) return out;
  auto table = settings.table(
      {"periodic",
       "features that are angles, each with its period, such as { angle = [-3.14159, 3.14159] }"});
  for (const auto& name : table.keys())
    if (const auto range = table.range({name, "[low, high]: one whole turn"}))
      out.push_back({name, range->first, range->second});
  return out;
}

PeriodicColumns::PeriodicColumns(const char* function, const std::vector<PeriodicFeature>& angles,
                                 const std::vector<std::string>& feature_names) {
  for (const auto& angle : angles) {
    const auto found = std::find(feature_names.begin(), feature_names.end(), angle.name);
    if (found == feature_names.end())
      throw ArgumentError(fmt::format("{}: periodic: {}", function,
                                      unknown_name(angle.name, "a feature", feature_names)));
    if (!(std::isfinite(angle.low) && std::isfinite(angle.high) && angle.low < angle.high))
      fail_argument(function, "periodic[" + angle.name + "]",
                    fmt::format("[{}, {}]", angle.low, angle.high),
                    "a period: a lower and a higher value");
    const auto column = static_cast<std::size_t>(found - feature_names.begin());
    if (find(column) != nullptr)
      fail_argument(function, "periodic", "'" + angle.name + "' twice", "each feature once");
    periods_.push_back({column, angle.low, angle.high});
  }
}

const PeriodicColumns::Period* PeriodicColumns::find(std::size_t feature) const {
  const auto found = std::find_if(periods_.begin(), periods_.end(),
                                  [&](const Period& p) { return p.column == feature; });
  return found == periods_.end() ? nullptr : &*found;
}

MatrixView PeriodicColumns::told(MatrixView x, Matrix& room) const {
  if (empty()) return x;
  constexpr double two_pi = 6.283185307179586;
  room = Matrix(x.rows(), x.cols() + size());
  for (std::size_t i = 0; i < x.rows(); ++i) {
    const auto to = room.row(i);
    std::copy_n(x.row(i).data(), x.cols(), to.data());
    for (std::size_t a = 0; a < size(); ++a) {
      const auto& period = periods_[a];
      const double phase = two_pi * (x(i, period.column) - period.low) / (period.high - period.low);
      to[period.column] = std::cos(phase);
      to[x.cols() + a] = std::sin(phase);
    }
  }
  return room;
}

void PeriodicColumns::save(Archive& archive) const {
  if (empty()) return;
  Matrix out(size(), 3);
  for (std::size_t a = 0; a < size(); ++a) {
    out(a, 0) = static_cast<double>(periods_[a].column);
    out(a, 1) = periods_[a].low;
    out(a, 2) = periods_[a].high;
  }
  archive.set("angles", out);
}

PeriodicColumns PeriodicColumns::load(const Archive& archive, std::size_t features) {
  PeriodicColumns out;
  if (!archive.has("angles")) return out;
  const auto& saved = archive.get<Matrix>("angles");
  bool fits = saved.cols() == 3 && saved.rows() <= features;
  for (std::size_t a = 0; fits && a < saved.rows(); ++a) {
    const double column = saved(a, 0);
    fits = column >= 0.0 && column < static_cast<double>(features) &&
           column == std::floor(column) && std::isfinite(saved(a, 1)) &&
           std::isfinite(saved(a, 2)) && saved(a, 1) < saved(a, 2);
    if (!fits) break;
    fits = out.find(static_cast<std::size_t>(column)) == nullptr;
    out.periods_.push_back({static_cast<std::size_t>(column), saved(a, 1), saved(a, 2)});
  }
  if (!fits) throw FileError("the periods of the features do not belong to them");
  return out;
}

}  // namespace neyman::across
