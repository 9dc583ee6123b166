#define NEYMAN_KERNELS_ISA v4
#include "calibration/score_kernels_impl.hpp"
