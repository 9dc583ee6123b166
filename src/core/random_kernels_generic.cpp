#define NEYMAN_KERNELS_ISA generic
#include "core/random_kernels_impl.hpp"
