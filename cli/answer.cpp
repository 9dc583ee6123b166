#include "answer.hpp"

#include <fmt/format.h>

#include <new>

#include "commands.hpp"
#include "neyman/core/text.hpp"
#include "neyman/reports/results_json.hpp"
#include "terminal.hpp"

namespace neyman::cli {

namespace {

/// Control characters that JSON leaves as they are: delete and those of Latin-1.
std::string without_controls(std::string_view json) {
  std::string out;
  while (!json.empty()) {
    const auto c = decode_utf8(json);
    if (c.code >= 0x7f && c.code < 0xa0)
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c.code));
    else
      out += json.substr(0, c.bytes);
    json.remove_prefix(c.bytes);
  }
  return out;
}

}  // namespace

void print_answer(const std::string& command, int status, const Json& content) {
  Json answer = {{"schema", "neyman.command/1"}, {"command", command}, {"exit_status", status}};
  answer.update(content);
  // A path need not be UTF-8.
  say("{}\n", without_controls(answer.dump(2, ' ', false, Json::error_handler_t::replace)));
}

Json results_content(const Results& results, const std::optional<std::string>& folder) {
  Json out;
  if (folder) out["folder"] = *folder;
  out["results"] = Json::parse(reports::results_json(results).text);
  return out;
}

Complaint complaint_about(const std::exception& error) {
  Complaint out{failure, "error", error.what()};
  if (const auto* study = dynamic_cast<const StudyError*>(&error)) {
    const auto count = study->problems().size();
    out.status = bad_study;
    out.kind = "study";
    out.problems = study->problems();
    out.advice = fmt::format("{} problem{} found; nothing was run", count, count == 1 ? "" : "s");
  } else if (dynamic_cast<const Interrupted*>(&error) != nullptr) {
    out = {interrupted, "interrupted", "interrupted before the results were written",
           "Run the command again to start over."};
  } else if (const auto* advised = dynamic_cast<const AdvisedError*>(&error)) {
    out.kind = "file";
    out.advice = advised->advice();
  } else if (dynamic_cast<const FileError*>(&error) != nullptr) {
    out.kind = "file";
  } else if (dynamic_cast<const SimulatorError*>(&error) != nullptr) {
    out.kind = "simulator";
  } else if (dynamic_cast<const ArgumentError*>(&error) != nullptr) {
    out.kind = "argument";
  } else if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    out.kind = "memory";
    out.message = "the memory is not enough; ask for fewer events";
  }
  return out;
}

int tell(const Complaint& complaint, const std::string& command, bool json) {
  if (json) {
    Json error = {{"kind", complaint.kind}, {"message", complaint.message}};
    if (!complaint.advice.empty()) error["advice"] = complaint.advice;
    if (!complaint.resume.empty()) error["resume"] = complaint.resume;
    for (const auto& problem : complaint.problems)
      error["problems"].push_back({{"file", problem.where.file},
                                   {"line", problem.where.line},
                                   {"key", problem.key},
                                   {"message", problem.message}});
    print_answer(command, complaint.status, {{"error", error}});
    return complaint.status;
  }
  // The problems of a study begin with its name.
  complain("{}{}{}\n", complaint.status == interrupted ? "\n" : "",
           complaint.problems.empty() ? "neyman: " : "", complaint.message);
  if (!complaint.advice.empty()) complain("{}\n", complaint.advice);
  if (!complaint.resume.empty()) complain("  {}\n", complaint.resume);
  return complaint.status;
}

}  // namespace neyman::cli
