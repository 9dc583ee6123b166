#define NEYMAN_KERNELS_ISA v4
#include "measurements/unbinned_kernels_impl.hpp"
