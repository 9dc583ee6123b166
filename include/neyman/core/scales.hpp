#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

// Numbers on different scales are different types, so that one cannot pass for the other.
namespace neyman {

namespace detail {

template <class Tag>
class Scaled {
 public:
  Scaled() = default;
  explicit Scaled(std::size_t size, double value = 0.0) : values_(size, value) {}
  explicit Scaled(std::vector<double> values) : values_(std::move(values)) {}
  Scaled(std::initializer_list<double> values) : values_(values) {}

  std::size_t size() const { return values_.size(); }
  bool empty() const { return values_.empty(); }
  double& operator[](std::size_t i) { return values_[i]; }
  double operator[](std::size_t i) const { return values_[i]; }
  std::span<double> values() { return values_; }
  std::span<const double> values() const { return values_; }
  std::vector<double> release() && { return std::move(values_); }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }
  bool operator==(const Scaled&) const = default;

 private:
  std::vector<double> values_;
};

}  // namespace detail

/// Scores of a classifier as logits: z = log s − log(1 − s), where s is the probability that
/// the event belongs to the denominator. Large z speaks for the denominator.
using Logits = detail::Scaled<struct LogitTag>;

/// log r = log p(x|θ0) − log p(x|θ1), numerator over denominator. A classifier that is right
/// has log r = −z.
using LogRatios = detail::Scaled<struct LogRatioTag>;

}  // namespace neyman
