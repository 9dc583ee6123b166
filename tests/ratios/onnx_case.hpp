#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "neyman/classifiers/classifier.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/matrix.hpp"

// Graphs of ONNX are checked and evaluated by tests/ratios/onnx_evaluate.py. NEYMAN_ONNX_PYTHON
// names a Python with other packages, such as onnxruntime, than the system's.
namespace neyman::testing {

/// Arrays by name, as texts of JSON.
struct GraphCase {
  std::map<std::string, std::string> inputs, outputs;
};

inline std::string json_of(std::span<const double> values) {
  std::string out;
  for (const double value : values) out += fmt::format("{}{}", out.empty() ? "" : ", ", value);
  return "[" + out + "]";
}

inline std::string json_of(const Matrix& table) {
  std::string out;
  for (std::size_t i = 0; i < table.rows(); ++i) out += (i > 0 ? ", " : "") + json_of(table.row(i));
  return "[" + out + "]";
}

inline std::string json_of(const std::map<std::string, std::string>& texts) {
  std::string out;
  for (const auto& [name, text] : texts)
    out += fmt::format("{}\"{}\": {}", out.empty() ? "" : ", ", name, text);
  return "{" + out + "}";
}

/// Evaluates a graph outside of neyman and compares.
inline void expect_graph(const std::string& graph, const GraphCase& of, double tolerance) {
  const auto folder = std::filesystem::temp_directory_path() /
                      fmt::format("neyman_onnx_{}", static_cast<int>(getpid()));
  std::filesystem::create_directories(folder);
  const auto write = [](const std::filesystem::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  };
  write(folder / "graph.onnx", graph);
  write(folder / "case.json",
        fmt::format(R"({{"inputs": {}, "outputs": {}}})", json_of(of.inputs), json_of(of.outputs)));
  const char* given = std::getenv("NEYMAN_ONNX_PYTHON");
  const char* system = std::filesystem::exists("/usr/bin/python3") ? "/usr/bin/python3" : "python3";
  const auto tests = std::filesystem::path(NEYMAN_TEST_DATA).parent_path().parent_path();
  const auto command =
      fmt::format("'{}' -B '{}' '{}' '{}' {} 2>&1", given ? given : system,
                  (tests / "ratios" / "onnx_evaluate.py").string(),
                  (folder / "graph.onnx").string(), (folder / "case.json").string(), tolerance);
  std::string said;
  FILE* pipe = popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  char buffer[512];
  while (std::fgets(buffer, sizeof buffer, pipe) != nullptr) said += buffer;
  const int status = WEXITSTATUS(pclose(pipe));
  std::filesystem::remove_all(folder);
  if (std::getenv("NEYMAN_ONNX_SHOW") != nullptr) std::fputs(said.c_str(), stderr);
  if (status == 77) GTEST_SKIP() << said;
  EXPECT_EQ(status, 0) << said;
}

/// A classifier of somebody else.
class Foreign final : public Classifier {
 public:
  std::string kind() const override { return "foreign"; }
  std::unique_ptr<Classifier> fresh() const override { return std::make_unique<Foreign>(); }
  void fit(const TrainingSet& data) override { features_ = data.x.cols(); }
  bool fitted() const override { return features_ > 0; }
  std::size_t features() const override { return features_; }
  Logits logits(MatrixView x) const override {
    Logits z(x.rows());
    for (std::size_t i = 0; i < x.rows(); ++i) z[i] = -x(i, 0);
    return z;
  }
  void save(Archive&) const override {}
  void load(const Archive&) override {}

 private:
  std::size_t features_ = 0;
};

inline std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const ArgumentError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace neyman::testing
