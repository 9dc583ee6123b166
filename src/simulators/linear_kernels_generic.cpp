#define NEYMAN_KERNELS_ISA generic
#include "simulators/linear_kernels_impl.hpp"
