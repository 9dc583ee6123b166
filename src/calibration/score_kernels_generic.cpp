#define NEYMAN_KERNELS_ISA generic
#include "calibration/score_kernels_impl.hpp"
