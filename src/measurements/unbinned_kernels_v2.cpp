#define NEYMAN_KERNELS_ISA v2
#include "measurements/unbinned_kernels_impl.hpp"
