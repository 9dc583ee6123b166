#define NEYMAN_KERNELS_ISA generic
#include "measurements/unbinned_kernels_impl.hpp"
