#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "neyman/distributed/tasks.hpp"

namespace neyman {

/// Tasks whose results are written to a file as they are done, so that a process that was killed
/// goes on where it was, and several jobs can each do a part. What they are does not depend on who
/// did them, or on how often it was interrupted.
///
/// The file is a heading and a record for each task, each with a checksum; a record that was not
/// written whole is done again. One process at a time.
class KeptTasks final : public Tasks {
 public:
  /// Does the tasks number − 1, number − 1 + of, … of each loop.
  struct Part {
    std::size_t number = 1, of = 1;
  };

  /// Goes on with the file, or begins it. `about` says what the tasks are made from: anything that
  /// their results depend on.
  /// @throw FileError where the file cannot be written, another process is at work with it, or it
  ///   holds tasks of something else or of another part.
  KeptTasks(std::string path, std::string about, Part part);
  KeptTasks(std::string path, std::string about)
      : KeptTasks(std::move(path), std::move(about), Part{}) {}
  ~KeptTasks() override;

  std::vector<std::string> run(std::size_t count, std::size_t at_once,
                               const std::function<std::string(std::size_t)>& work) override;
  /// How many of the next loop's tasks are still to be done here.
  std::size_t left(std::size_t count) const;

 private:
  struct File;
  std::unique_ptr<File> file_;
  Part part_;
  std::size_t loops_ = 0;
  mutable std::mutex mutex_;
};

/// Takes the results of tasks from the files of all parts.
class MergedKeptTasks final : public Tasks {
 public:
  /// @throw FileError where a file is none of these, is there twice or missing, or they are about
  ///   different things.
  explicit MergedKeptTasks(const std::vector<std::string>& paths);
  ~MergedKeptTasks() override;
  /// What the tasks are made from, as KeptTasks was told.
  const std::string& about() const { return about_; }
  /// @throw FileError where a part has not done all of its tasks.
  std::vector<std::string> run(std::size_t count, std::size_t at_once,
                               const std::function<std::string(std::size_t)>& work) override;

 private:
  struct Content;
  std::vector<Content> parts_;
  std::string about_;
  std::size_t loops_ = 0;
};

}  // namespace neyman
