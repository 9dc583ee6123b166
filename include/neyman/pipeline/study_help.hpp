#pragma once

#include <string>
#include <vector>

// Help, reference and schema of the study file, all made of `describe_study_file`.
namespace neyman {

/// A table of the study file, or a kind of one.
struct StudyTopic {
  std::string name;     ///< its place in the file, such as "training" or "classifier.mlp"
  std::string meaning;  ///< in one line
  bool is_kind = false;
};

/// What `study_help` knows, in the order of the file; a kind follows its table.
std::vector<StudyTopic> study_topics();

/// The topics with their meanings, as text of at most 80 columns.
std::string study_overview();

/// The keys of a topic with type, default and meaning, as text of at most 80 columns. The end of a
/// name, such as "mlp", is enough; where several topics have it, all are given.
/// @throw ArgumentError with the nearest topics where there is none of this name.
std::string study_help(const std::string& topic);

/// The keys of all topics, as Markdown.
std::string study_reference();

/// A JSON Schema (draft 7), with which editors complete and check studies.
std::string study_schema();

}  // namespace neyman
