// neyman's side of training and scoring: Mlp with the settings that scikit-learn has.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "../../peak.hpp"
#include "../worker.hpp"
#include "neyman/classifiers/ensemble.hpp"
#include "neyman/classifiers/mlp.hpp"
#include "neyman/core/parallel.hpp"

namespace {

using namespace neyman;
using peers::Json;

template <class Value>
std::vector<Value> read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::vector<Value> values(static_cast<std::size_t>(file.tellg()) / sizeof(Value));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(values.data()),
            static_cast<std::streamsize>(values.size() * sizeof(Value)));
  return values;
}

class Contender {
 public:
  Json answer(const Json& request) {
    const auto task = request.at("task").get<std::string>();
    if (task == "load") return load(request);
    if (task == "train") return train(request);
    if (task == "score") return score(request);
    if (task == "peak") return {{"multiply_adds", benchmarks::float_multiply_adds()}};
    if (task == "exchange") return {{"wall", benchmarks::exchange_seconds(request.at("bytes"))}};
    throw std::runtime_error("unknown task " + task);
  }

 private:
  Json load(const Json& request) {
    const auto folder = request.at("folder").get<std::string>();
    auto values = read_all<double>(folder + "/x.f64");
    const auto features = request.at("features").get<std::size_t>();
    const std::size_t rows = values.size() / features;
    x_ = Matrix(rows, features, std::move(values));
    labels_ = read_all<std::uint8_t>(folder + "/y.u8");
    rows_ = request.at("rows");
    return Json::object();
  }

  Json train(const Json& request) {
    set_threads(request.value("threads", std::size_t{1}));
    classifier_ = make(request);
    Json out = peers::timed([&] {
      classifier_->fit(
          {x_.rows(0, rows_), std::span(labels_).first(rows_), {}, request.at("seed")});
    });
    set_threads(1);
    out["cross_entropy"] = cross_entropy();
    return out;
  }

  /// One network, or an ensemble of `members`.
  static std::unique_ptr<Classifier> make(const Json& request) {
    Mlp::Config config;
    config.hidden = request.at("hidden").get<std::vector<std::size_t>>();
    config.activation = request.at("activation") == "relu"   ? Mlp::Activation::relu
                        : request.at("activation") == "tanh" ? Mlp::Activation::tanh
                                                             : Mlp::Activation::silu;
    config.batch_size = request.at("batch");
    config.epochs = request.at("epochs");
    config.learning_rate = request.at("rate");
    if (request.value("schedule", "constant") == "constant") {
      config.schedule = Mlp::Schedule::constant;
      config.warm_up = 0.0;
    }
    config.weight_decay = 0.0;
    const std::size_t members = request.value("members", std::size_t{1});
    if (members == 1) return std::make_unique<Mlp>(config);
    Ensemble::Config ensemble;
    ensemble.members = members;
    ensemble.of = {std::make_shared<Mlp>(config)};
    return std::make_unique<Ensemble>(ensemble);
  }

  double cross_entropy() const {
    const auto logits = classifier_->logits(x_.rows(rows_, x_.rows()));
    double sum = 0.0;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const double wrong = labels_[rows_ + i] == 1 ? -logits[i] : logits[i];
      sum += std::max(wrong, 0.0) + std::log1p(std::exp(-std::abs(wrong)));
    }
    return sum / static_cast<double>(logits.size());
  }

  Json score(const Json& request) const {
    const auto chunk = request.at("chunk").get<std::size_t>();
    return peers::timed([&] {
      for (std::size_t i = 0; i < rows_; i += chunk)
        classifier_->logits(x_.rows(i, std::min(rows_, i + chunk)));
    });
  }

  Matrix x_;
  std::vector<std::uint8_t> labels_;
  std::size_t rows_ = 0;  // the rest is held out
  std::unique_ptr<Classifier> classifier_;
};

}  // namespace

int main() {
  set_threads(1);
  Contender contender;
  return peers::serve([&](const Json& request) { return contender.answer(request); });
}
