#define NEYMAN_KERNELS_ISA v2
#include "core/vector_math_impl.hpp"
