#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "neyman/diagnostics/diagnostic.hpp"
#include "neyman/diagnostics/ratio_events.hpp"

namespace neyman {

/// The names of the diagnostics that look at the events of one ratio, in the order of the room's
/// list.
std::vector<std::string> ratio_diagnostics();
/// One of them with its default settings; `seed` is for those that train or draw.
/// @throw ArgumentError on an unknown name, with the candidates.
Diagnostic diagnose_events(const std::string& name, const RatioEvents& events, std::uint64_t seed);

}  // namespace neyman
