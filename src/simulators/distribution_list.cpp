#include <algorithm>
#include <iterator>

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
  const char* meaning;
  DistributionPtr (*make)(Settings, const ParameterSpace&, const std::string& folder);
};

// The list: a distribution that stands here can be named in a study and is run through the
// conformance tests.
constexpr Entry entries[] = {
    {"normal", "a normal distribution", Normal::make},
    {"multivariate-normal", "correlated normal features", MultivariateNormal::make},
    {"exponential", "an exponential distribution", Exponential::make},
    {"uniform", "a uniform distribution", Uniform::make},
    {"mixture", "a sum of distributions with weights", Mixture::make},
    {"join", "independent distributions side by side", Join::make},
    {"linear-transform", "another distribution, transformed: x = A z + b", LinearTransform::make},
    {"histogram", "a histogram, given or filled from a file", Histogram::make},
    {"kde", "a kernel density of events of a file", Kde::make},
    {"empirical", "events drawn from a file", Empirical::make},
    {"g-and-k", "the g-and-k distribution", GAndK::make},
    {"ricker", "the Ricker model of a population, counted", Ricker::make},
    {"command", "a program of your own", Command::make},
    {"plugin", "a shared library of your own", Plugin::make},
    {"files", "events made before, in files", Files::make},
};

}  // namespace

std::vector<std::string> distribution_kinds() {
  std::vector<std::string> out;
  for (const auto& entry : entries) out.emplace_back(entry.kind);
  return out;
}

DistributionPtr make_distribution(Settings settings, const ParameterSpace& parameters,
                                  const std::string& folder) {
  if (const auto given = settings.object<DistributionObject>("object")) {
    for (const char* key : {"kind", "fingerprint", "name"}) settings.skip(key);
    try {
      auto made = given->make ? given->make(parameters) : nullptr;
      if (made == nullptr) settings.problem("object", "is empty, but must make a distribution");
      return made;
    } catch (const ArgumentError& error) {
      settings.problem("", error.reason());
      return nullptr;
    }
  }
  Kinds kinds{"simulator", "how events are made", "", {}};
  for (const auto& entry : entries) kinds.names.emplace_back(entry.kind, entry.meaning);
  return settings.by_kind(kinds, [&](const std::string& kind, Settings table) -> DistributionPtr {
    const auto* entry = std::find_if(std::begin(entries), std::end(entries),
                                     [&](const Entry& known) { return known.kind == kind; });
    const std::size_t before = table.problems().size();
    try {
      auto made = entry->make(table, parameters, folder);
      return table.problems().size() == before ? made : nullptr;
    } catch (const ArgumentError& error) {
      if (table.problems().size() == before)
        table.problem("kind", "does not hold: " + error.reason());
      return nullptr;
    }
  });
}

}  // namespace neyman
