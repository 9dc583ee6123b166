#include <pybind11/stl.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "arrays.hpp"
#include "neyman/classifiers/classifier.hpp"
#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/progress.hpp"
#include "neyman/simulators/command.hpp"
#include "simulators.hpp"
#include "work.hpp"

namespace neyman::python {

namespace {

/// A Python object that may be let go of by any thread.
class Held {
 public:
  explicit Held(py::object object) : object_(std::move(object)) {}
  ~Held() {
    // Where the interpreter is gone or going, so is the object.
    if (Py_IsInitialized() == 0 || !with_lock([&] { object_ = py::object(); })) object_.release();
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  const py::object& operator*() const { return object_; }
  const py::object* operator->() const { return &object_; }

 private:
  py::object object_;
};

/// Rows that Python may keep.
py::array to_python(MatrixView view) { return to_array(copy_of(view)); }

void copy_into(const py::handle& found, Matrix& out) {
  const auto table = as_table(found, "simulate", "what it returns");
  for (std::size_t i = 0; i < out.rows(); ++i)
    std::copy_n(table.view.row(i).data(), out.cols(), out.row(i).data());
}

/// A simulator that is a Python function. `caller` is a neyman.functions.Caller, which calls it,
/// here or in another process, checks what it returns, and keeps it in a folder where it is told
/// to.
class FunctionSimulator final : public Distribution, public Tallied {
 public:
  struct Config {
    std::size_t dimension = 0;
    std::vector<std::string> features = {};
    std::vector<std::string> parameters = {};  ///< of the function's θ, in its order
    std::vector<std::size_t> columns = {};     ///< where they are in the θ that it is asked for
    Runs runs = {};
    bool elsewhere = false;  ///< in other processes
    Trial trial = {};
  };

  FunctionSimulator(py::object caller, Config config)
      : caller_(std::move(caller)), config_(std::move(config)) {}

  std::string kind() const override { return "python"; }
  std::size_t dimension() const override { return config_.dimension; }
  std::vector<std::string> feature_names() const override { return config_.features; }
  Runs runs() const override { return config_.runs; }
  std::optional<Trial> trial() const override { return config_.trial; }
  std::optional<bool> depends_on(std::size_t parameter) const override {
    const auto& used = config_.columns;
    if (std::find(used.begin(), used.end(), parameter) == used.end()) return false;
    return std::nullopt;
  }
  void set_cache_folder(const std::string& folder) const override {
    in_python([&] { caller_->attr("keep_in")(folder); });
  }
  /// The same function for θ of other parameters, its own among them: keeps what it simulates in a
  /// folder of its own.
  DistributionPtr with_parameters(const ParameterSpace& parameters) const {
    Config config = config_;
    config.columns = columns_of(config.parameters, parameters);
    DistributionPtr out;
    in_python([&] {
      out = std::make_shared<const FunctionSimulator>(caller_->attr("again")(), std::move(config));
    });
    return out;
  }

  SimulatorTally take_tally() const override {
    const std::lock_guard lock(tally_->mutex);
    return std::exchange(tally_->counts, {});
  }

  void sample(std::span<const double> point, RandomStream& random, Matrix& out) const override {
    if (out.rows() == 0) return;
    MatrixView one(point.data(), 1, point.size());
    call(one, out.rows(), random.bits(), out);
  }
  void sample_each(MatrixView points, RandomStream& random, Matrix& out) const override {
    if (out.rows() == 0) return;
    call(points, 0, random.bits(), out);
  }

  /// Where parameters are among those of a study.
  static std::vector<std::size_t> columns_of(const std::vector<std::string>& names,
                                             const ParameterSpace& parameters) {
    std::vector<std::size_t> out;
    for (const auto& name : names) {
      const auto found = parameters.find(name);
      if (!found)
        throw ArgumentError("python: needs parameter '" + name +
                            "', but there is no such parameter; change the parameters that "
                            "PythonSimulator is given");
      out.push_back(*found);
    }
    return out;
  }

 private:
  /// The θ of the function, in memory that Python may keep.
  py::array own(MatrixView points) const {
    Matrix out(points.rows(), config_.columns.size());
    for (std::size_t i = 0; i < out.rows(); ++i)
      for (std::size_t j = 0; j < out.cols(); ++j) out(i, j) = points(i, config_.columns[j]);
    return to_array(std::move(out));
  }

  /// `events`: how many at the one θ; 0: one for each row of θ.
  void call(MatrixView points, std::size_t events, std::uint64_t seed, Matrix& out) const {
    try {
      if (config_.elsewhere)
        call_elsewhere(points, events, seed, out);
      else
        in_python(
            [&] { tolerant([&] { copy_into((*caller_)(own(points), events, seed), out); }); });
    } catch (const SimulatorError& error) {
      // Of many θ, each is asked for again alone.
      if (points.rows() == 1) {
        const std::lock_guard lock(tally_->mutex);
        ++tally_->counts.runs;
        ++tally_->counts.crashed;
        const auto row = points.row(0);
        tally_->counts.failed.emplace_back(row.begin(), row.end());
        if (tally_->counts.log.size() < SimulatorTally::most_log)
          tally_->counts.log.emplace_back(error.what());
      }
      throw;
    }
    const std::lock_guard lock(tally_->mutex);
    tally_->counts.runs += points.rows();
  }

