#define NEYMAN_KERNELS_ISA v3
#include "simulators/linear_kernels_impl.hpp"
