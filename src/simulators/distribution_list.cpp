#include <fmt/format.h>
#include <fmt/ranges.h>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/simulators/command.hpp"
#include "neyman/simulators/distribution.hpp"
#include "neyman/simulators/empirical.hpp"
#include "neyman/simulators/exponential.hpp"
#include "neyman/simulators/files.hpp"
#include "neyman/simulators/g_and_k.hpp"
#include "neyman/simulators/histogram.hpp"
#include "neyman/simulators/join.hpp"
#include "neyman/simulators/kde.hpp"
#include "neyman/simulators/linear_transform.hpp"
#include "neyman/simulators/mixture.hpp"
#include "neyman/simulators/multivariate_normal.hpp"
#include "neyman/simulators/normal.hpp"
#include "neyman/simulators/plugin.hpp"
#include "neyman/simulators/ricker.hpp"
#include "neyman/simulators/uniform.hpp"

namespace neyman {

namespace {

struct Entry {
  const char* kind;
  DistributionPtr (*make)(Settings, const ParameterSpace&, const std::string& folder);
};

// The list: a distribution that stands here can be named in a study and is run through the
// conformance tests.
constexpr Entry entries[] = {
    {"normal", Normal::make},
    {"multivariate-normal", MultivariateNormal::make},
    {"exponential", Exponential::make},
    {"uniform", Uniform::make},
    {"mixture", Mixture::make},
    {"join", Join::make},
    {"linear-transform", LinearTransform::make},
    {"histogram", Histogram::make},
    {"kde", Kde::make},
    {"empirical", Empirical::make},
    {"g-and-k", GAndK::make},
    {"ricker", Ricker::make},
    {"command", Command::make},
    {"plugin", Plugin::make},
    {"files", Files::make},
};

}  // namespace

std::vector<std::string> distribution_kinds() {
  std::vector<std::string> out;
  for (const auto& entry : entries) out.emplace_back(entry.kind);
  return out;
}

DistributionPtr make_distribution(Settings settings, const ParameterSpace& parameters,
                                  const std::string& folder) {
  const auto kind = settings.text("kind", "");
  if (!settings.has("kind")) {
    settings.problem("kind", fmt::format("is missing, but must be one of {}",
                                         fmt::join(distribution_kinds(), ", ")));
    return nullptr;
  }
  if (!settings.is_text("kind")) return nullptr;
  for (const auto& entry : entries) {
    if (kind != entry.kind) continue;
    const std::size_t before = settings.problems().size();
    try {
      auto made = entry.make(settings, parameters, folder);
      return settings.problems().size() == before ? made : nullptr;
    } catch (const ArgumentError& error) {
      if (settings.problems().size() == before)
        settings.problem("kind", "does not hold: " + error.reason());
      return nullptr;
    }
  }
  settings.problem("kind", fmt::format("is \"{}\", but must be one of {}", kind,
                                       candidates_for(kind, distribution_kinds())));
  return nullptr;
}

}  // namespace neyman
