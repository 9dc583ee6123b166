#include "booster.hpp"

#include <fmt/format.h>
#include <xgboost/c_api.h>

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "neyman/core/error.hpp"

namespace neyman::detail {

namespace {

void check(int status) {
  if (status == 0) return;
  const std::string message = XGBGetLastError();
  throw Error("xgboost: " + message.substr(0, message.find("\nStack trace")));
}

std::string array_interface(std::span<const float> values, std::size_t columns) {
  return fmt::format(R"({{"data":[{},true],"shape":[{},{}],"typestr":"<f4","version":3}})",
                     reinterpret_cast<std::uintptr_t>(values.data()), values.size() / columns,
                     columns);
}

/// Adds a node of XGBoost's JSON with all below it; returns its number.
std::size_t add_node(const nlohmann::json& from, std::vector<Booster::Node>& tree) {
  const std::size_t number = tree.size();
  Booster::Node node;
  node.leaf = from.contains("leaf");
  tree.push_back(node);
  if (node.leaf) {
    node.value = from.at("leaf").get<float>();  // written such that reading gives the same float
  } else {
    node.column = std::stoul(from.at("split").get<std::string>().substr(1));  // "f12"
    node.threshold = from.at("split_condition").get<float>();
    for (const auto& child : from.at("children"))
      (child.at("nodeid") == from.at("yes") ? node.yes : node.no) = add_node(child, tree);
  }
  tree[number] = node;
  return number;
}

/// XGBoost prints; the setting belongs to the calling thread.
void silence() { check(XGBSetGlobalConfig(R"({"verbosity":0})")); }

}  // namespace

BoosterData::BoosterData(std::span<const float> codes, std::size_t columns, std::size_t threads)
    : rows_(codes.size() / columns), threads_(threads) {
  silence();
  const std::string options = fmt::format(R"({{"missing":NaN,"nthread":{}}})", threads_);
  check(
      XGDMatrixCreateFromDense(array_interface(codes, columns).c_str(), options.c_str(), &handle_));
}

BoosterData::~BoosterData() { XGDMatrixFree(handle_); }

DerivativeGrid::DerivativeGrid(double largest)
    : unit_(std::ldexp(1.0, (largest > 0.0 ? std::ilogb(largest) + 1 : 0) - 24)) {}

float DerivativeGrid::operator()(double derivative) const {
  return static_cast<float>(std::nearbyint(derivative / unit_) * unit_);
}

Booster::Booster(const Options& options, std::span<BoosterData* const> cached) {
  silence();
  std::vector<DMatrixHandle> handles;
  for (const BoosterData* data : cached) handles.push_back(data->handle());
  check(XGBoosterCreate(handles.data(), handles.size(), &handle_));
  set("verbosity", "0");
  set("nthread", std::to_string(cached.empty() ? 1 : cached.front()->threads()));
  set("tree_method", "hist");
  // The state of XGBoost's generator belongs to a thread, and a thread may work on several
  // boosters in turn: start it anew at each tree.
  set("seed_per_iteration", "1");
  for (const auto& [name, value] : options) set(name, value);
}

Booster::Booster(const std::vector<std::uint8_t>& bytes) {
  silence();
  check(XGBoosterCreate(nullptr, 0, &handle_));
  if (XGBoosterLoadModelFromBuffer(handle_, bytes.data(), bytes.size()) != 0) {
    XGBoosterFree(handle_);
    throw FileError("booster: the stored trees cannot be read");
  }
}

Booster::~Booster() {
  if (handle_ != nullptr) XGBoosterFree(handle_);
}

void Booster::set(const std::string& name, const std::string& value) {
  check(XGBoosterSetParam(handle_, name.c_str(), value.c_str()));
}

// XGBoost finishes its set-up at the first prediction; later ones only read.
void Booster::freeze(std::size_t columns) {
  set("verbosity", "0");
  set("nthread", "1");
  const std::vector<float> row(columns, 0.0F);
  margins(row, columns);
}

void Booster::grow(const BoosterData& data, Derivatives& derivatives, std::uint64_t seed) {
  set("seed", std::to_string(seed & 0x7fffffffU));
  check(XGBoosterBoostOneIter(handle_, data.handle(), derivatives.first.data(),
                              derivatives.second.data(), derivatives.first.size()));
}

std::span<const float> Booster::margins(const BoosterData& data) const {
  const bst_ulong* shape = nullptr;
  bst_ulong dimensions = 0;
  const float* result = nullptr;
  check(XGBoosterPredictFromDMatrix(
      handle_, data.handle(),
      R"({"type":1,"training":true,"iteration_begin":0,"iteration_end":0,"strict_shape":false})",
      &shape, &dimensions, &result));
  return {result, data.rows()};
}

std::vector<float> Booster::margins(std::span<const float> codes, std::size_t columns) const {
  if (codes.empty()) return {};
  silence();
  const bst_ulong* shape = nullptr;
  bst_ulong dimensions = 0;
  const float* result = nullptr;
  check(XGBoosterPredictFromDense(
      handle_, array_interface(codes, columns).c_str(),
      R"({"type":1,"training":false,"iteration_begin":0,"iteration_end":0,"strict_shape":false,"missing":NaN,"cache_id":0})",
      nullptr, &shape, &dimensions, &result));
  return {result, result + codes.size() / columns};
}

Booster Booster::first(std::size_t trees) const {
  BoosterHandle handle = nullptr;
  check(XGBoosterSlice(handle_, 0, static_cast<int>(trees), 1, &handle));
  return Booster(handle);
}

std::size_t Booster::trees() const {
  int rounds = 0;
  check(XGBoosterBoostedRounds(handle_, &rounds));
  return static_cast<std::size_t>(rounds);
}

std::vector<std::vector<Booster::Node>> Booster::nodes() const {
  bst_ulong count = 0;
  const char** dumped = nullptr;
  check(XGBoosterDumpModelEx(handle_, "", 0, "json", &count, &dumped));
  std::vector<std::vector<Node>> out(count);
  for (bst_ulong t = 0; t < count; ++t) add_node(nlohmann::json::parse(dumped[t]), out[t]);
  return out;
}

std::vector<std::uint8_t> Booster::bytes() const {
  bst_ulong size = 0;
  const char* data = nullptr;
  check(XGBoosterSaveModelToBuffer(handle_, R"({"format":"ubj"})", &size, &data));
  return {data, data + size};
}

}  // namespace neyman::detail
