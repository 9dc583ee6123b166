#define NEYMAN_KERNELS_ISA v4
#include "core/vector_math_impl.hpp"
