#define NEYMAN_KERNELS_ISA v2
#include "core/random_kernels_impl.hpp"
