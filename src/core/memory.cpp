#include "neyman/core/memory.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <new>
#if defined(__GLIBC__)
#include <malloc.h>
#endif
#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "core/large_vector.hpp"

namespace neyman {

namespace detail {
namespace {

constexpr std::size_t huge_page = std::size_t{1} << 21;

/// Less is found in the table of small pages too, and is allocated more often.
bool is_large(std::size_t bytes) { return bytes >= 8 * huge_page; }
std::align_val_t alignment_of(std::size_t bytes, std::size_t least) {
  return std::align_val_t{is_large(bytes) ? huge_page : least};
}

}  // namespace

void* allocate_large(std::size_t bytes, std::size_t alignment) {
  void* const memory =
      ::operator new(std::max<std::size_t>(bytes, 1), alignment_of(bytes, alignment));
#if defined(__linux__)
  if (is_large(bytes)) madvise(memory, bytes, MADV_HUGEPAGE);  // only advice: it may fail
#endif
  return memory;
}

void free_large(void* memory, std::size_t bytes, std::size_t alignment) noexcept {
  ::operator delete(memory, alignment_of(bytes, alignment));
}

}  // namespace detail

void keep_freed_memory() {
#if defined(__GLIBC__)
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the most that the C library itself would choose
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
#endif
}

}  // namespace neyman
