#define NEYMAN_KERNELS_ISA v2
#include "inference/mixture_kernels_impl.hpp"
