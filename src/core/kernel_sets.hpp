#pragma once

// Kernels are a struct `Kernels` of functions that begins with the name of an instruction set. A
// source <name>_<set>.cpp for each set defines NEYMAN_KERNELS_ISA, is compiled with the options of
// that set, and includes the one implementation. instruction_set.hpp chooses between them.
//
// Nothing is included here: what the library's own sources share with these must not be compiled
// for instructions that a machine may not have.

/// After `Kernels`: those of each set of this architecture, and `all_kernels`.
#if defined(__x86_64__)
#define NEYMAN_DECLARE_KERNELS                             \
  extern const Kernels kernels_v2, kernels_v3, kernels_v4; \
  inline constexpr const Kernels* all_kernels[] = {&kernels_v2, &kernels_v3, &kernels_v4}
#else
#define NEYMAN_DECLARE_KERNELS          \
  extern const Kernels kernels_generic; \
  inline constexpr const Kernels* all_kernels[] = {&kernels_generic}
#endif

#define NEYMAN_LITERALLY(x) #x
#define NEYMAN_TEXT(x) NEYMAN_LITERALLY(x)
#define NEYMAN_NEXT_TO(a, b) a##b
#define NEYMAN_JOIN(a, b) NEYMAN_NEXT_TO(a, b)

/// At the end of an implementation: the functions of this set, in the order of `Kernels`.
#define NEYMAN_DEFINE_KERNELS(...)                                                            \
  const Kernels NEYMAN_JOIN(kernels_, NEYMAN_KERNELS_ISA) = {NEYMAN_TEXT(NEYMAN_KERNELS_ISA), \
                                                             __VA_ARGS__}
