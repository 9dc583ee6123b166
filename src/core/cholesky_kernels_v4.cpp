#define NEYMAN_KERNELS_ISA v4
#include "core/cholesky_kernels_impl.hpp"
