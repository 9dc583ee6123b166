#pragma once

#include <exception>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "neyman/core/error.hpp"
#include "neyman/reports/results.hpp"

// What a command says at its end: words for people, or with --json one object for scripts.
namespace neyman::cli {

using Json = nlohmann::ordered_json;

/// The object of --json, schema "neyman.command/1": the command, its exit status and the content.
/// Nothing else is printed on standard output.
void print_answer(const std::string& command, int status, const Json& content);

/// What a command with results says: the results as in results.json, and where they were written.
Json results_content(const Results& results, const std::optional<std::string>& folder);

/// An error, and what to do about it.
struct Complaint {
  int status = 1;
  std::string kind;                    ///< "file", "study", … as in docs/command-line.md
  std::string message;                 ///< what is wrong
  std::string advice = {};             ///< what to do next, in words; or empty
  std::string resume = {};             ///< the command that goes on; or empty
  std::vector<Problem> problems = {};  ///< of a study
};
Complaint complaint_about(const std::exception& error);
/// In words on standard error, or with `json` on standard output. Returns the exit status.
int tell(const Complaint& complaint, const std::string& command, bool json);

/// A FileError with what to do next.
class AdvisedError : public FileError {
 public:
  AdvisedError(const std::string& message, std::string advice)
      : FileError(message), advice_(std::move(advice)) {}
  const std::string& advice() const { return advice_; }

 private:
  std::string advice_;
};

/// Does the work, and adds advice to its FileError.
template <class Work>
auto advised(const std::string& advice, Work&& work) {
  try {
    return work();
  } catch (const FileError& error) {
    throw AdvisedError(error.what(), advice);
  }
}

}  // namespace neyman::cli
