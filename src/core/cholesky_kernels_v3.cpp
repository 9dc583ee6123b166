#define NEYMAN_KERNELS_ISA v3
#include "core/cholesky_kernels_impl.hpp"
