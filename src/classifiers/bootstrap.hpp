#pragma once

#include <cmath>
#include <cstdint>

#include "neyman/data/splits.hpp"

namespace neyman {

/// The draw of Exp(1) that multiplies the weights of a row, or of a group of rows, wherever it is
/// met: the Bayesian bootstrap (Rubin 1981).
inline double bootstrap_draw(std::int64_t id, std::uint64_t seed) {
  return -std::log1p(-hashed(id, seed));
}

}  // namespace neyman
