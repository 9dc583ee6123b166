#pragma once

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace neyman {

namespace detail {

/// From some megabytes on the memory starts at a huge page, and the system is asked for such: there
/// are fewer pages to clear, and what is read or written in any order finds them in the processor's
/// table of pages.
void* allocate_large(std::size_t bytes, std::size_t alignment);
void free_large(void* memory, std::size_t bytes, std::size_t alignment) noexcept;

}  // namespace detail

/// Of `LargeVector`.
template <class T, std::size_t alignment>
struct LargeAllocator {
  using value_type = T;
  template <class Other>
  struct rebind {  // NOLINT(readability-identifier-naming): the standard's names
    using other = LargeAllocator<Other, alignment>;  // NOLINT(readability-identifier-naming)
  };

  LargeAllocator() = default;
  template <class Other>
  LargeAllocator(const LargeAllocator<Other, alignment>&) {}

  T* allocate(std::size_t count) {
    return static_cast<T*>(detail::allocate_large(count * sizeof(T), alignment));
  }
  void deallocate(T* memory, std::size_t count) noexcept {
    detail::free_large(memory, count * sizeof(T), alignment);
  }
  template <class U, class... Arguments>
  void construct(U* at, Arguments&&... arguments) {
    if constexpr (sizeof...(Arguments) == 0) {
      ::new (static_cast<void*>(at)) U;  // numbers stay as they are: somebody will write them
    } else {
      ::new (static_cast<void*>(at)) U(std::forward<Arguments>(arguments)...);
    }
  }
  template <class Other>
  bool operator==(const LargeAllocator<Other, alignment>&) const {
    return true;
  }
};

/// A vector for many numbers, in huge pages where there are enough of them. Numbers that nobody
/// gave a value have none: LargeVector<float>(n) is not zeroed, LargeVector<float>(n, 0.0f) is.
template <class T, std::size_t alignment = __STDCPP_DEFAULT_NEW_ALIGNMENT__>
using LargeVector = std::vector<T, LargeAllocator<T, alignment>>;

}  // namespace neyman
