#pragma once

#include <string>
#include <vector>

#include "neyman/measurements/measurement_summary.hpp"

// Measurements of the shapes that figures must cope with.
namespace neyman::example {

/// A signal over a background of two samples in so many bins of two channels, with so many nuisance
/// parameters.
inline Workspace search(std::size_t bins, std::size_t nuisance,
                        const std::string& prefix = "alpha_") {
  Workspace out;
  for (const std::string channel : {"signal_region", "control"}) {
    BinnedChannel one{channel, {}, {}};
    BinnedSample signal{"signal", {}, {Modifier::norm_factor("mu")}}, large{"top", {}, {}},
        small{"z_jets", {}, {}};
    for (std::size_t b = 0; b < bins; ++b) {
      const auto x = static_cast<double>(b) / static_cast<double>(bins);
      signal.yields.push_back(channel == "control" ? 1.0 : 6.0 + 20.0 * x * x);
      large.yields.push_back(80.0 - 50.0 * x);
      small.yields.push_back(25.0 - 5.0 * x);
      one.observed.push_back(static_cast<double>(108 - 40 * b / bins + (b * 7) % 11));
    }
    for (std::size_t k = 0; k < nuisance; ++k) {
      const auto name = prefix + std::to_string(k);
      const double size = 0.08 / (1.0 + 0.3 * static_cast<double>(k));
      (k % 2 == 0 ? large : small)
          .modifiers.push_back(Modifier::norm_sys(name, 1.0 - size, 1.0 + 1.1 * size));
    }
    one.samples = {signal, large, small};
    out.channels.push_back(one);
  }
  out.measurements = {{"search", "mu", {{"mu", {1.0}, {{0.0, 10.0}}}}}};
  return out;
}

inline MeasurementSummary measured(const Workspace& workspace,
                                   const MeasurementOptions& options = {}) {
  const StatisticalModel model(workspace);
  return summarise(model, model.observed(), options);
}

}  // namespace neyman::example
