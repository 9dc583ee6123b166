#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace neyman {

/// Base of everything the library throws.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The caller broke a contract: a value out of range, a shape that does not fit.
/// Message form: "function: name is value, but must be condition".
class ArgumentError : public Error {
 public:
  using Error::Error;

  /// The message without the function that it names first: what a person who wrote a study, and
  /// called no function, can use.
  std::string reason() const;
};

/// A file could not be read or written, or does not hold what it should.
/// Message form: "path:line: what is wrong".
class FileError : public Error {
 public:
  using Error::Error;
};

/// A simulator that is not part of the library failed; the message names θ and the reason.
class SimulatorError : public Error {
 public:
  using Error::Error;
};

/// The work was asked to stop (see `request_stop` in progress.hpp).
class Interrupted : public Error {
 public:
  Interrupted() : Error("interrupted") {}
};

/// Where in a user's file a value stands. `line` is 0 where it is unknown.
struct Where {
  std::string file;
  int line = 0;
};

/// One thing wrong with a study: the place, the key and what was expected.
struct Problem {
  Where where;
  std::string key;      ///< dotted path, for example "classifier.hidden[1]"
  std::string message;  ///< "is -3, but must be positive"
};

/// "file:line: key message"
std::string to_string(const Problem& problem);

/// A study has problems; all of them are listed, in the order of the file.
class StudyError : public Error {
 public:
  explicit StudyError(std::vector<Problem> problems);
  const std::vector<Problem>& problems() const { return problems_; }

 private:
  std::vector<Problem> problems_;
};

}  // namespace neyman
