#pragma once

#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

#include "bindings.hpp"

// Work of the library while Python goes on.
namespace neyman::python {

namespace detail {
void serve_while(const std::function<void()>& work);
/// Whether this thread is in the midst of a call for a thread of the library.
bool answering();
}  // namespace detail

/// Does long work in a thread of its own, without Python's lock. The calling thread meanwhile
/// answers signals (Ctrl-C stops the work, within a tenth of a second or as soon as it asks, and
/// raises KeyboardInterrupt), shows the progress, and calls what is written in Python (simulators,
/// classifiers) for the threads of the library.
template <class Work>
auto long_work(Work&& work) -> std::invoke_result_t<Work> {
  using Result = std::invoke_result_t<Work>;
  if constexpr (std::is_void_v<Result>) {
    detail::serve_while(work);
  } else {
    std::optional<Result> result;
    detail::serve_while([&] { result.emplace(work()); });
    return std::move(*result);
  }
}

/// Does short work in this thread, without Python's lock: what takes less time than a thread does
/// to start. Ctrl-C waits for its end.
template <class Work>
auto short_work(Work&& work) -> std::invoke_result_t<Work> {
  // What the work asks for in turn must be answered here.
  if (detail::answering()) return long_work(std::forward<Work>(work));
  const py::gil_scoped_release release;
  return work();
}

/// Calls Python from the library's threads, with the lock: in the thread that waits in `long_work`,
/// or, where none does, in the caller's own. Exceptions, Python's too, come back to the caller.
/// @throw Interrupted on a requested stop.
void in_python(const std::function<void()>& call);

}  // namespace neyman::python
