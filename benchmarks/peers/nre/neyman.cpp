// neyman's side of two tasks of the sbi literature: log r(x; θ) for all θ of a prior, learned from
// a budget of simulations. tasks.py has the same simulators and the exact densities.
#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "../worker.hpp"
#include "neyman/classifiers/mlp.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/ratios/classifier_across.hpp"
#include "neyman/ratios/separable_ratio.hpp"
#include "neyman/simulators/join.hpp"
#include "neyman/simulators/multivariate_normal.hpp"
#include "neyman/simulators/normal.hpp"

namespace {

using namespace neyman;
using peers::Json;

ParameterSpace space(std::size_t size, double reach) {
  std::vector<Parameter> out;
  for (std::size_t i = 0; i < size; ++i)
    out.push_back({std::string("t").append(std::to_string(i + 1)), -reach, reach, {}});
  return ParameterSpace(std::move(out));
}

/// A simulator, and where its θ come from.
struct Task {
  DistributionPtr simulator;
  Design design;
};

/// x ~ N(θ, 0.1 · 1) in ten dimensions, θ ~ N(0, 0.1 · 1).
Task linear_gaussian() {
  const double sigma = std::sqrt(0.1);
  const auto parameters = space(10, 6.0 * sigma);
  std::vector<DistributionPtr> parts;
  for (std::size_t i = 0; i < parameters.size(); ++i)
    parts.push_back(std::make_shared<Normal>(Expression(parameters[i].name, parameters), sigma));
  Design::Config config;
  config.kind = Design::Kind::normal;
  config.sigma.assign(parameters.size(), sigma);
  return {std::make_shared<Join>(std::move(parts)), Design(parameters, config)};
}

/// Simple likelihood, complex posterior (Papamakarios, Sterratt and Murray 2019): four points of a
/// normal in the plane whose five parameters enter by squares and tanh; θ uniform in [−3, 3]⁵.
Task slcp() {
  const auto parameters = space(5, 3.0);
  const auto formula = [&](const char* text) { return Expression(text, parameters); };
  std::vector<DistributionPtr> points;
  for (int i = 0; i < 4; ++i)
    points.push_back(std::make_shared<MultivariateNormal>(
        std::vector<Expression>{formula("t1"), formula("t2")},
        std::vector<std::vector<Expression>>{{formula("t3^4"), formula("tanh(t5)*t3^2*t4^2")},
                                             {formula("tanh(t5)*t3^2*t4^2"), formula("t4^4")}}));
  return {std::make_shared<Join>(std::move(points)), Design(parameters)};
}

class Contender {
 public:
  Json answer(const Json& request) {
    const auto task = request.at("task").get<std::string>();
    if (task == "train") return train(request);
    if (task == "evaluate") return evaluate(request);
    if (task == "memory") return {{"peak", peers::peak_memory()}};
    throw std::runtime_error("unknown task " + task);
  }

 private:
  Json train(const Json& request) {
    const auto problem = request.at("problem") == "slcp" ? slcp() : linear_gaussian();
    const auto seed = request.at("seed").get<std::uint64_t>();
    const auto events = simulate(*problem.simulator, problem.design.parameters(), problem.design,
                                 request.at("samples"), seed, "numerator");
    return peers::timed([&] {
      if (request.at("method") == "separable") {
        SeparableRatio::Config config;
        config.seed = seed;
        ratio_ = std::make_unique<SeparableRatio>(events, problem.design, config);
      } else {
        ParameterizedClassifierRatio::Config config;
        config.classifier = std::make_shared<Mlp>(Mlp::Config());
        config.seed = seed;
        ratio_ = std::make_unique<ParameterizedClassifierRatio>(events, Samples(), problem.design,
                                                                config);
      }
    });
  }

  /// log r of each event at its own θ, up to a constant of the event.
  Json evaluate(const Json& request) const {
    Json values = Json::array();
    Json out = peers::timed([&] {
      const auto& points = request.at("theta");
      const auto& events = request.at("x");
      for (std::size_t i = 0; i < events.size(); ++i) {
        const auto x = events[i].get<std::vector<double>>();
        const auto sum = ratio_->over(Matrix(1, x.size(), x));
        Json& row = values.emplace_back(Json::array());
        for (const auto& point : points[i])
          row.push_back((*sum)(point.get<std::vector<double>>(), {}));
      }
    });
    out["values"] = std::move(values);
    return out;
  }

  std::unique_ptr<ParameterizedRatio> ratio_;
};

}  // namespace

int main() {
  set_threads(1);
  Contender contender;
  return peers::serve([&](const Json& request) { return contender.answer(request); });
}
