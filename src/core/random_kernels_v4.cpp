#define NEYMAN_KERNELS_ISA v4
#include "core/random_kernels_impl.hpp"
