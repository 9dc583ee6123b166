#define NEYMAN_KERNELS_ISA v3
#include "calibration/score_kernels_impl.hpp"
