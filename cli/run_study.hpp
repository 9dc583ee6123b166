#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "commands.hpp"
#include "neyman/pipeline/pipeline.hpp"

namespace neyman::cli {

/// What `run` and `merge` are told.
struct RunArguments {
  std::string study;
  std::optional<std::string> out;
  std::optional<std::uint64_t> seed;
  std::string from, until;
  bool fresh = false;
  bool quick = false;
  std::size_t threads = 0;
  bool no_figures = false;
  std::optional<Part> part;        ///< of `run`
  bool merge = false;              ///< `merge`
  std::vector<std::string> parts;  ///< of `merge`; empty: those in the folder
  Talk talk;

  /// Adds the options that both have.
  void add_to(CLI::App& command);
};

/// "3/10" as a part; the message for what is none.
std::string read_part(const std::string& text, std::optional<Part>& part);

/// Runs a study, together with the ranks that this process was started with. Returns the exit
/// status.
int run_study(const RunArguments& arguments);

}  // namespace neyman::cli
