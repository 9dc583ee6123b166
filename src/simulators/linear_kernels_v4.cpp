#define NEYMAN_KERNELS_ISA v4
#include "simulators/linear_kernels_impl.hpp"
