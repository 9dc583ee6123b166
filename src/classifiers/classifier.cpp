#include "neyman/classifiers/classifier.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "neyman/classifiers/boosted_trees.hpp"
#include "neyman/classifiers/ensemble.hpp"
#include "neyman/classifiers/logistic.hpp"
#include "neyman/classifiers/mlp.hpp"
#include "neyman/classifiers/random_forest.hpp"
#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"

namespace neyman {

namespace {

struct Kind {
  const char* name;
  const char* meaning;
  std::unique_ptr<Classifier> (*make)(Settings settings);
};

template <class T>
std::unique_ptr<Classifier> make(Settings settings) {
  return std::make_unique<T>(T::Config::from(std::move(settings)));
}

// Every kind of classifier; the conformance tests run on each.
constexpr Kind kinds[] = {
    {"boosted-trees", "gradient-boosted decision trees", make<BoostedTrees>},
    {"ensemble", "the mean of several classifiers, with their spread", make<Ensemble>},
    {"logistic", "logistic regression, linear in the features", make<Logistic>},
    {"mlp", "a neural network", make<Mlp>},
    {"random-forest", "the mean of decision trees grown on random rows", make<RandomForest>},
};

constexpr const char* default_kind = "mlp";

const Kind* find(const std::string& name) {
  const auto* found = std::find_if(std::begin(kinds), std::end(kinds),
                                   [&](const Kind& kind) { return kind.name == name; });
  return found == std::end(kinds) ? nullptr : found;
}

bool all_finite(std::span<const double> values) {
  constexpr std::size_t lanes = 8;
  double zero[lanes] = {};  // not 0 where a value is not finite
  std::size_t i = 0;
  for (; i + lanes <= values.size(); i += lanes)
    for (std::size_t l = 0; l < lanes; ++l) zero[l] += values[i + l] * 0.0;
  for (; i < values.size(); ++i) zero[0] += values[i] * 0.0;
  return std::all_of(zero, zero + lanes, [](double z) { return z == 0.0; });
}

void check_finite_table(const char* function, MatrixView x) {
  if (x.stride() == x.cols() && all_finite({x.data(), x.rows() * x.cols()})) return;
  for (std::size_t i = 0; i < x.rows(); ++i)
    for (std::size_t j = 0; j < x.cols(); ++j)
      if (!std::isfinite(x(i, j)))
        fail_argument(function, fmt::format("x[row {}, column {}]", i, j),
                      fmt::format("{}", x(i, j)), "finite");
}

}  // namespace

void Classifier::fit_epochs(const TrainingEpochs& epochs, std::uint64_t seed, Progress* progress) {
  const TrainingRows rows = epochs(0);
  fit({rows.x, rows.denominator, rows.weights, seed, progress});
}

void Classifier::fit_stream(const TrainingStream&) {
  throw ArgumentError(kind() + ".fit_stream: the classifier is " + kind() +
                      ", but must be mlp, or an ensemble of it, to learn from a stream");
}

Matrix Classifier::gradient(MatrixView) const {
  throw ArgumentError(kind() + ".gradient: the classifier is " + kind() +
                      ", but must be differentiable");
}

std::vector<std::string> classifier_kinds() {
  std::vector<std::string> names;
  for (const Kind& kind : kinds) names.emplace_back(kind.name);
  return names;
}

std::unique_ptr<Classifier> make_classifier(Settings settings) {
  if (const auto given = settings.object<ClassifierObject>("object")) {
    for (const char* key : {"kind", "fingerprint"}) settings.skip(key);
    if (given->classifier != nullptr) return given->classifier->fresh();
    settings.problem("object", "is empty, but must be a classifier");
    return nullptr;
  }
  Kinds list{"classifier", "which classifier", default_kind, {}};
  for (const Kind& kind : kinds) list.names.emplace_back(kind.name, kind.meaning);
  return settings.by_kind(
      list, [](const std::string& kind, const Settings& table) { return find(kind)->make(table); });
}

std::unique_ptr<Classifier> make_classifier(const std::string& kind) {
  const Kind* found = find(kind);
  if (found == nullptr)
    throw ArgumentError("make_classifier: " +
                        unknown_name(kind, "a classifier", classifier_kinds()));
  return found->make(Settings());
}

void save_classifier(const Classifier& classifier, Archive& archive) {
  if (!classifier.fitted())
    throw ArgumentError("save_classifier: the " + classifier.kind() +
                        " is not fitted, but must be fitted before");
  archive.set("kind", classifier.kind());
  classifier.save(archive);
}

std::unique_ptr<Classifier> load_classifier(const Archive& archive) {
  const std::string& name = archive.text("kind");
  const Kind* found = find(name);
  if (found == nullptr)
    throw FileError("load_classifier: " + unknown_name(name, "a classifier", classifier_kinds()));
  auto classifier = found->make(Settings());
  classifier->load(archive);
  return classifier;
}

namespace detail {

void check_rows(const char* function, const TrainingSet& data) {
  const std::size_t n = data.size();
  check_at_least(function, "columns", data.x.cols(), 1);
  check_same_size(function, "denominator", data.denominator.size(), n, "one for each row");
  check_finite_table(function, data.x);
  if (!data.weights.empty()) {
    check_same_size(function, "weights", data.weights.size(), n, "one for each row");
    check_non_negative(function, "weights", data.weights);
  }
}

void check_sides(const char* function, const double (&weight)[2]) {
  for (const int side : {0, 1})
    if (!(weight[side] > 0.0))
      fail_argument(function, side == 0 ? "the numerator's weight" : "the denominator's weight",
                    "0", "positive: both sides need events");
}

std::vector<double> balanced_weights(const char* function, const TrainingSet& data) {
  const std::size_t n = data.size();
  check_at_least(function, "rows", n, 2);
  check_rows(function, data);
  const double half = 0.5 * static_cast<double>(n);
  if (data.weights.empty()) {  // as if all were one, in one pass instead of four
    const auto zeros = std::count(data.denominator.begin(), data.denominator.end(), 0);
    const double count[2] = {double(zeros), double(n) - double(zeros)};
    check_sides(function, count);
    const double each[2] = {half / count[0], half / count[1]};
    std::vector<double> weights(n);
    for (std::size_t i = 0; i < n; ++i) weights[i] = each[data.denominator[i] != 0];
    return weights;
  }
  std::vector<double> weights(data.weights.begin(), data.weights.end());
  double largest[2] = {0.0, 0.0}, total[2] = {0.0, 0.0};
  for (std::size_t i = 0; i < n; ++i) {
    double& so_far = largest[data.denominator[i] != 0];
    so_far = std::max(so_far, weights[i]);
  }
  check_sides(function, largest);
  // In units of each side's largest, so that no sum overflows and none vanishes.
  for (std::size_t i = 0; i < n; ++i) {
    const bool side = data.denominator[i] != 0;
    weights[i] /= largest[side];
    total[0] += side ? 0.0 : weights[i];
    total[1] += side ? weights[i] : 0.0;
  }
  const double factor[2] = {half / total[0], half / total[1]};
  for (std::size_t i = 0; i < n; ++i) weights[i] *= factor[data.denominator[i] != 0];
  return weights;
}

void check_input(const char* function, const Classifier& classifier, MatrixView x) {
  if (!classifier.fitted())
    throw ArgumentError(
        fmt::format("{}: the classifier is not fitted, but must be fitted before", function));
  check_same_size(function, "a row of x", x.cols(), classifier.features(),
                  "the features it was fitted on");
  check_finite_table(function, x);
}

}  // namespace detail

}  // namespace neyman
