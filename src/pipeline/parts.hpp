#pragma once

#include <string>
#include <vector>

#include "neyman/core/archive.hpp"
#include "neyman/distributed/tasks.hpp"
#include "neyman/pipeline/pipeline.hpp"

// Tasks that independent jobs share, through files alone.
namespace neyman::pipeline {

/// Does every `of`-th task and keeps the results; those of the others stay empty.
class PartTasks final : public Tasks {
 public:
  explicit PartTasks(Part part) : part_(part) {}

  /// The step that comes next, with its fingerprint.
  void begin(const std::string& step, const std::string& fingerprint);
  std::vector<std::string> run(std::size_t count, std::size_t at_once,
                               const std::function<std::string(std::size_t)>& work) override;
  /// What else of the step goes into the file.
  void keep(const std::string& bytes);

  /// Whether there was nothing to share.
  bool empty() const { return empty_; }
  /// Writes <folder>/part-<number>-of-<of>.h5 and returns its path.
  std::string write(const std::string& folder) const;

 private:
  Part part_;
  Archive steps_;
  Archive* step_ = nullptr;
  std::size_t loops_ = 0;
  bool empty_ = true;
};

/// Takes the results of tasks from the files of all parts.
class MergedTasks final : public Tasks {
 public:
  /// @throw FileError where a file is damaged or no part, one is missing, or one is there twice.
  explicit MergedTasks(const std::vector<std::string>& files);

  /// The step that comes next; `parted` where the parts must have done it.
  /// @throw FileError where a part has not done this step, or with another fingerprint.
  void begin(const std::string& step, const std::string& fingerprint, bool parted);
  /// @throw FileError where the parts do not hold so many tasks.
  std::vector<std::string> run(std::size_t count, std::size_t at_once,
                               const std::function<std::string(std::size_t)>& work) override;
  /// What every part has kept beside its results.
  std::vector<std::string> kept() const;

 private:
  struct File {
    std::string path;
    Archive tree;
  };
  std::vector<File> files_;  // by part
  std::string step_;
  std::size_t loops_ = 0;
};

}  // namespace neyman::pipeline
