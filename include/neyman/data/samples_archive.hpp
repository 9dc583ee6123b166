#pragma once

#include "neyman/core/archive.hpp"
#include "neyman/data/samples.hpp"

namespace neyman {

/// Puts events into a tree, from which they come back with the same bits.
void save_samples(const Samples& samples, Archive& archive);
/// @throw FileError where an entry is absent or of another type.
Samples load_samples(const Archive& archive);

}  // namespace neyman
