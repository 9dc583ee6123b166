#include "neyman/classifiers/mlp.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "classifiers/mlp_training.hpp"
#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"

namespace neyman {
namespace {

// Names of the choices, in the order of the enumerations.
const std::vector<std::string> activations{"relu", "tanh", "silu"};
const std::vector<std::string> losses{"cross-entropy", "squared-error"};
const std::vector<std::string> schedules{"constant", "cosine", "step", "exponential"};

template <class Choice>
Choice from_name(const std::string& name, const std::vector<std::string>& names) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) throw FileError(unknown_name(name, "choice of mlp", names));
  return static_cast<Choice>(found - names.begin());
}
template <class Choice>
const std::string& name_of(Choice choice, const std::vector<std::string>& names) {
  return names[static_cast<std::size_t>(choice)];
}

void check_config(const Mlp::Config& c) {
  const char* mlp = "Mlp";
  for (std::size_t width : c.hidden) check_in_range(mlp, "hidden", double(width), 1, 65536);
  check_at_least(mlp, "batch_size", c.batch_size, 1);
  check_at_least(mlp, "epochs", c.epochs, 1);
  check_positive(mlp, "learning_rate", c.learning_rate);
  check_in_range(mlp, "warm_up", c.warm_up, 0.0, 1.0);
  check_in_range(mlp, "final_rate", c.final_rate, 0.0, 1.0);
  check_in_range(mlp, "decay", c.decay, 0.0, 1.0);
  check_at_least(mlp, "decay_epochs", c.decay_epochs, 1);
  check_in_range(mlp, "beta1", c.beta1, 0.0, 0.999999);
  check_in_range(mlp, "beta2", c.beta2, 0.0, 0.999999);
  if (c.weight_decay) check_in_range(mlp, "weight_decay", *c.weight_decay, 0.0, 1e6);
  check_in_range(mlp, "l2", c.l2, 0.0, 1e6);
  check_in_range(mlp, "held_out", c.held_out, 0.0, 0.9);
  check_at_least(mlp, "patience", c.patience, 1);
}

constexpr std::size_t scoring_block = 8192;

}  // namespace

