#define NEYMAN_KERNELS_ISA v3
#include "classifiers/mlp_kernels_impl.hpp"
