#define NEYMAN_KERNELS_ISA v3
#include "core/random_kernels_impl.hpp"
