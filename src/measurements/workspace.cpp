#include "neyman/measurements/workspace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/data/atomic_file.hpp"

namespace neyman {

Modifier Modifier::norm_factor(std::string name) { return {Kind::norm_factor, std::move(name)}; }
Modifier Modifier::norm_sys(std::string name, double low, double high) {
  return {Kind::norm_sys, std::move(name), {low}, {high}};
}
Modifier Modifier::histo_sys(std::string name, std::vector<double> low, std::vector<double> high) {
  return {Kind::histo_sys, std::move(name), std::move(low), std::move(high)};
}
Modifier Modifier::shape_sys(std::string name, std::vector<double> uncertainty) {
  return {Kind::shape_sys, std::move(name), {}, {}, std::move(uncertainty)};
}
Modifier Modifier::stat_error(std::string name, std::vector<double> uncertainty) {
  return {Kind::stat_error, std::move(name), {}, {}, std::move(uncertainty)};
}
Modifier Modifier::shape_factor(std::string name) { return {Kind::shape_factor, std::move(name)}; }
Modifier Modifier::lumi(std::string name) { return {Kind::lumi, std::move(name)}; }

namespace {

using Json = nlohmann::ordered_json;
using Kind = Modifier::Kind;

/// No workspace is nested as deeply; what is would end in an overflow of the stack.
constexpr int deepest_nesting = 64;
constexpr std::size_t longest_value_shown = 60;

constexpr std::array kinds{Kind::norm_factor, Kind::norm_sys,     Kind::histo_sys, Kind::shape_sys,
                           Kind::stat_error,  Kind::shape_factor, Kind::lumi};

/// A value of the file with its place, "channels[0].samples[1].data": what is read from it is
/// checked, and errors name the place.
class Node {
 public:
  Node(const Json& json, std::string source, std::string path)
      : json_(&json), source_(std::move(source)), path_(std::move(path)) {}

  [[noreturn]] void fail(const std::string& message) const {
    throw FileError(fmt::format("{}: {} {}", source_, path_.empty() ? "the file" : path_, message));
  }

  bool has(const char* key) const { return json_->contains(key); }

  Node at(const char* key) const {
    if (!has(key)) fail(fmt::format("has no '{}', which it must have", key));
    return {(*json_)[key], source_, path_.empty() ? key : path_ + "." + key};
  }

  /// Refuses all other keys: they would be lost in silence.
  const Node& only(const std::vector<std::string>& keys) const {
    if (!json_->is_object()) fail(fmt::format("is {}, but must be an object", json_->type_name()));
    for (const auto& item : json_->items())
      if (std::find(keys.begin(), keys.end(), item.key()) == keys.end())
        fail("has " + unknown_name(item.key(), "a key here", keys));
    return *this;
  }

  std::vector<Node> items() const {
    if (!json_->is_array()) fail(fmt::format("is {}, but must be a list", json_->type_name()));
    std::vector<Node> out;
    for (std::size_t i = 0; i < json_->size(); ++i)
      out.emplace_back((*json_)[i], source_, fmt::format("{}[{}]", path_, i));
    return out;
  }

  std::string text() const {
    if (!json_->is_string()) fail(fmt::format("is {}, but must be a string", json_->type_name()));
    return json_->get<std::string>();
  }

  bool flag() const {
    if (!json_->is_boolean()) fail(fmt::format("is {}, but must be true or false", shown()));
    return json_->get<bool>();
  }

  double number() const {
    if (!json_->is_number()) fail(fmt::format("is {}, but must be a number", shown()));
    const double value = json_->get<double>();
    if (!std::isfinite(value)) fail(fmt::format("is {}, but must be finite", shown()));
    return value;
  }

  std::vector<double> numbers() const {
    std::vector<double> out;
    for (const auto& item : items()) out.push_back(item.number());
    return out;
  }

  /// Empty where the key is not there.
  std::vector<double> optional_numbers(const char* key) const {
    return has(key) ? at(key).numbers() : std::vector<double>{};
  }

 private:
  std::string shown() const {
    const auto text = json_->dump();
    return text.size() <= longest_value_shown ? text : text.substr(0, longest_value_shown) + "…";
  }

