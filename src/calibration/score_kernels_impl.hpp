// The kernels of score_kernels.hpp as loops that compilers turn into vectors; included once for
// each instruction set, by a source that defines NEYMAN_KERNELS_ISA and is compiled with the
// options of that set. Everything here has internal linkage: no function compiled for one set can
// serve another.
#include "calibration/score_kernels.hpp"

namespace neyman::calibration::score_kernels {
namespace {

constexpr std::size_t lanes = 16;

Extent find_extent(const double* values, std::size_t count) {
  double low[lanes], high[lanes], zero[lanes];
  for (std::size_t l = 0; l < lanes; ++l) {
    low[l] = __builtin_inf();
    high[l] = -__builtin_inf();
    zero[l] = 0.0;
  }
  const auto include = [&](double z, std::size_t l) {
    low[l] = z < low[l] ? z : low[l];
    high[l] = z > high[l] ? z : high[l];
    zero[l] += z * 0.0;  // not 0 where z is not finite
  };
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes)
    for (std::size_t l = 0; l < lanes; ++l) include(values[i + l], l);
  for (; i < count; ++i) include(values[i], 0);
  Extent out{low[0], high[0], zero[0] == 0.0};
  for (std::size_t l = 1; l < lanes; ++l) {
    out.low = low[l] < out.low ? low[l] : out.low;
    out.high = high[l] > out.high ? high[l] : out.high;
    out.finite = out.finite && zero[l] == 0.0;
  }
  return out;
}

void find_cells(const double* values, std::size_t count, double top, double scale,
                std::uint16_t last, std::uint16_t* __restrict out) {
  const double most = last;
  for (std::size_t i = 0; i < count; ++i) {
    const double place = (top - values[i]) * scale;
    out[i] = static_cast<std::uint16_t>(static_cast<std::int32_t>(place < most ? place : most));
  }
}

}  // namespace

NEYMAN_DEFINE_KERNELS(find_extent, find_cells);

}  // namespace neyman::calibration::score_kernels
