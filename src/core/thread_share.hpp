#pragma once

#include <cstddef>

namespace neyman {

/// How many threads the caller may keep busy: all of the library's, and inside of a parallel loop
/// its share of them.
std::size_t thread_share();

}  // namespace neyman