  const Json* json_;
  std::string source_, path_;
};

Modifier read_modifier(const Node& node) {
  node.only({"name", "type", "data"});
  const auto type = node.at("type").text();
  std::vector<std::string> names;
  for (const auto kind : kinds) names.push_back(to_string(kind));
  const auto found = std::find(names.begin(), names.end(), type);
  if (found == names.end()) node.fail("has " + unknown_name(type, "a type of modifier", names));
  Modifier out{kinds[static_cast<std::size_t>(found - names.begin())], node.at("name").text()};
  switch (out.kind) {
    case Kind::norm_sys: {
      const auto data = node.at("data").only({"lo", "hi"});
      out.low = {data.at("lo").number()};
      out.high = {data.at("hi").number()};
      break;
    }
    case Kind::histo_sys: {
      const auto data = node.at("data").only({"lo_data", "hi_data"});
      out.low = data.at("lo_data").numbers();
      out.high = data.at("hi_data").numbers();
      break;
    }
    case Kind::shape_sys:
    case Kind::stat_error:
      out.uncertainty = node.at("data").numbers();
      break;
    case Kind::norm_factor:
    case Kind::shape_factor:
    case Kind::lumi:
      break;
  }
  return out;
}

ParameterSettings read_parameter(const Node& node) {
  node.only({"name", "inits", "bounds", "auxdata", "sigmas", "factors", "fixed"});
  ParameterSettings out{node.at("name").text()};
  out.start = node.optional_numbers("inits");
  out.auxiliary = node.optional_numbers("auxdata");
  out.sigma = node.optional_numbers("sigmas");
  out.tau = node.optional_numbers("factors");
  if (node.has("fixed")) out.fixed = node.at("fixed").flag();
  if (node.has("bounds"))
    for (const auto& item : node.at("bounds").items()) {
      const auto ends = item.numbers();
      if (ends.size() != 2)
        item.fail(fmt::format("has {} values, but must have 2: low and high", ends.size()));
      out.range.push_back({ends[0], ends[1]});
    }
  return out;
}

MeasurementSettings read_measurement(const Node& node) {
  node.only({"name", "config"});
  const auto config = node.at("config").only({"poi", "parameters"});
  MeasurementSettings out{node.at("name").text(), config.at("poi").text()};
  for (const auto& item : config.at("parameters").items())
    out.parameters.push_back(read_parameter(item));
  return out;
}

BinnedChannel read_channel(const Node& node) {
  node.only({"name", "samples"});
  BinnedChannel out{node.at("name").text(), {}, {}};
  for (const auto& item : node.at("samples").items()) {
    item.only({"name", "data", "modifiers"});
    BinnedSample sample{item.at("name").text(), item.at("data").numbers()};
    for (const auto& modifier : item.at("modifiers").items())
      sample.modifiers.push_back(read_modifier(modifier));
    out.samples.push_back(std::move(sample));
  }
  return out;
}

void read_observations(const Node& node, Workspace& workspace) {
  std::vector<bool> seen(workspace.channels.size(), false);
  std::vector<std::string> names;
  for (const auto& channel : workspace.channels) names.push_back(channel.name);
  for (const auto& item : node.items()) {
    item.only({"name", "data"});
    const auto name = item.at("name").text();
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) item.at("name").fail("is " + unknown_name(name, "a channel", names));
    const auto c = static_cast<std::size_t>(found - names.begin());
    if (seen[c]) item.at("name").fail(fmt::format("is '{}' a second time", name));
    seen[c] = true;
    workspace.channels[c].observed = item.at("data").numbers();
  }
  for (std::size_t c = 0; c < seen.size(); ++c)
    if (!seen[c]) node.fail(fmt::format("has nothing for the channel '{}'", names[c]));
}

Json modifier_json(const Modifier& modifier) {
  Json data = nullptr;
  if (modifier.kind == Kind::norm_sys)
    data = {{"hi", modifier.high.at(0)}, {"lo", modifier.low.at(0)}};
  else if (modifier.kind == Kind::histo_sys)
    data = {{"hi_data", modifier.high}, {"lo_data", modifier.low}};
  else if (modifier.kind == Kind::shape_sys || modifier.kind == Kind::stat_error)
    data = modifier.uncertainty;
  return {{"name", modifier.name}, {"type", to_string(modifier.kind)}, {"data", data}};
}

Json parameter_json(const ParameterSettings& settings) {
  Json out = {{"name", settings.name}};
  if (!settings.start.empty()) out["inits"] = settings.start;
  if (!settings.range.empty()) out["bounds"] = settings.range;
  if (!settings.auxiliary.empty()) out["auxdata"] = settings.auxiliary;
  if (!settings.sigma.empty()) out["sigmas"] = settings.sigma;
  if (!settings.tau.empty()) out["factors"] = settings.tau;
  if (!settings.kappa.empty())
    fail_argument("workspace_json", fmt::format("the constraint of '{}'", settings.name),
                  "log-normal", "Gaussian or Poisson: pyhf has no other");
  if (settings.fixed) out["fixed"] = *settings.fixed;
  return out;
}

}  // namespace

