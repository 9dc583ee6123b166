#include "neyman/pipeline/study_help.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>

#include "neyman/classifiers/mlp.hpp"
#include "neyman/core/error.hpp"
#include "neyman/pipeline/study.hpp"

namespace neyman {
namespace {

/// Calls `visit` with the place of every key.
void walk(const std::string& place, const TableDescription& table,
          const std::function<void(const std::string&, const KeyDescription&)>& visit) {
  for (const auto& key : table.keys) {
    visit(place + "." + key.name, key);
    if (key.table != nullptr) walk(place + "." + key.name, *key.table, visit);
  }
}

TEST(StudyFile, EveryKeyAndKindHasAMeaning) {
  const auto study = describe_study_file();
  std::size_t count = 0;
  const auto visit = [&](const std::string& place, const KeyDescription& key) {
    ++count;
    EXPECT_FALSE(key.meaning.empty()) << place << " is read without a meaning";
    EXPECT_FALSE(key.shapes.empty()) << place;
    EXPECT_TRUE(key.fallback.empty() || !key.required) << place << " has a default";
    for (const auto& shape : key.shapes) EXPECT_FALSE(shape.words().empty()) << place;
  };
  walk("", study.root, visit);
  for (const auto& [topic, kinds] : study.kinds)
    for (const auto& kind : kinds) {
      EXPECT_FALSE(kind.meaning.empty()) << topic << "." << kind.name;
      walk(topic + "." + kind.name, kind.table, visit);
    }
  EXPECT_GT(count, 200u);
}

std::vector<std::string> names(const std::vector<Description::Kind>& kinds) {
  std::vector<std::string> out;
  for (const auto& kind : kinds) out.push_back(kind.name);
  return out;
}

TEST(StudyFile, AllKindsAreDescribed) {
  const auto study = describe_study_file();
  EXPECT_EQ(names(study.kinds.at("simulator")), distribution_kinds());
  EXPECT_EQ(names(study.kinds.at("classifier")), classifier_kinds());
  EXPECT_EQ(names(study.kinds.at("calibration")), calibrator_kinds());
  EXPECT_EQ(names(study.kinds.at("design")), Design::kinds());
  EXPECT_EQ(names(study.kinds.at("constraint")),
            (std::vector<std::string>{"gaussian", "log-normal", "poisson"}));
}

TEST(StudyFile, DefaultsAreThoseOfTheConfigurations) {
  const auto study = describe_study_file();
  const auto fallback = [&](const char* section, const char* key) {
    return study.root.find(section)->table->find(key)->fallback;
  };
  const Study made;
  EXPECT_EQ(fallback("training", "samples"), std::to_string(made.training_samples));
  EXPECT_EQ(fallback("training", "folds"), std::to_string(made.learning.folds));
  EXPECT_EQ(fallback("calibration", "replicas"), std::to_string(made.learning.replicas));
  EXPECT_EQ(fallback("calibration", "events"),
            std::to_string(made.parameterized.classifier.calibration_events));
  EXPECT_EQ(fallback("coverage", "critical_datasets"),
            std::to_string(CoverageConfig().critical_datasets));
  EXPECT_EQ(fallback("ensemble", "events"), std::to_string(EnsembleConfig().events));
  EXPECT_EQ(fallback("compare", "events"), std::to_string(Study::Compare().evaluation_events));
  EXPECT_EQ(fallback("inference", "levels"), "[0.683, 0.95]");
  EXPECT_EQ(fallback("diagnostics", "which"), "\"all\"");
  EXPECT_EQ(fallback("inference", "bayesian"), "");
}

TEST(StudyHelp, TopicsAreTablesAndTheirKinds) {
  const auto topics = study_topics();
  const auto at = [&](const std::string& name) {
    return std::find_if(topics.begin(), topics.end(),
                        [&](const StudyTopic& topic) { return topic.name == name; });
  };
  for (const char* table : {"study",
                            "parameters",
                            "parameters.constraint",
                            "simulator",
                            "simulator.mixture.components",
                            "simulator.files.tables",
                            "reference",
                            "training",
                            "training.design",
                            "classifier",
                            "calibration",
                            "data",
                            "inference",
                            "inference.test",
                            "inference.hypotheses",
                            "ensemble",
                            "coverage",
                            "diagnostics",
                            "compare",
                            "report"}) {
    ASSERT_NE(at(table), topics.end()) << table;
    EXPECT_FALSE(at(table)->is_kind) << table;
  }
  for (const char* kind : {"classifier.mlp", "classifier.separable", "calibration.histogram",
                           "simulator.histogram", "training.design.grid"}) {
    ASSERT_NE(at(kind), topics.end()) << kind;
    EXPECT_TRUE(at(kind)->is_kind) << kind;
  }
  // What is told elsewhere is no topic again.
  EXPECT_EQ(at("classifier.ensemble.of"), topics.end());
  EXPECT_EQ(at("ensemble.at"), topics.end());
}

TEST(StudyHelp, UnknownTopicsNameTheNearest) {
  try {
    study_help("mpl");
    FAIL();
  } catch (const ArgumentError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'mlp'?"), std::string::npos);
  }
}

TEST(StudyHelp, TheSchemaReadsItselfThroughReferences) {
  const auto schema = nlohmann::json::parse(study_schema());
  std::size_t count = 0;
  const std::function<void(const nlohmann::json&)> look = [&](const nlohmann::json& part) {
    if (part.is_object() && part.contains("$ref")) {
      const auto place = part["$ref"].get<std::string>().substr(1);
      EXPECT_TRUE(schema.contains(nlohmann::json::json_pointer(place))) << place;
      EXPECT_FALSE(schema[nlohmann::json::json_pointer(place)].is_null()) << place;
      ++count;
    }
    if (part.is_structured())
      for (const auto& inner : part) look(inner);
  };
  look(schema);
  EXPECT_GT(count, 8u);
}

}  // namespace
}  // namespace neyman
