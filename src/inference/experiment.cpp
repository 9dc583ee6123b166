#include "neyman/inference/experiment.hpp"

#include "neyman/core/check.hpp"

namespace neyman {

Experiment make_experiment(const Distribution& simulator, std::size_t events,
                           LikelihoodFactory likelihood, std::vector<Constraint> constraints) {
  check_at_least("make_experiment", "events", events, 1);
  if (!likelihood) fail_argument("make_experiment", "likelihood", "empty", "a function");
  return
      [&simulator, events, likelihood = std::move(likelihood),
       constraints = std::move(constraints)](std::span<const double> point, RandomStream& random) {
        Matrix x(events, simulator.dimension());
        simulator.sample(point, random, x);
        auto of = likelihood(std::move(x));
        if (of == nullptr)
          fail_argument("make_experiment", "what likelihood returns", "null", "a likelihood");
        if (constraints.empty()) return of;
        std::vector<Constraint> drawn;
        for (const auto& constraint : constraints)
          drawn.push_back(constraint.sampled(point[constraint.parameter()], random));
        return std::unique_ptr<Likelihood>(
            std::make_unique<ConstrainedLikelihood>(std::move(of), std::move(drawn)));
      };
}

}  // namespace neyman
