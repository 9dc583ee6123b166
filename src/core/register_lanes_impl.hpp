// For kernels (kernel_sets.hpp) in vectors of the machine's own width: of wider ones compilers keep
// sums in memory. Internal linkage, as its value differs between instruction sets.
#pragma once

#include <cstddef>

namespace neyman {
namespace {

/// How many doubles a register holds.
#if defined(__AVX512F__)
constexpr std::size_t register_lanes = 8;
#elif defined(__AVX2__)
constexpr std::size_t register_lanes = 4;
#else
constexpr std::size_t register_lanes = 2;
#endif

}  // namespace
}  // namespace neyman
