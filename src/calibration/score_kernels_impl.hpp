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

constexpr std::uint32_t sign_bit = 0x80000000U;

bool to_float_keys(const double* values, std::size_t count, std::uint32_t* __restrict keys) {
  constexpr std::size_t part = 4096;
  for (std::size_t begin = 0; begin < count; begin += part) {
    const std::size_t end = begin + part < count ? begin + part : count;
    std::uint32_t different = 0;
    for (std::size_t i = begin; i < end; ++i) {
      const float value = static_cast<float>(values[i]) + 0.0F;
      different |= static_cast<double>(value) != values[i] ? 1U : 0U;
      std::int32_t bits;
      __builtin_memcpy(&bits, &value, sizeof bits);
      keys[i] =
          static_cast<std::uint32_t>(bits) ^ (static_cast<std::uint32_t>(bits >> 31) | sign_bit);
    }
    if (different != 0) return false;
  }
  return true;
}

void from_float_keys(const std::uint32_t* keys, std::size_t count, double* __restrict values) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto negative = ~static_cast<std::uint32_t>(static_cast<std::int32_t>(keys[i]) >> 31);
    const std::uint32_t bits = keys[i] ^ (negative | sign_bit);
    float value;
    __builtin_memcpy(&value, &bits, sizeof value);
    values[i] = static_cast<double>(value);
  }
}

}  // namespace

NEYMAN_DEFINE_KERNELS(find_extent, find_cells, to_float_keys, from_float_keys);

}  // namespace neyman::calibration::score_kernels
