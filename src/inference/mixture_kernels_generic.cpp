#define NEYMAN_KERNELS_ISA generic
#include "inference/mixture_kernels_impl.hpp"
