#include "work.hpp"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "neyman/core/error.hpp"
#include "neyman/core/progress.hpp"

namespace neyman::python {

namespace {

constexpr auto patience = std::chrono::milliseconds(50);  // between two looks at signals

/// A call that a thread of the library waits for.
struct Request {
  const std::function<void()>* call;
  std::exception_ptr error;
  bool done = false;
};

/// What the threads of the library and those of Python tell each other.
struct Desk {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Request*> requests;
  std::deque<ProgressState> told;  // the last of each task
  std::size_t serving = 0;         // threads in `serve_while`
};

Desk& desk() {
  static auto* only = new Desk;  // outlives every thread
  return *only;
}

void tell(const ProgressState& state) {
  auto& shared = desk();
  const std::lock_guard lock(shared.mutex);
  if (!shared.told.empty() && shared.told.back().task == state.task && !shared.told.back().finished)
    shared.told.back() = state;
  else
    shared.told.push_back(state);
}

thread_local std::size_t answers = 0;  // that this thread is giving, one within the other

/// The Python side of a call: what it raises is carried to the thread that asked.
void answer(Request& request) {
  ++answers;
  try {
    if (stop_requested()) throw Interrupted();
    (*request.call)();
  } catch (...) {
    request.error = std::current_exception();
  }
  --answers;
}

void show_progress(std::deque<ProgressState> told) {
  if (told.empty()) return;
  const auto show = py::module_::import("neyman.progress").attr("_show");
  for (const auto& state : told)
    show(state.task, state.done, state.total, state.elapsed, state.remaining, state.finished,
         state.unit, state.merit, state.merit_value);
}

}  // namespace

bool detail::answering() { return answers > 0; }

void in_python(const std::function<void()>& call) {
  if (PyGILState_Check() != 0) return call();
  auto& shared = desk();
  std::unique_lock lock(shared.mutex);
  if (shared.serving == 0) {
    lock.unlock();
    const py::gil_scoped_acquire acquire;
    return call();
  }
  Request request{&call, {}, false};
  shared.requests.push_back(&request);
  shared.changed.notify_all();
  shared.changed.wait(lock, [&] { return request.done; });
  if (request.error) std::rethrow_exception(request.error);
}

void detail::serve_while(const std::function<void()>& work) {
  auto& shared = desk();
  bool finished = false;
  std::exception_ptr error, signalled;
  const bool shown = py::module_::import("neyman.progress").attr("_wanted")().cast<bool>();
  if (shown) set_progress_sink(tell);
  {
    const std::lock_guard lock(shared.mutex);
    ++shared.serving;
  }
  std::thread worker([&] {
    try {
      work();
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock(shared.mutex);
    finished = true;
    shared.changed.notify_all();
  });
  const auto look = [&] {  // with Python's lock
    try {
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
      std::deque<ProgressState> told;
      {
        const std::lock_guard lock(shared.mutex);
        told.swap(shared.told);
      }
      if (!signalled) show_progress(std::move(told));
    } catch (...) {
      if (!signalled) signalled = std::current_exception();
      request_stop();
    }
  };
  auto next_look = std::chrono::steady_clock::now() + patience;
  while (true) {
    Request* request = nullptr;
    {
      const py::gil_scoped_release release;
      std::unique_lock lock(shared.mutex);
      shared.changed.wait_until(lock, next_look,
                                [&] { return finished || !shared.requests.empty(); });
      // Who asks finds a thread that answers, as long as there is one.
      if (finished && (shared.requests.empty() || shared.serving > 1)) {
        --shared.serving;
        break;
      }
      if (!shared.requests.empty()) {
        request = shared.requests.front();
        shared.requests.pop_front();
      }
    }
    if (request != nullptr) {
      answer(*request);
      const py::gil_scoped_release release;
      const std::lock_guard lock(shared.mutex);
      request->done = true;
      shared.changed.notify_all();
    }
    if (std::chrono::steady_clock::now() < next_look) continue;
    look();
    next_look = std::chrono::steady_clock::now() + patience;
  }
  worker.join();
  look();
  if (shown && desk().serving == 0) set_progress_sink({});
  if (signalled) clear_stop();
  if (signalled) std::rethrow_exception(signalled);
  if (error) std::rethrow_exception(error);
}

}  // namespace neyman::python