std::string to_string(Modifier::Kind kind) {
  switch (kind) {
    case Kind::norm_factor:
      return "normfactor";
    case Kind::norm_sys:
      return "normsys";
    case Kind::histo_sys:
      return "histosys";
    case Kind::shape_sys:
      return "shapesys";
    case Kind::stat_error:
      return "staterror";
    case Kind::shape_factor:
      return "shapefactor";
    case Kind::lumi:
      return "lumi";
  }
  return "normfactor";
}

Workspace parse_workspace(std::string_view text, const std::string& source) {
  Json json;
  const auto not_too_deep = [&](int depth, Json::parse_event_t, Json&) {
    if (depth > deepest_nesting)
      throw FileError(fmt::format("{}: is nested more than {} deep, as no workspace is", source,
                                  deepest_nesting));
    return true;
  };
  try {
    json = Json::parse(text, not_too_deep);
  } catch (const Json::parse_error& error) {
    const auto before = text.substr(0, std::min<std::size_t>(text.size(), error.byte));
    throw FileError(fmt::format("{}: is not JSON: it cannot be read beyond line {}", source,
                                1 + std::count(before.begin(), before.end(), '\n')));
  } catch (const Json::exception&) {
    throw FileError(fmt::format("{}: is not JSON", source));
  }
  const Node root(json, source, "");
  root.only({"channels", "measurements", "observations", "version"});
  const auto version = root.at("version");
  if (version.text() != "1.0.0")
    version.fail(fmt::format("is '{}', but must be '1.0.0'", version.text()));
  Workspace out;
  for (const auto& item : root.at("channels").items()) out.channels.push_back(read_channel(item));
  for (const auto& item : root.at("measurements").items())
    out.measurements.push_back(read_measurement(item));
  read_observations(root.at("observations"), out);
  return out;
}

Workspace read_workspace(const std::string& path) { return parse_workspace(read_file(path), path); }

std::string workspace_json(const Workspace& workspace) {
  Json channels = Json::array(), observations = Json::array(), measurements = Json::array();
  for (const auto& channel : workspace.channels) {
    Json samples = Json::array();
    for (const auto& sample : channel.samples) {
      Json modifiers = Json::array();
      for (const auto& modifier : sample.modifiers) modifiers.push_back(modifier_json(modifier));
      samples.push_back({{"name", sample.name}, {"data", sample.yields}, {"modifiers", modifiers}});
    }
    channels.push_back({{"name", channel.name}, {"samples", samples}});
    observations.push_back({{"name", channel.name}, {"data", channel.observed}});
  }
  for (const auto& measurement : workspace.measurements) {
    Json parameters = Json::array();
    for (const auto& settings : measurement.parameters)
      parameters.push_back(parameter_json(settings));
    measurements.push_back(
        {{"name", measurement.name},
         {"config", {{"poi", measurement.interest}, {"parameters", parameters}}}});
  }
  const Json out = {{"channels", channels},
                    {"observations", observations},
                    {"measurements", measurements},
                    {"version", "1.0.0"}};
  return out.dump(2) + "\n";
}

void write_workspace(const Workspace& workspace, const std::string& path) {
  write_file_atomically(path, workspace_json(workspace));
}

}  // namespace neyman
