#define NEYMAN_KERNELS_ISA generic
#include "core/cholesky_kernels_impl.hpp"
