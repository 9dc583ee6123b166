#include "neyman/core/memory.hpp"

#include <cstdlib>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace neyman {

void keep_freed_memory() {
#if defined(__GLIBC__)
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the most that the C library itself would choose
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
#endif
}

}  // namespace neyman
