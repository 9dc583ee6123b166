#define NEYMAN_KERNELS_ISA v3
#include "measurements/unbinned_kernels_impl.hpp"
