#define NEYMAN_KERNELS_ISA v3
#include "inference/mixture_kernels_impl.hpp"
