#define NEYMAN_KERNELS_ISA v4
#include "classifiers/mlp_kernels_impl.hpp"
