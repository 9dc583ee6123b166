#define NEYMAN_KERNELS_ISA v2
#include "calibration/score_kernels_impl.hpp"
