#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

// Kernels that are compiled once for each instruction set: structs of functions with the `name` of
// their set, which is "v2", "v3", "v4" (of x86-64; v2 runs everywhere) or "generic".
namespace neyman::detail {

bool runs_instruction_set(std::string_view name);

/// The place of NEYMAN_ISA among `names`; where it is not set, the last.
/// @throw ArgumentError where it names none of them; `function` is named in the message.
std::size_t choose_instruction_set(std::string_view function,
                                   const std::vector<std::string_view>& names);

/// Those that this machine runs, in their order.
template <class Kernels, std::size_t count>
std::vector<const Kernels*> supported(const Kernels* const (&all)[count]) {
  std::vector<const Kernels*> out;
  for (const Kernels* one : all)
    if (runs_instruction_set(one->name)) out.push_back(one);
  return out;
}

/// Of kernels that this machine runs, those that NEYMAN_ISA names, or else the last.
template <class Kernels>
const Kernels& choose(std::string_view function, const std::vector<const Kernels*>& kernels) {
  std::vector<std::string_view> names;
  for (const Kernels* one : kernels) names.emplace_back(one->name);
  return *kernels[choose_instruction_set(function, names)];
}

}  // namespace neyman::detail