Mlp::Config Mlp::Config::from(Settings settings) {
  Config c;
  c.hidden =
      settings.whole_numbers({"hidden", "width of each hidden layer; []: a linear classifier"},
                             c.hidden, Limits::between(1, 65536));
  const auto choose = [&]<class Choice>(const Key& key, Choice& value,
                                        const std::vector<std::string>& names) {
    value = from_name<Choice>(settings.choice(key, name_of(value, names), names), names);
  };
  const auto count = [&](const Key& key, std::size_t& value) {
    value = settings.count(key, value, 1, 1'000'000'000);
  };
  const auto number = [&](const Key& key, double& value, Limits limits) {
    value = settings.number(key, value, limits);
  };
  choose({"activation", "of the hidden layers"}, c.activation, activations);
  choose({"loss", "what the training minimises"}, c.loss, losses);
  choose({"schedule", "how the learning rate falls over the training"}, c.schedule, schedules);
  count({"batch_size", "rows a step"}, c.batch_size);
  count({"epochs", "passes over the data, at most"}, c.epochs);
  count({"decay_epochs",
         "schedule \"step\" or \"exponential\": epochs in which the rate falls by decay"},
        c.decay_epochs);
  count({"patience", "epochs without a better held-out loss before it stops"}, c.patience);
  number({"learning_rate", "the highest of the schedule"}, c.learning_rate, Limits::positive());
  number({"warm_up", "part of the steps over which the rate rises to it"}, c.warm_up,
         Limits::between(0, 1));
  number({"final_rate", "schedule \"cosine\": the last rate, as a part of the first"}, c.final_rate,
         Limits::between(0, 1));
  number({"decay", "schedule \"step\" or \"exponential\": factor every decay_epochs"}, c.decay,
         Limits::between(0, 1));
  number({"beta1", "Adam's memory of the gradient"}, c.beta1, Limits::between(0, 0.999999));
  number({"beta2", "Adam's memory of its square"}, c.beta2, Limits::between(0, 0.999999));
  c.weight_decay = settings.optional_number(
      {"weight_decay",
       "weights shrink by rate times this each step; absent: 4.5/√n for n events, because the less "
       "there is to learn from, the smoother the answer must be"},
      Limits::between(0, 1e6));
  number({"l2", "adds l2/2 times the sum of the squared weights to the loss"}, c.l2,
         Limits::between(0, 1e6));
  number({"held_out", "part of the rows kept to watch the loss; 0: none, and no early stop"},
         c.held_out, Limits::between(0, 0.9));
  return c;
}

/// A trained network, ready to score.
struct Mlp::State {
  State(std::unique_ptr<const mlp::Network> of, mlp::Buffer values, std::vector<Epoch> epochs,
        const mlp::Scaling& scaling)
      : network(std::move(of)),
        parameters(std::move(values)),
        transposed(network->shape().transposed),
        mean(scaling.mean),
        scale(scaling.scale),
        history(std::move(epochs)) {
    mlp::kernels().transpose(network->shape(), parameters.data(), transposed.data());
    mean.resize(network->shape().layers[0].in_pad);
    scale.resize(mean.size());
  }

  std::size_t features() const { return network->shape().layers[0].in; }
  mlp::Inputs inputs(MatrixView x) const {
    return {x.data(), x.stride(), x.rows(), mean.data(), scale.data()};
  }

  std::unique_ptr<const mlp::Network> network;
  mlp::Buffer parameters, transposed;
  std::vector<double> mean, scale;  // of the inputs, padded with zeros
  std::vector<Epoch> history;
};

Mlp::Mlp(Config config) : config_(std::move(config)) { check_config(config_); }
Mlp::~Mlp() = default;
Mlp::Mlp(Mlp&&) noexcept = default;
Mlp& Mlp::operator=(Mlp&&) noexcept = default;

std::size_t Mlp::shares() const { return mlp::shares(config_); }

void Mlp::fit(const TrainingSet& data) { fit_together({{this, data.seed}}, data); }

void Mlp::fit_epochs(const TrainingEpochs& epochs, std::uint64_t seed, Progress* progress) {
  if (config_.held_out > 0.0)
    fail_argument("Mlp::fit_epochs", "held_out", fmt::format("{}", config_.held_out),
                  "0 where every epoch has events of its own");
  const TrainingRows first = epochs(0);
  learn({{this, seed}}, [&](const auto& trainees) {
    return mlp::train({first.x, first.denominator, first.weights, seed, progress}, &epochs,
                      trainees);
  });
}

void Mlp::fit_stream(const TrainingStream& stream) { fit_together({{this, stream.seed}}, stream); }

void Mlp::fit_together(const std::vector<Member>& members, const TrainingSet& data) {
  learn(members, [&](const auto& trainees) { return mlp::train(data, nullptr, trainees); });
}

void Mlp::fit_together(const std::vector<Member>& members, const TrainingStream& stream) {
  learn(members, [&](const auto& trainees) { return mlp::train(stream, trainees); });
}

template <class Train>
void Mlp::learn(const std::vector<Member>& members, const Train& train) {
  if (members.empty()) return;
  std::vector<mlp::Trainee> trainees;
  for (const Member& one : members) {
    const double part = one.network->config_.held_out, first = members[0].network->config_.held_out;
    if (part != first)
      fail_argument("Mlp::fit_together", "held_out", fmt::format("{}", part),
                    fmt::format("{}, as of the first", first));
    trainees.push_back({one.network->config_, one.seed, one.bootstrap});
  }
  mlp::Training learned = train(trainees);
  for (std::size_t k = 0; k < members.size(); ++k) {
    mlp::Trained& own = learned.networks[k];
    members[k].network->state_ = std::make_unique<State>(
        std::move(own.network), std::move(own.parameters), std::move(own.history), learned.scaling);
  }
}

namespace {

void check_fitted(const char* function, const Mlp& classifier) {
  if (!classifier.fitted()) {
    throw ArgumentError(std::string(function) +
                        ": the classifier is not fitted, but must be fitted before");
  }
}

/// All but the values, which the kernels check as they go.
void check_columns(const char* function, const Mlp& classifier, MatrixView x) {
  detail::check_input(function, classifier, x.rows(0, 0));
}

}  // namespace

std::size_t Mlp::features() const { return state_ ? state_->features() : 0; }

Logits Mlp::logits(MatrixView x) const {
  check_columns("Mlp::logits", *this, x);
  const mlp::Kernels& kernels = mlp::kernels();
  Logits result(x.rows());
  parallel_blocks(x.rows(), scoring_block, [&](Block block) {
    auto scratch = state_->network->scratch();
    const MatrixView part = x.rows(block.begin, block.end);
    if (!kernels.score(state_->network->shape(), state_->parameters.data(), state_->inputs(part),
                       result.values().data() + block.begin, scratch.data())) {
      detail::check_input("Mlp::logits", *this, x);
    }
  });
  return result;
}

Matrix Mlp::gradient(MatrixView x) const {
  check_columns("Mlp::gradient", *this, x);
  const mlp::Kernels& kernels = mlp::kernels();
  Matrix result(x.rows(), x.cols());
  parallel_blocks(x.rows(), scoring_block, [&](Block block) {
    auto scratch = state_->network->scratch();
    const MatrixView part = x.rows(block.begin, block.end);
    if (!kernels.input_gradient(state_->network->shape(), state_->parameters.data(),
                                state_->transposed.data(), state_->inputs(part),
                                result.data() + block.begin * x.cols(), scratch.data())) {
      detail::check_input("Mlp::gradient", *this, x);
    }
  });
  return result;
}

const std::vector<Mlp::Epoch>& Mlp::history() const {
  check_fitted("Mlp::history", *this);
  return state_->history;
}

std::vector<float> Mlp::parameters() const {
  check_fitted("Mlp::parameters", *this);
  return state_->network->unpack(state_->parameters.data());
}

void Mlp::save(Archive& archive) const {
  check_fitted("Mlp::save", *this);
  const Config& c = config_;
  archive.set("hidden", std::vector<std::int64_t>(c.hidden.begin(), c.hidden.end()));
  archive.set("activation", name_of(c.activation, activations));
  archive.set("loss", name_of(c.loss, losses));
  archive.set("schedule", name_of(c.schedule, schedules));
  archive.set("batch_size", c.batch_size);
  archive.set("epochs", c.epochs);
  archive.set("decay_epochs", c.decay_epochs);
  archive.set("patience", c.patience);
  archive.set("learning_rate", c.learning_rate);
  archive.set("warm_up", c.warm_up);
  archive.set("final_rate", c.final_rate);
  archive.set("decay", c.decay);
  archive.set("beta1", c.beta1);
  archive.set("beta2", c.beta2);
  if (c.weight_decay) archive.set("weight_decay", *c.weight_decay);
  archive.set("l2", c.l2);
  archive.set("held_out", c.held_out);

  const auto features = static_cast<std::ptrdiff_t>(state_->features());
  archive.set("mean", std::vector<double>(state_->mean.begin(), state_->mean.begin() + features));
  archive.set("scale",
              std::vector<double>(state_->scale.begin(), state_->scale.begin() + features));
  archive.set("parameters", parameters());
  std::vector<double> training, held_out;
  for (const Epoch& epoch : state_->history) {
    training.push_back(epoch.training);
    held_out.push_back(epoch.held_out);
  }
  archive.set("training_loss", training);
  archive.set("held_out_loss", held_out);
}

void Mlp::load(const Archive& archive) {
  Config c;
  c.hidden.clear();
  for (std::int64_t width : archive.get<std::vector<std::int64_t>>("hidden"))
    c.hidden.push_back(static_cast<std::size_t>(width));
  c.activation = from_name<Activation>(archive.text("activation"), activations);
  c.loss = from_name<Loss>(archive.text("loss"), losses);
  c.schedule = from_name<Schedule>(archive.text("schedule"), schedules);
  const auto count = [&](const char* key) {
    return static_cast<std::size_t>(archive.integer(key));
  };
  c.batch_size = count("batch_size");
  c.epochs = count("epochs");
  c.decay_epochs = count("decay_epochs");
  c.patience = count("patience");
  c.learning_rate = archive.number("learning_rate");
  c.warm_up = archive.number("warm_up");
  c.final_rate = archive.number("final_rate");
  c.decay = archive.number("decay");
  c.beta1 = archive.number("beta1");
  c.beta2 = archive.number("beta2");
  if (archive.has("weight_decay")) c.weight_decay = archive.number("weight_decay");
  c.l2 = archive.number("l2");
  c.held_out = archive.number("held_out");
  check_config(c);

  const auto& mean = archive.numbers("mean");
  const auto& scale = archive.numbers("scale");
  const auto& parameters = archive.get<std::vector<float>>("parameters");
  const auto& training = archive.numbers("training_loss");
  const auto& held_out = archive.numbers("held_out_loss");
  if (mean.empty()) throw FileError("Mlp::load: mean is empty, but must have a value a feature");
  auto network = mlp::make_network(mean.size(), c);
  check_same_size("Mlp::load", "scale", scale.size(), mean.size(), "one for each feature");
  check_same_size("Mlp::load", "parameters", parameters.size(), network->plain_size(),
                  "as many as the layers have");
  check_same_size("Mlp::load", "held_out_loss", held_out.size(), training.size(),
                  "one for each epoch");
  mlp::Buffer packed(network->shape().parameters);
  network->pack(parameters, packed.data());
  std::vector<Epoch> history;
  for (std::size_t i = 0; i < training.size(); ++i) history.push_back({training[i], held_out[i]});
  config_ = std::move(c);
  state_ = std::make_unique<State>(std::move(network), std::move(packed), std::move(history),
                                   mlp::Scaling{mean, scale});
}

}  // namespace neyman
