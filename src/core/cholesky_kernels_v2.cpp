#define NEYMAN_KERNELS_ISA v2
#include "core/cholesky_kernels_impl.hpp"
