#include "measurements/varied_ratio.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace neyman::detail {

namespace {

// Relative differences of weights below are those of rounding.
constexpr double rounding = 1e-12;

double log_of(double value) { return std::log(std::max(value, least_sign)); }

}  // namespace

std::vector<double> ClassRatio::values(const LogsOf& logs, std::size_t events) const {
  std::vector<double> out(events, mean);
  if (!fit) return out;
  const auto learned = logs(*fit);
  for (std::size_t i = 0; i < events; ++i) {
    const double r = std::exp(std::clamp(learned[i], -log_limit, log_limit));
    out[i] = mean * (1.0 + (r - 1.0) / (up + down * r));
  }
  return out;
}

void ClassRatio::save(Archive& archive) const {
  archive.set("up", up);
  archive.set("down", down);
  archive.set("mean", mean);
  if (fit) fit->save(archive.child("fit"));
}

ClassRatio ClassRatio::load(const Archive& archive) {
  ClassRatio out;
  out.up = archive.number("up");
  out.down = archive.number("down");
  out.mean = archive.number("mean");
  if (archive.has_child("fit")) out.fit.emplace().load(archive.child("fit"));
  return out;
}

bool same_rows(const Samples& a, const Samples& b) { return a.x == b.x && a.groups == b.groups; }

bool same_weights(const Samples& varied, const Samples& nominal) {
  const double scale = varied.total_weight() / nominal.total_weight();
  for (std::size_t i = 0; i < nominal.size(); ++i)
    if (std::abs(varied.weight(i) - scale * nominal.weight(i)) >
        rounding * std::abs(scale * nominal.weight(i)))
      return false;
  return true;
}

bool matched_rows(const Samples& a, const Samples& b) {
  const std::size_t n = a.size();
  if (b.size() != n || a.groups != b.groups || n < 2) return false;
  double ratios = 0.0;
  std::size_t features = 0;
  for (std::size_t j = 0; j < a.features(); ++j) {
    double own = 0.0, neighbours = 0.0;
    for (std::size_t i = 0; i < n; ++i) {
      own += std::abs(a.x(i, j) - b.x(i, j));
      neighbours += std::abs(a.x(i, j) - b.x((i + 1) % n, j));
    }
    if (!(neighbours > 0.0)) continue;
    ratios += own / neighbours;
    ++features;
  }
  return features > 0 && ratios < 0.5 * static_cast<double>(features);
}

std::vector<double> VariedRatio::log_ratios(const LogsOf& logs, std::span<const double> signs,
                                            double mean_sign) const {
  std::vector<double> out(signs.size(), 0.0);
  if (none()) return out;
  if (fit) {
    const auto learned = logs(*fit);
    std::vector<double> varied(signs.size(), 1.0);
    if (sign) varied = sign->values(logs(sign->fit));
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = std::clamp(learned[i], -log_limit, log_limit) + log_of(varied[i]) - log_of(signs[i]);
    return out;
  }
  // π₊ R₊ − π₋ R₋ over π₊ − π₋, with π₊ − π₋ the mean sign at x.
  const auto of_positive = positive->values(logs, signs.size());
  if (!negative) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = log_of(of_positive[i]);
    return out;
  }
  const auto of_negative = negative->values(logs, signs.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double varied = 0.5 * signs[i] * (of_positive[i] + of_negative[i]) +
                          0.5 * (of_positive[i] - of_negative[i]) / mean_sign;
    out[i] = log_of(varied) - log_of(signs[i]);
  }
  return out;
}

std::array<double, 4> part_of_sides(const std::string& part, double strength) {
  const double half = 0.5 * strength;
  if (part == "difference") return {half, -half, -half, half};
  if (part == "mean") return {half, half, half, half};
  if (part == "low") return {strength, 0.0, 0.0, 0.0};
  return {0.0, 0.0, 0.0, strength};
}

void VariedRatio::save(Archive& archive) const {
  if (fit) fit->save(archive.child("fit"));
  if (sign) sign->save(archive.child("sign"));
  if (positive) positive->save(archive.child("positive"));
  if (negative) negative->save(archive.child("negative"));
}

VariedRatio VariedRatio::load(const Archive& archive) {
  VariedRatio out;
  if (archive.has_child("fit")) out.fit.emplace().load(archive.child("fit"));
  if (archive.has_child("sign")) out.sign = SignRatio::load(archive.child("sign"));
  if (archive.has_child("positive")) out.positive = ClassRatio::load(archive.child("positive"));
  if (archive.has_child("negative")) out.negative = ClassRatio::load(archive.child("negative"));
  return out;
}

std::optional<WeightParts> WeightParts::of(const Samples& varied, const Samples& nominal,
                                           const FoldedSample& folded,
                                           std::optional<bool> negative) {
  std::vector<std::size_t> events;
  double varied_sum = 0.0, nominal_sum = 0.0;
  for (std::size_t i = 0; i < nominal.size(); ++i) {
    const double weight = nominal.weight(i);
    if (weight == 0.0 && varied.weight(i) != 0.0) return std::nullopt;
    if (weight == 0.0 || (negative && (weight < 0.0) != *negative)) continue;
    events.push_back(i);
    const double sign = weight < 0.0 ? -1.0 : 1.0;
    varied_sum += sign * varied.weight(i);
    nominal_sum += sign * weight;
  }
  if (!(varied_sum > 0.0) || !(nominal_sum > 0.0)) return std::nullopt;
  WeightParts out;
  const double scale = varied_sum / nominal_sum;
  out.ratio.mean = scale * nominal.total_weight() / varied.total_weight();
  std::vector<double> change(events.size());
  double most = 0.0, least = 0.0;
  for (std::size_t i = 0; i < events.size(); ++i) {
    change[i] = varied.weight(events[i]) / (scale * nominal.weight(events[i])) - 1.0;
    most = std::max(most, change[i]);
    least = std::max(least, -change[i]);
  }
  if (!(std::min(most, least) > rounding)) return out;
  // No event weighs more than a few times what it did, or than w' / w itself asks for.
  out.ratio.up = std::min(1.0 / least, std::max(1.0, 2.0 / most));
  out.ratio.down = 1.0 / most;
  std::vector<double> more(events.size()), less(events.size());
  for (std::size_t i = 0; i < events.size(); ++i) {
    const double weight = std::abs(nominal.weight(events[i]));
    more[i] = weight * std::max(1.0 + out.ratio.up * change[i], 0.0);
    less[i] = weight * std::max(1.0 - out.ratio.down * change[i], 0.0);
  }
  out.more = std::make_unique<FoldedSample>(folded, events, std::move(more));
  out.less = std::make_unique<FoldedSample>(folded, events, std::move(less));
  return out;
}

}  // namespace neyman::detail
