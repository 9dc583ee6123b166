#define NEYMAN_KERNELS_ISA generic
#include "classifiers/mlp_kernels_impl.hpp"