  /// Calls Python: where failures are tolerated, they are those of a simulator.
  template <class Call>
  void tolerant(Call&& call) const {
    if (config_.runs.tolerate == 0.0) return call();
    try {
      call();
    } catch (py::error_already_set& error) {
      if (!error.matches(PyExc_Exception)) throw;
      const auto words = py::module_::import("neyman.functions").attr("_told")(error.value());
      throw SimulatorError(words.cast<std::string>());
    } catch (const ArgumentError& error) {
      throw SimulatorError(error.what());
    }
  }

  /// The thread that asked waits, not Python.
  void call_elsewhere(MatrixView points, std::size_t events, std::uint64_t seed,
                      Matrix& out) const {
    struct Waiting {
      std::mutex mutex;
      std::condition_variable changed;
      bool done = false;
    };
    const auto waiting = std::make_shared<Waiting>();
    std::unique_ptr<Held> future;
    in_python([&] {
      future = std::make_unique<Held>(caller_->attr("submit")(own(points), events, seed));
      (*future)->attr("add_done_callback")(py::cpp_function([waiting](const py::object&) {
        const std::lock_guard lock(waiting->mutex);
        waiting->done = true;
        waiting->changed.notify_all();
      }));
    });
    {
      std::unique_lock lock(waiting->mutex);
      while (!waiting->done) {
        waiting->changed.wait_for(lock, std::chrono::milliseconds(50));
        if (stop_requested()) break;
      }
    }
    check_stop();
    in_python([&] { tolerant([&] { copy_into(caller_->attr("finish")(**future), out); }); });
  }

  struct Tally {
    std::mutex mutex;
    SimulatorTally counts;
  };

  Held caller_;
  Config config_;
  std::unique_ptr<Tally> tally_ = std::make_unique<Tally>();
};

/// A classifier that is written in Python. `adapter` is a neyman.functions.Adapter.
class FunctionClassifier final : public Classifier {
 public:
  explicit FunctionClassifier(py::object adapter) : adapter_(std::move(adapter)) {}

  std::string kind() const override { return "python"; }
  std::unique_ptr<Classifier> fresh() const override {
    std::unique_ptr<Classifier> out;
    in_python([&] { out = std::make_unique<FunctionClassifier>(adapter_->attr("fresh")()); });
    return out;
  }
  void fit(const TrainingSet& data) override {
    auto weights = neyman::detail::balanced_weights("python.fit", data);
    in_python([&] {
      py::array_t<std::int64_t> labels(static_cast<py::ssize_t>(data.size()));
      std::copy(data.denominator.begin(), data.denominator.end(), labels.mutable_data());
      adapter_->attr("fit")(to_python(data.x), labels, to_array(std::move(weights)), data.seed);
    });
    features_ = data.x.cols();
  }
  bool fitted() const override { return features_ > 0; }
  std::size_t features() const override { return features_; }
  Logits logits(MatrixView x) const override {
    neyman::detail::check_input("python.logits", *this, x);
    std::vector<double> out;
    in_python([&] {
      out = as_vector(adapter_->attr("logits")(to_python(x)), "python.logits", "the scores").copy();
    });
    check_same_size("python.logits", "the scores", out.size(), x.rows(), "one for each row");
    check_finite("python.logits", "the scores", out);
    return Logits(std::move(out));
  }
  void save(Archive&) const override { refuse("saved"); }
  void load(const Archive&) override { refuse("loaded"); }

 private:
  [[noreturn]] static void refuse(const std::string& what) {
    throw ArgumentError("classifier: it is written in Python, but must be one of neyman's to be " +
                        what + " in a file");
  }

  Held adapter_;
  std::size_t features_ = 0;
};

Simulator make_simulator(py::object caller, const ParameterSpace& parameters, std::size_t dimension,
                         const std::vector<std::string>& features, std::size_t events_per_run,
                         std::size_t block, std::size_t workers, double tolerate,
                         double trial_seconds) {
  FunctionSimulator::Config config;
  config.dimension = dimension;
  config.features = features;
  config.parameters = parameters.names();
  config.columns = FunctionSimulator::columns_of(config.parameters, parameters);
  config.runs = {
      .events = events_per_run, .at_once = workers, .tolerate = tolerate, .block = block};
  config.elsewhere = workers > 0;
  config.trial = {2, trial_seconds};
  return {std::make_shared<const FunctionSimulator>(std::move(caller), config), parameters};
}

}  // namespace

SettingValue::Object as_object(const Simulator& simulator) {
  const auto make = [simulator](const ParameterSpace& parameters) -> DistributionPtr {
    const auto* function = dynamic_cast<const FunctionSimulator*>(simulator.distribution.get());
    return function == nullptr ? simulator.distribution : function->with_parameters(parameters);
  };
  return std::make_shared<DistributionObject>(make);
}

void bind_functions(py::module_& module) {
  py::class_<DesignFunction>(module, "DesignFunction").def(py::init([](py::object function) {
    const auto held = std::make_shared<const Held>(std::move(function));
    return DesignFunction{
        std::make_shared<const DesignObject>([held](std::size_t n, std::uint64_t seed) {
          Matrix out;
          in_python([&] {
            out = copy_of(as_table((**held)(n, seed), "Design", "what the function draws").view);
          });
          return out;
        })};
  }));
  module.def("function_simulator", &make_simulator);
  module.def("function_classifier", [](py::object adapter) -> std::shared_ptr<Classifier> {
    return std::make_shared<FunctionClassifier>(std::move(adapter));
  });
}

}  // namespace neyman::python
