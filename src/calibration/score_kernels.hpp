#pragma once

#include <cstddef>
#include <cstdint>

#include "core/kernel_sets.hpp"

// Passes over many scores, compiled once for each instruction set. Plain structs and pointers only:
// this header is included where the compiler may use instructions that the machine does not have,
// so it must not bring in inline functions of the library.
//
// Every set gives the same bits: no result has more than one difference and one product.
namespace neyman::calibration::score_kernels {

struct Extent {
  double low, high;  ///< of the values that are numbers; low > high: there are none
  bool finite;       ///< whether all are
};

struct Kernels {
  const char* name;
  Extent (*find_extent)(const double* values, std::size_t count);
  /// The whole part of (top − z) · scale of each, at most `last`; no z is above `top`.
  void (*find_cells)(const double* values, std::size_t count, double top, double scale,
                     std::uint16_t last, std::uint16_t* out);
  /// Bits that sort as unsigned integers in the order of the values, for values of single
  /// precision, as many classifiers give; −0 becomes 0. False where some are not.
  bool (*to_float_keys)(const double* values, std::size_t count, std::uint32_t* keys);
  void (*from_float_keys)(const std::uint32_t* keys, std::size_t count, double* values);
};

NEYMAN_DECLARE_KERNELS;

/// Those of this machine; see core/instruction_set.hpp.
const Kernels& kernels();

}  // namespace neyman::calibration::score_kernels
