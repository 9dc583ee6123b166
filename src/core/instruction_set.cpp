#include "core/instruction_set.hpp"

#include <cstdlib>
#include <string>

#include "neyman/core/check.hpp"

namespace neyman::detail {

bool runs_instruction_set(std::string_view name) {
#if defined(__x86_64__)
  if (name == "v4") {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512cd");
  }
  if (name == "v3") {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  }
#endif
  (void)name;
  return true;
}

std::size_t choose_instruction_set(std::string_view function,
                                   const std::vector<std::string_view>& names) {
  const char* wanted = std::getenv("NEYMAN_ISA");
  if (!wanted || !*wanted) return names.size() - 1;
  std::string all;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == wanted) return i;
    all += (all.empty() ? "" : ", ") + std::string(names[i]);
  }
  fail_argument(function, "NEYMAN_ISA", wanted, "one of " + all + " on this machine");
}

}  // namespace neyman::detail
