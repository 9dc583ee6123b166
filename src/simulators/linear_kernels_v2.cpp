#define NEYMAN_KERNELS_ISA v2
#include "simulators/linear_kernels_impl.hpp"
