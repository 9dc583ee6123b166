#pragma once

#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

#include "bindings.hpp"

// Work of the library while Python goes on.
namespace neyman::python {

/// Python's lock is given up for the life of this object, because the library works or waits.
///
/// A daemon thread may be at work when Python ends. Taking the lock again would then end the thread
/// in the midst of C++, which terminates the process. So the end of Python first stops the
/// library's work and waits for it (see `bind_work`), and a thread that comes back later stays here
/// for good.
class Unlocked {
 public:
  Unlocked();
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

/// Calls Python with its lock, from any thread.
/// @return whether it could: not where Python ends and another thread ends it.
bool with_lock(const std::function<void()>& call);

namespace detail {

/// Work of the library that the end of Python waits for.
class AtWork {
 public:
  AtWork();
  ~AtWork();
  AtWork(const AtWork&) = delete;
  AtWork& operator=(const AtWork&) = delete;
};

/// Work that begins when Python ends would outlive what it uses: its thread stays here.
void begin_work();
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
  detail::begin_work();
  const Unlocked unlocked;
  const detail::AtWork at_work;
  return work();
}

/// Calls Python from the library's threads, with the lock: in the thread that waits in `long_work`,
/// or, where none does, in the caller's own. Exceptions, Python's too, come back to the caller.
/// @throw Interrupted on a requested stop, and when Python ends.
void in_python(const std::function<void()>& call);

/// Makes Python stop and await the library's work before Python ends.
void bind_work(py::module_& module);

}  // namespace neyman::python
