#define NEYMAN_KERNELS_ISA v2
#include "classifiers/mlp_kernels_impl.hpp"
