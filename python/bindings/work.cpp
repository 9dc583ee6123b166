#include "work.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <set>
#include <thread>

#include "neyman/core/error.hpp"
#include "neyman/core/progress.hpp"

namespace neyman::python {

namespace {

constexpr auto patience = std::chrono::milliseconds(50);  // between two looks at signals
// For work that Python's end stops: a simulator in Python may be in the midst of a long call.
constexpr auto grace = std::chrono::seconds(5);

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
  std::deque<ProgressState> told;     // the last of each task
  std::size_t serving = 0;            // threads in `serve_while`
  std::size_t at_work = 0;            // pieces of work that are not done
  std::size_t returning = 0;          // threads that wait for Python's lock
  std::set<unsigned long> answering;  // Python's names of the threads that do
  std::atomic<bool> ending = false;
  std::thread::id ender;  // that ends Python, and may go on using it
  const pid_t process = ::getpid();
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

/// Whether Python ends, and this thread is not the one that ends it.
bool python_ends() {
  const auto& shared = desk();
  return shared.ending && std::this_thread::get_id() != shared.ender;
}

/// Whether this thread may wait for Python's lock. The end of Python waits until it has it.
bool may_return() {
  auto& shared = desk();
  const std::lock_guard lock(shared.mutex);
  if (python_ends()) return false;
  ++shared.returning;
  return true;
}

void returned() {
  auto& shared = desk();
  const std::lock_guard lock(shared.mutex);
  --shared.returning;
  if (shared.ending) shared.changed.notify_all();
}

[[noreturn]] void stay_for_good() {
  while (true) std::this_thread::sleep_for(std::chrono::hours(1));
}

/// Python ends a thread in the midst of a call by unwinding its stack without an exception. The
/// thread stays here before the unwinding reaches a frame that catches all.
class Unwinding {
 public:
  ~Unwinding() {
    if (!done && std::uncaught_exceptions() == before_ && python_ends()) stay_for_good();
  }
  bool done = false;

 private:
  int before_ = std::uncaught_exceptions();
};

/// Before Python ends: what the library does for other threads is stopped and awaited. Called with
/// the lock.
void await_work() {
  auto& shared = desk();
  if (::getpid() != shared.process) return;  // after a fork the others' threads are not there
  {
    const std::lock_guard lock(shared.mutex);
    shared.ender = std::this_thread::get_id();
    shared.ending = true;
    // A simulator in Python stops at its next step.
    for (const auto thread : shared.answering) PyThreadState_SetAsyncExc(thread, PyExc_SystemExit);
    if (shared.at_work + shared.returning == 0) return;
    shared.changed.notify_all();
  }
  request_stop();
  {
    const Unlocked unlocked;  // for simulators in Python that are in the midst of a call
    std::unique_lock lock(shared.mutex);
    shared.changed.wait_for(lock, grace, [&] { return shared.at_work + shared.returning == 0; });
  }
  clear_stop();
}

thread_local std::size_t answers = 0;  // that this thread is giving, one within the other

/// The Python side of a call, with the lock: what it raises is carried to the thread that asked.
void answer(Request& request) {
  auto& shared = desk();
  const auto thread = PyThread_get_thread_ident();
  const auto set_answering = [&](bool yes) {
    const std::lock_guard lock(shared.mutex);
    if (yes)
      shared.answering.insert(thread);
    else
      shared.answering.erase(thread);
  };
  if (answers++ == 0) set_answering(true);
  try {
    Unwinding unwinding;
    if (stop_requested()) throw Interrupted();
    (*request.call)();
    unwinding.done = true;
  } catch (...) {
    request.error = std::current_exception();
  }
  if (--answers == 0) set_answering(false);
}

void show_progress(std::deque<ProgressState> told) {
  if (told.empty()) return;
  const auto show = py::module_::import("neyman.progress").attr("_show");
  for (const auto& state : told)
    show(state.task, state.done, state.total, state.elapsed, state.remaining, state.finished,
         state.unit, state.merit, state.merit_value);
}

}  // namespace

Unlocked::Unlocked() : state_(PyEval_SaveThread()) {}

Unlocked::~Unlocked() {
  if (!may_return()) stay_for_good();
  PyEval_RestoreThread(state_);
  returned();
}

bool with_lock(const std::function<void()>& call) {
  if (!may_return()) return false;
  const py::gil_scoped_acquire acquire;
  returned();
  call();
  return true;
}

detail::AtWork::AtWork() {
  auto& shared = desk();
  const std::lock_guard lock(shared.mutex);
  ++shared.at_work;
}

detail::AtWork::~AtWork() {
  auto& shared = desk();
  const std::lock_guard lock(shared.mutex);
  --shared.at_work;
  if (shared.ending) shared.changed.notify_all();
}

void detail::begin_work() {
  if (python_ends()) const Unlocked stays_for_good;
}

bool detail::answering() { return answers > 0; }

void in_python(const std::function<void()>& call) {
  if (PyGILState_Check() != 0) return call();
  auto& shared = desk();
  std::unique_lock lock(shared.mutex);
  if (shared.ending) throw Interrupted();
  if (shared.serving == 0) {
    lock.unlock();
    if (!with_lock(call)) throw Interrupted();
    return;
  }
  Request request{&call, {}, false};
  shared.requests.push_back(&request);
  shared.changed.notify_all();
  // A request that no thread has taken when Python ends is withdrawn.
  const auto withdrawn = [&] { return shared.ending && std::erase(shared.requests, &request) > 0; };
  bool given_up = false;
  shared.changed.wait(lock, [&] { return request.done || (given_up = withdrawn()); });
  if (given_up) throw Interrupted();
  if (request.error) std::rethrow_exception(request.error);
}

void detail::serve_while(const std::function<void()>& work) {
  begin_work();
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
    const AtWork at_work;
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
      const Unlocked unlocked;
      std::unique_lock lock(shared.mutex);
      shared.changed.wait_until(lock, next_look,
                                [&] { return finished || !shared.requests.empty(); });
      // Who asks finds a thread that answers, as long as there is one.
      if (finished && (shared.requests.empty() || shared.serving > 1)) {
        --shared.serving;
        break;
      }
    }
    {  // not before Python's lock is back: a thread that Python ends leaves the request to others
      const std::lock_guard lock(shared.mutex);
      if (!shared.requests.empty()) {
        request = shared.requests.front();
        shared.requests.pop_front();
      }
    }
    if (request != nullptr) {
      answer(*request);
      const Unlocked unlocked;
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

void bind_work(py::module_& /*module*/) {
  desk();  // made in this process
  py::module_::import("atexit").attr("register")(py::cpp_function(&await_work));
}

}  // namespace neyman::python
