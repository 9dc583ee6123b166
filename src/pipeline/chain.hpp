#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "neyman/core/archive.hpp"
#include "neyman/distributed/tasks.hpp"
#include "neyman/pipeline/pipeline.hpp"
#include "neyman/simulators/command.hpp"
#include "pipeline/folder_lock.hpp"
#include "pipeline/inputs.hpp"
#include "pipeline/parts.hpp"

namespace neyman::pipeline {

/// A value that is made when it is first asked for; copies share it. To be asked for by one thread
/// at a time, and not first inside a parallel loop.
template <class T>
class Lazy {
 public:
  explicit Lazy(std::function<T()> make) : state_(std::make_shared<State>()) {
    state_->make = std::move(make);
  }
  explicit Lazy(T value) : state_(std::make_shared<State>()) {
    state_->value.emplace(std::move(value));
  }

  T& operator*() const {
    if (!state_->value) {
      state_->value.emplace(state_->make());
      state_->make = {};
    }
    return *state_->value;
  }
  T* operator->() const { return &**this; }

 private:
  struct State {
    std::function<T()> make;
    std::optional<T> value;
  };
  std::shared_ptr<State> state_;
};

/// One stage, or one part of it that is kept by itself.
struct Step {
  std::string stage;    ///< one of `stage_names`
  std::string part;     ///< "ensemble" of toys; empty: the whole stage
  Inputs inputs;        ///< all that it depends on, beside the steps before it
  bool parted = false;  ///< it has tasks that jobs share by parts
};

/// The steps of one run in their order, and what is kept of them.
///
/// Each step has a fingerprint of its inputs, the seed, the program and the fingerprint of the step
/// before it. In a folder, what it gives is kept as stages/<step>-<fingerprint>.h5: the results so
/// far, and a value for the steps after it. A step is done where that file is absent or damaged;
/// else it is kept, and read only where a later step needs it. Without a folder every step is done
/// and nothing is written.
///
/// Where ranks do the run together, all go through the same steps; the first looks into the folder
/// and writes.
class Chain {
 public:
  /// `describe` writes into the results what follows from the study alone.
  /// @throw FileError where another run is at work in the folder.
  Chain(const Study& study, const RunOptions& options, std::function<void(Results&)> describe);

  /// A step with a value: made, or loaded from what `save` wrote.
  template <class T>
  Lazy<T> step(const Step& step, const std::function<T(Results&)>& make,
               const std::function<void(const T&, Archive&)>& save,
               const std::function<T(const Archive&)>& load) {
    const auto artifact = begin(step);
    if (!artifact) return Lazy<T>(std::function<T()>());
    if (artifact->kept)
      return Lazy<T>([artifact, load] { return load(artifact->tree().child("value")); });
    std::optional<T> value;
    work([&](Results& results) { value.emplace(make(results)); },
         [&](Archive& archive) { save(*value, archive); });
    return Lazy<T>(std::move(*value));
  }
  /// A step that adds to the results alone.
  void step(const Step& step, const std::function<void(Results&)>& make);
  /// A stage that this kind of run does not have.
  void skip(const std::string& stage, const std::string& reason);

  /// Writes what the results go into; `write` returns the files, and where one of them is changed
  /// or gone, it is done again.
  void report(const Step& step, const std::function<std::vector<std::string>(Results&)>& write);

  /// Those who share the tasks of a step; null: this process alone.
  Tasks* tasks();
  /// The same where jobs may share them by parts, too.
  Tasks* parted_tasks();
  /// Whether this is a job of its own, that does a part of such tasks and has not all of them.
  bool in_part() const { return part_.has_value(); }
  /// Writes the part that was asked for, and returns its path.
  std::string write_part() const;

  /// Whether the last stage that was asked for is behind.
  bool stopped() const { return stopped_; }
  /// All that the steps so far have added to.
  Results& results();
  /// Removes what no step of this run has used, and what an earlier report wrote and this one did
  /// not.
  void forget_others() const;

 private:
  struct Artifact {
    std::string path;
    bool kept = false;
    std::optional<Archive> content;
    const Archive& tree();
  };

  /// Null after the last stage that was asked for. `check` throws FileError where the value that
  /// was kept is no longer right.
  std::shared_ptr<Artifact> begin(const Step& step,
                                  const std::function<void(const Archive&)>& check = {});
  void work(const std::function<void(Results&)>& make, const std::function<void(Archive&)>& save);
  void note(StageNote::State state, double seconds = 0.0, const std::string& message = {}) const;
  void forget_from(const std::string& stage) const;
  void prepare_folder();
  void note_simulators(Results& results);

  /// Tasks with what simulators that are programs tell of them, apart from all else.
  class CountedTasks final : public Tasks {
   public:
    CountedTasks(Chain& chain, Tasks& by) : chain_(chain), by_(by) {}
    std::vector<std::string> run(std::size_t count, std::size_t at_once,
                                 const std::function<std::string(std::size_t)>& work) override;
    Communicator* ranks() override { return by_.ranks(); }

   private:
    Chain& chain_;
    Tasks& by_;
  };

  const Study& study_;
  const RunOptions& options_;
  std::function<void(Results&)> describe_;
  std::optional<FolderLock> lock_;
  std::string stage_, part_name_, fingerprint_;  // of the step at work; at first, of the program
  std::shared_ptr<Artifact> artifact_;           // of the step at work
  std::shared_ptr<Artifact> latest_;             // kept, with results that were not read yet
  Results results_;
  bool stopped_ = false;
  std::unique_ptr<Communicator> alone_;
  Communicator& ranks_;
  RankTasks rank_tasks_;
  std::optional<PartTasks> part_;
  std::optional<MergedTasks> merged_;
  std::optional<CountedTasks> counted_, counted_parts_;
  bool parted_ = false;               // the step at work
  SimulatorTally in_tasks_, beside_;  // of the step at work
  std::vector<std::string> used_;     // paths of artifacts
  std::vector<std::string> outputs_;  // of the report, relative to the folder
};

}  // namespace neyman::pipeline
