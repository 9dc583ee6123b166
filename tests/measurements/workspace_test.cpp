#include "neyman/measurements/workspace.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "known_models.hpp"
#include "neyman/core/error.hpp"
#include "neyman/measurements/statistical_model.hpp"

namespace neyman {
namespace {

using testing::reference_names;
using testing::reference_path;

std::string message(const std::string& text) {
  try {
    parse_workspace(text, "file.json");
  } catch (const FileError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

/// A small workspace after a change.
template <class Change>
std::string changed(Change&& change) {
  auto json = nlohmann::json::parse(read_file(reference_path("correlated")));
  change(json);
  return json.dump();
}

TEST(Workspace, HoldsWhatTheFileSays) {
  const auto workspace = read_workspace(reference_path("correlated"));
  ASSERT_EQ(workspace.channels.size(), 1u);
  const auto& channel = workspace.channels[0];
  EXPECT_EQ(channel.name, "region");
  EXPECT_EQ(channel.observed, (std::vector<double>{74, 77}));
  ASSERT_EQ(channel.samples.size(), 2u);
  EXPECT_EQ(channel.samples[0].yields, (std::vector<double>{8, 14}));
  EXPECT_EQ(channel.samples[0].modifiers[0], Modifier::norm_factor("mu"));
  EXPECT_EQ(channel.samples[0].modifiers[1], Modifier::norm_sys("efficiency", 0.92, 1.07));
  EXPECT_EQ(channel.samples[1].modifiers[2],
            Modifier::histo_sys("scale", {56.0, 50.0}, {63.0, 44.5}));
  EXPECT_EQ(workspace.measurements[0].interest, "mu");
  const auto other = read_workspace(reference_path("finite_simulation"));
  const ParameterSettings lumi{"lumi", {1.0}, {{0.5, 1.5}}, {1.0}, {0.02}};
  EXPECT_EQ(other.measurements[0].parameters[0], lumi);
  EXPECT_EQ(other.channels[0].samples[2].modifiers[0], Modifier::shape_factor("multijet_shape"));
  EXPECT_EQ(other.channels[0].samples[0].modifiers[2],
            Modifier::stat_error("mc_tagged", {0.5, 0.9, 0.7}));
}

TEST(Workspace, IsWrittenAsItWasRead) {
  for (const auto* name : reference_names) {
    const auto workspace = read_workspace(reference_path(name));
    EXPECT_EQ(parse_workspace(workspace_json(workspace)), workspace) << name;
    // The same content as the file that pyhf read, whatever the order of keys.
    EXPECT_EQ(nlohmann::json::parse(workspace_json(workspace)),
              nlohmann::json::parse(read_file(reference_path(name))))
        << name;
  }
  const auto path =
      (std::filesystem::temp_directory_path() / "neyman_workspace_test.json").string();
  const auto workspace = read_workspace(reference_path("control"));
  write_workspace(workspace, path);
  EXPECT_EQ(read_workspace(path), workspace);
  std::filesystem::remove(path);
}

TEST(Workspace, ErrorsNameThePlace) {
  EXPECT_THROW(read_workspace("no/such/file.json"), FileError);
  EXPECT_EQ(message("{").substr(0, 23), "file.json: is not JSON:");
  EXPECT_EQ(message("[]"), "file.json: the file is array, but must be an object");
  EXPECT_EQ(message(changed([](auto& json) { json.erase("observations"); })),
            "file.json: the file has no 'observations', which it must have");
  EXPECT_EQ(message(changed([](auto& json) { json["version"] = "2.0.0"; })),
            "file.json: version is '2.0.0', but must be '1.0.0'");
  EXPECT_EQ(
      message(changed([](auto& json) { json["channels"][0]["samples"][1]["data"][0] = "x"; })),
      "file.json: channels[0].samples[1].data[0] is \"x\", but must be a number");
  EXPECT_EQ(message(changed([](auto& json) { json["channels"][0]["samples"][1]["datum"] = 1; })),
            "file.json: channels[0].samples[1] has 'datum' is not a key here; candidates are name, "
            "data, modifiers (did you mean 'data'?)");
  EXPECT_EQ(
      message(changed([](auto& json) {
        json["channels"][0]["samples"][0]["modifiers"][1]["type"] = "normsis";
      })),
      "file.json: channels[0].samples[0].modifiers[1] has 'normsis' is not a type of modifier; "
      "candidates are normfactor, normsys, histosys, shapesys, staterror, shapefactor, lumi "
      "(did you mean 'normsys'?)");
  EXPECT_EQ(message(changed([](auto& json) { json["observations"][0]["name"] = "regio"; })),
            "file.json: observations[0].name is 'regio' is not a channel; candidates are region "
            "(did you mean 'region'?)");
  EXPECT_EQ(message(changed([](auto& json) { json["observations"].clear(); })),
            "file.json: observations has nothing for the channel 'region'");
  EXPECT_EQ(
      message(changed([](auto& json) {
        json["measurements"][0]["config"]["parameters"] = {{{"name", "mu"}, {"bounds", {{0.0}}}}};
      })),
      "file.json: measurements[0].config.parameters[0].bounds[0] has 1 values, but must have "
      "2: low and high");
}

TEST(Workspace, EveryLuminosityHasSettings) {
  auto workspace = read_workspace(reference_path("finite_simulation"));
  auto& measurement = workspace.measurements[0];
  const auto settings = measurement.parameters[0];
  auto& samples = workspace.channels[0].samples;
  for (auto& channel : workspace.channels)
    for (auto& sample : channel.samples)
      std::erase_if(sample.modifiers, [](const auto& m) { return m.kind == Modifier::Kind::lumi; });
  samples[0].modifiers.push_back(Modifier::lumi("lumi_2017"));
  samples[1].modifiers.push_back(Modifier::lumi("lumi_2018"));
  const auto named = [&](const char* name) {
    auto out = settings;
    out.name = name;
    return out;
  };
  const auto refused = [&](std::vector<ParameterSettings> given) {
    measurement.parameters = std::move(given);
    try {
      const StatisticalModel model(workspace);
    } catch (const ArgumentError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string reason = "is without sigma and auxiliary, but must be given";
  EXPECT_NE(refused({named("lumi_2017")}).find("settings of 'lumi_2018' " + reason),
            std::string::npos);
  EXPECT_NE(refused({named("lumi_2018")}).find("settings of 'lumi_2017' " + reason),
            std::string::npos);
  EXPECT_EQ(refused({named("lumi_2017"), named("lumi_2018")}), "");
}

TEST(Workspace, WhateverStandsInItIsUsedOrRefused) {
  // Each value of each reference in turn is left out, and replaced by values of every kind.
  using Json = nlohmann::json;
  const std::vector<Json> replacements = {nullptr,
                                          true,
                                          -1,
                                          0,
                                          1e308,
                                          "mu",
                                          "lumi",
                                          Json::array(),
                                          Json::object(),
                                          Json::array({1.0}),
                                          Json({{"name", 1}})};
  std::size_t used = 0, refused = 0;
  const auto attempt = [&](const Json& json) {
    try {
      const StatisticalModel model(parse_workspace(json.dump()));
      const ModelLikelihood likelihood(model, model.observed());
      EXPECT_FALSE(std::isnan(likelihood(model.start())));
      ++used;
    } catch (const Error&) {
      ++refused;
    }
  };
  for (const auto* name : reference_names) {
    const auto whole = Json::parse(read_file(reference_path(name)));
    const auto flat = whole.flatten();
    for (const auto& [path, value] : flat.items()) {
      for (Json::json_pointer place(path); !place.empty(); place = place.parent_pointer()) {
        for (const auto& replacement : replacements) {
          auto json = whole;
          json[place] = replacement;
          attempt(json);
        }
        auto json = whole;
        auto& parent = json[place.parent_pointer()];
        if (parent.is_array())
          parent.erase(std::stoul(place.back()));
        else
          parent.erase(place.back());
        attempt(json);
      }
    }
  }
  EXPECT_GT(used, 100u);
  EXPECT_GT(refused, 1000u);
}

TEST(Workspace, NestingAndLongValuesAreTold) {
  const auto deep = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  const auto with_data = [&](const std::string& data) {
    auto text = changed([](auto& w) { w["channels"][0]["samples"][0]["data"][0] = "HERE"; });
    return text.replace(text.find("\"HERE\""), 6, data);
  };
  EXPECT_NE(message(with_data(deep(200'000))).find("is nested more than 64 deep"),
            std::string::npos);
  EXPECT_NE(message(with_data(deep(20))).find("but must be a number"), std::string::npos);
  EXPECT_LT(message(with_data('"' + std::string(1'000'000, 'x') + '"')).size(), 300u);
}

}  // namespace
}  // namespace neyman
