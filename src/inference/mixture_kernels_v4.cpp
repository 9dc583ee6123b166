#define NEYMAN_KERNELS_ISA v4
#include "inference/mixture_kernels_impl.hpp"
