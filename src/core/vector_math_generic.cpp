#define NEYMAN_KERNELS_ISA generic
#include "core/vector_math_impl.hpp"
