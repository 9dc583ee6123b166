#include "neyman/simulators/plugin.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <filesystem>
#include <mutex>
#include <numeric>
#include <utility>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/plugin.h"
#include "simulators/reading.hpp"
#include "simulators/shapes.hpp"

namespace neyman {

namespace {

constexpr int most_features = 100'000;

/// A function of the library; null where it is absent.
template <class Function>
Function* find(void* handle, const char* name) {
  return reinterpret_cast<Function*>(dlsym(handle, name));
}

std::string text_of(const char* text) { return text == nullptr ? "" : text; }

}  // namespace

struct Plugin::Library {
  explicit Library(const std::string& path) {
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored))
      throw FileError(fmt::format(
          "{}: there is no such file; compile the plugin, or correct simulator.library", path));
    // Without a slash the system's folders would be searched instead.
    const auto absolute = std::filesystem::absolute(path).string();
    // NODELETE: run-time libraries of other languages do not like to be unloaded.
    void* handle = dlopen(absolute.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle == nullptr)
      throw FileError(
          fmt::format("{}: cannot be loaded: {}; compile it as a shared library (-shared -fPIC)",
                      path, text_of(dlerror())));
    load(handle, path);
  }

  void load(void* handle, const std::string& path) {
    const auto need = [&](auto*& function, const char* name) {
      function = find<std::remove_reference_t<decltype(*function)>>(handle, name);
      if (function == nullptr)
        throw FileError(
            fmt::format("{}: has no function {}; it must define it as neyman/plugin.h says "
                        "(in C++ inside extern \"C\", in Fortran with bind(C))",
                        path, name));
    };
    decltype(neyman_plugin_abi)* abi = nullptr;
    need(abi, "neyman_plugin_abi");
    if (const int found = abi(); found != NEYMAN_PLUGIN_ABI)
      throw FileError(fmt::format(
          "{}: is for version {} of the plugin interface, but must be for version {}; compile it "
          "again with the plugin.h of this neyman",
          path, found, NEYMAN_PLUGIN_ABI));
    need(sample, "neyman_plugin_sample");
    decltype(neyman_plugin_features)* count = nullptr;
    need(count, "neyman_plugin_features");
    const int found = count();
    if (found < 1 || found > most_features)
      throw FileError(
          fmt::format("{}: neyman_plugin_features() returns {}, but must return between 1 and {}",
                      path, found, most_features));
    dimension = static_cast<std::size_t>(found);
    if (auto* name =
            find<decltype(neyman_plugin_feature_name)>(handle, "neyman_plugin_feature_name"))
      for (int i = 0; i < found; ++i) features.push_back(text_of(name(i)));
    check_names(path);
    auto* safe = find<decltype(neyman_plugin_thread_safe)>(handle, "neyman_plugin_thread_safe");
    thread_safe = safe != nullptr && safe() != 0;
    auto* size = find<decltype(neyman_plugin_parameters)>(handle, "neyman_plugin_parameters");
    auto* name =
        find<decltype(neyman_plugin_parameter_name)>(handle, "neyman_plugin_parameter_name");
    if ((size == nullptr) != (name == nullptr))
      throw FileError(fmt::format(
          "{}: has one of neyman_plugin_parameters and neyman_plugin_parameter_name, but must "
          "have both or none",
          path));
    if (size == nullptr) return;
    names_parameters = true;
    for (int i = 0; i < size(); ++i) parameters.push_back(text_of(name(i)));
  }

  void check_names(const std::string& path) const {
    for (std::size_t i = 0; i < features.size(); ++i)
      if (features[i].empty() ||
          std::find(features.begin(), features.begin() + static_cast<std::ptrdiff_t>(i),
                    features[i]) != features.begin() + static_cast<std::ptrdiff_t>(i))
        throw FileError(fmt::format(
            "{}: neyman_plugin_feature_name({}) is \"{}\", but must be a name of its own", path, i,
            features[i]));
  }

  decltype(neyman_plugin_sample)* sample = nullptr;
  std::size_t dimension = 0;
  std::vector<std::string> features, parameters;
  bool thread_safe = false, names_parameters = false;
  mutable std::mutex one_at_a_time;
};

