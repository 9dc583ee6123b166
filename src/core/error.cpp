#include "neyman/core/error.hpp"

#include <fmt/format.h>

namespace neyman {

std::string ArgumentError::reason() const {
  const std::string text = what();
  const auto end = text.find(": ");
  return end == std::string::npos ? text : text.substr(end + 2);
}

std::string to_string(const Problem& problem) {
  std::string place = problem.where.file;
  if (problem.where.line > 0) place += fmt::format(":{}", problem.where.line);
  if (!place.empty()) place += ": ";
  if (problem.key.empty()) return place + problem.message;
  return place + problem.key + " " + problem.message;
}

namespace {

std::string list(const std::vector<Problem>& problems) {
  std::string text;
  for (const auto& problem : problems) {
    if (!text.empty()) text += '\n';
    text += to_string(problem);
  }
  return text;
}

}  // namespace

StudyError::StudyError(std::vector<Problem> problems)
    : Error(list(problems)), problems_(std::move(problems)) {}

}  // namespace neyman
