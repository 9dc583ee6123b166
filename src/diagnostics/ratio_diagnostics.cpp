#include "neyman/diagnostics/ratio_diagnostics.hpp"

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/diagnostics/closure.hpp"
#include "neyman/diagnostics/normalisation.hpp"
#include "neyman/diagnostics/reliability.hpp"
#include "neyman/diagnostics/reweighting.hpp"

namespace neyman {

namespace {

struct Entry {
  const char* name;
  Diagnostic (*run)(const RatioEvents& events, std::uint64_t seed);
};

// One line for each: its name in a study, and how it is run.
const Entry entries[] = {
    {"reweighting",
     [](const RatioEvents& events, std::uint64_t seed) {
       ReweightingConfig config;
       config.seed = seed;
       return diagnose_reweighting(events, config);
     }},
    {"normalisation",
     [](const RatioEvents& events, std::uint64_t) { return diagnose_normalisation(events); }},
    {"reliability",
     [](const RatioEvents& events, std::uint64_t) { return diagnose_reliability(events); }},
    {"closure", [](const RatioEvents& events, std::uint64_t) { return diagnose_closure(events); }},
};

}  // namespace

std::vector<std::string> ratio_diagnostics() {
  std::vector<std::string> names;
  for (const auto& entry : entries) names.emplace_back(entry.name);
  return names;
}

Diagnostic diagnose_events(const std::string& name, const RatioEvents& events, std::uint64_t seed) {
  for (const auto& entry : entries)
    if (name == entry.name) return entry.run(events, seed);
  throw ArgumentError("diagnose_events: " +
                      unknown_name(name, "a diagnostic", ratio_diagnostics()));
}

}  // namespace neyman