Plugin::Plugin(Config config, const ParameterSpace& parameters)
    : library_(std::make_shared<const Library>(config.library)),
      config_(std::move(config)),
      parameters_(parameters) {
  check_at_least("plugin", "events_per_run", config_.events_per_run, 1);
  order_.resize(parameters_.size());
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  if (!library_->names_parameters) return;
  auto theirs = library_->parameters, ours = parameters_.names();
  std::sort(theirs.begin(), theirs.end());
  std::sort(ours.begin(), ours.end());
  if (theirs != ours)
    throw FileError(fmt::format(
        "{}: has the parameters {}, but the study has {}; name them alike in [parameters]",
        config_.library, fmt::join(library_->parameters, ", "),
        fmt::join(parameters_.names(), ", ")));
  for (std::size_t i = 0; i < order_.size(); ++i)
    order_[i] = parameters_.index(library_->parameters[i]);
}

DistributionPtr Plugin::make(Settings settings, const ParameterSpace& parameters,
                             const std::string& folder) {
  const std::size_t before = settings.problems().size();
  Config config;
  const auto file = settings.text({"library", "the shared library, relative to the study"});
  config.events_per_run = settings.count(
      {"events_per_run", "training events at one θ; more where a call at a new θ is expensive"},
      config.events_per_run, 1, 10'000'000);
  if (settings.problems().size() > before) return nullptr;
  config.library = (std::filesystem::path(folder) / file).lexically_normal().string();
  try {
    auto made = std::make_shared<Plugin>(std::move(config), parameters);
    // What is wrong with every call is better told now than in the middle of a run.
    Matrix trial(3, made->dimension());
    RandomStream random(1, "trial");
    made->sample(detail::trial_points(parameters).back(), random, trial);
    return made;
  } catch (const FileError& error) {
    settings.problem("library", fmt::format("cannot be used: {}", error.what()));
  } catch (const SimulatorError& error) {
    settings.problem("library", fmt::format("fails in a trial: {}", error.what()));
  }
  return nullptr;
}

std::size_t Plugin::dimension() const { return library_->dimension; }
std::vector<std::string> Plugin::feature_names() const { return library_->features; }
bool Plugin::thread_safe() const { return library_->thread_safe; }

Distribution::Runs Plugin::runs() const { return {.events = config_.events_per_run}; }

void Plugin::sample(std::span<const double> point, RandomStream& random, Matrix& out) const {
  detail::check_shape(*this, out);
  check_same_size(kind(), "point", point.size(), parameters_.size(), "one for each parameter");
  if (out.rows() == 0) return;
  std::vector<double> theta;
  for (const std::size_t p : order_) theta.push_back(point[p]);
  const auto seed = static_cast<std::int64_t>(random.bits() >> 1U);
  const auto fail = [&](const std::string& reason) {
    std::vector<std::size_t> all(parameters_.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    throw SimulatorError(fmt::format("{}: {} at {}, n = {}, seed = {}", config_.library, reason,
                                     detail::describe_point(parameters_, point, all), out.rows(),
                                     seed));
  };
  std::array<char, 1024> message{};
  int status = 0;
  {
    std::unique_lock lock(library_->one_at_a_time, std::defer_lock);
    if (!library_->thread_safe) lock.lock();
    try {
      status =
          library_->sample(theta.data(), static_cast<std::int64_t>(out.rows()), seed, out.data(),
                           message.data(), static_cast<std::int64_t>(message.size()));
    } catch (const std::exception& error) {
      fail(fmt::format("neyman_plugin_sample threw an exception ({})", error.what()));
    } catch (...) {
      fail("neyman_plugin_sample threw an exception");
    }
  }
  message.back() = '\0';
  if (status != 0)
    fail(fmt::format("neyman_plugin_sample returned {}{}{}", status, message[0] == '\0' ? "" : ": ",
                     message.data()));
  for (std::size_t i = 0; i < out.rows(); ++i)
    for (std::size_t j = 0; j < out.cols(); ++j)
      if (!std::isfinite(out(i, j)))
        fail(fmt::format("feature {} of event {} is {}, but must be finite", j, i, out(i, j)));
}

}  // namespace neyman
