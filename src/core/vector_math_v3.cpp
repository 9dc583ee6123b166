#define NEYMAN_KERNELS_ISA v3
#include "core/vector_math_impl.hpp"
