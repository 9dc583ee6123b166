#include "neyman/data/splits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "neyman/core/check.hpp"
#include "neyman/core/random.hpp"

namespace neyman {

namespace {

/// Places a sequence of items, each of a size, into parts of given fractions: every item goes
/// where most is lacking. Before each item the shortfalls add up to its size, so no part grows
/// beyond its share by more than one item.
class Dealer {
 public:
  explicit Dealer(std::vector<double> fractions)
      : fractions_(std::move(fractions)), dealt_(fractions_.size(), 0.0) {}

  /// `seen`: the sum of all sizes up to and with this item, or of all items where large ones
  /// come first and the whole is known.
  std::uint32_t deal(double size, double seen) {
    std::uint32_t best = 0;
    for (std::uint32_t part = 1; part < fractions_.size(); ++part) {
      if (lack(part, seen) > lack(best, seen) + tolerance * seen) best = part;
    }
    dealt_[best] += size;
    return best;
  }

 private:
  double lack(std::size_t part, double seen) const {
    return fractions_[part] * seen - dealt_[part];
  }
  // Shortfalls that are equal but for rounding are equal.
  static constexpr double tolerance = 1e-14;

  std::vector<double> fractions_;
  std::vector<double> dealt_;
};

void check_fractions(std::string_view function, std::span<const double> fractions) {
  check_at_least(function, "fractions.size()", fractions.size(), 1);
  double sum = 0.0;
  for (std::size_t i = 0; i < fractions.size(); ++i) {
    check_positive(function, fmt::format("fractions[{}]", i), fractions[i]);
    sum += fractions[i];
  }
  if (!(std::abs(sum - 1.0) < 1e-9)) {
    fail_argument(function, "the sum of fractions", fmt::format("{}", sum), "1");
  }
}

void check_folds(std::string_view function, std::size_t folds) {
  check_at_least(function, "folds", folds, 2);
}

void check_none_empty(std::string_view function, const Partition& parts, std::size_t count,
                      std::string_view unit) {
  for (std::size_t part = 0; part < parts.size(); ++part) {
    if (!parts[part].empty()) continue;
    fail_argument(function, fmt::format("the number of {}", unit), fmt::format("{}", count),
                  fmt::format("large enough that part {} is not empty", part));
  }
}

void shuffle(std::vector<std::size_t>& indices, RandomStream& random) {
  for (std::size_t i = indices.size(); i > 1; --i) {
    std::swap(indices[i - 1], indices[random.below(i)]);
  }
}

/// The parts, given the part of each event.
Partition collect(const std::vector<std::uint32_t>& part_of, std::size_t parts) {
  Partition partition(parts);
  for (std::size_t i = 0; i < part_of.size(); ++i) partition[part_of[i]].push_back(i);
  return partition;
}

std::vector<double> equal_fractions(std::size_t folds) {
  return std::vector<double>(folds, 1.0 / static_cast<double>(folds));
}

/// Shuffles each stratum and deals one after the other, so that shares are even in each stratum
/// and over all of them.
Partition deal_strata(std::vector<std::vector<std::size_t>> strata, std::vector<double> fractions,
                      std::uint64_t seed) {
  std::size_t n = 0;
  for (const auto& stratum : strata) n += stratum.size();
  std::vector<std::uint32_t> part_of(n);
  const std::size_t parts = fractions.size();
  Dealer dealer(std::move(fractions));
  double seen = 0.0;
  for (std::size_t s = 0; s < strata.size(); ++s) {
    RandomStream random(seed, "split", s);
    shuffle(strata[s], random);
    for (const std::size_t i : strata[s]) part_of[i] = dealer.deal(1.0, ++seen);
  }
  return collect(part_of, parts);
}

std::vector<std::vector<std::size_t>> one_stratum(std::size_t n) {
  std::vector<std::size_t> all(n);
  std::iota(all.begin(), all.end(), std::size_t{0});
  return {std::move(all)};
}

template <class Id>
std::map<Id, std::vector<std::size_t>> rows_by(std::span<const Id> ids) {
  std::map<Id, std::vector<std::size_t>> rows;
  for (std::size_t i = 0; i < ids.size(); ++i) rows[ids[i]].push_back(i);
  return rows;
}

std::vector<std::vector<std::size_t>> strata_of(std::span<const int> labels) {
  std::vector<std::vector<std::size_t>> strata;
  for (auto& [label, rows] : rows_by(labels)) strata.push_back(std::move(rows));
  return strata;
}

Partition deal_groups(const std::map<std::int64_t, std::vector<std::size_t>>& rows, std::size_t n,
                      std::vector<double> fractions, std::uint64_t seed) {
  std::vector<const std::vector<std::size_t>*> groups;
  for (const auto& [id, members] : rows) groups.push_back(&members);
  std::vector<std::size_t> order = one_stratum(groups.size()).front();
  RandomStream random(seed, "split");
  shuffle(order, random);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return groups[a]->size() > groups[b]->size();
  });
  std::vector<std::uint32_t> part_of(n);
  const std::size_t parts = fractions.size();
  Dealer dealer(std::move(fractions));
  for (const std::size_t g : order) {
    const std::uint32_t part =
        dealer.deal(static_cast<double>(groups[g]->size()), static_cast<double>(n));
    for (const std::size_t i : *groups[g]) part_of[i] = part;
  }
  return collect(part_of, parts);
}

}  // namespace

Partition random_split(std::size_t n, std::span<const double> fractions, std::uint64_t seed) {
  check_fractions("random_split", fractions);
  Partition parts = deal_strata(one_stratum(n), {fractions.begin(), fractions.end()}, seed);
  check_none_empty("random_split", parts, n, "events");
  return parts;
}

Partition stratified_split(std::span<const int> labels, std::span<const double> fractions,
                           std::uint64_t seed) {
  check_fractions("stratified_split", fractions);
  Partition parts = deal_strata(strata_of(labels), {fractions.begin(), fractions.end()}, seed);
  check_none_empty("stratified_split", parts, labels.size(), "events");
  return parts;
}

Partition group_split(std::span<const std::int64_t> groups, std::span<const double> fractions,
                      std::uint64_t seed) {
  check_fractions("group_split", fractions);
  const auto rows = rows_by(groups);
  Partition parts = deal_groups(rows, groups.size(), {fractions.begin(), fractions.end()}, seed);
  check_none_empty("group_split", parts, rows.size(), "groups");
  return parts;
}

Partition k_fold(std::size_t n, std::size_t folds, std::uint64_t seed) {
  check_folds("k_fold", folds);
  check_at_least("k_fold", "n", n, folds);
  return deal_strata(one_stratum(n), equal_fractions(folds), seed);
}

Partition stratified_k_fold(std::span<const int> labels, std::size_t folds, std::uint64_t seed) {
  check_folds("stratified_k_fold", folds);
  check_at_least("stratified_k_fold", "the number of events", labels.size(), folds);
  for (const auto& [label, rows] : rows_by(labels)) {
    check_at_least("stratified_k_fold", fmt::format("the number of events with label {}", label),
                   rows.size(), folds);
  }
  return deal_strata(strata_of(labels), equal_fractions(folds), seed);
}

Partition group_k_fold(std::span<const std::int64_t> groups, std::size_t folds,
                       std::uint64_t seed) {
  check_folds("group_k_fold", folds);
  const auto rows = rows_by(groups);
  check_at_least("group_k_fold", "the number of groups", rows.size(), folds);
  return deal_groups(rows, groups.size(), equal_fractions(folds), seed);
}

double hashed(std::int64_t group, std::uint64_t seed) {
  // The finaliser of SplitMix64 (Steele, Lea and Flood 2014), twice.
  std::uint64_t bits = static_cast<std::uint64_t>(group);
  for (const std::uint64_t key : {seed, seed >> 32 | seed << 32}) {
    bits = (bits ^ key) + 0x9e3779b97f4a7c15u;
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111ebu;
    bits ^= bits >> 31;
  }
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

std::size_t hashed_fold(std::int64_t group, std::size_t folds, std::uint64_t seed) {
  return static_cast<std::size_t>(hashed(group, seed) * static_cast<double>(folds));
}

Partition hashed_k_fold(std::span<const std::int64_t> groups, std::size_t folds,
                        std::uint64_t seed) {
  check_at_least("hashed_k_fold", "folds", folds, 1);
  Partition parts(folds);
  for (std::size_t i = 0; i < groups.size(); ++i)
    parts[hashed_fold(groups[i], folds, seed)].push_back(i);
  check_none_empty("hashed_k_fold", parts, groups.size(), "events");
  return parts;
}

std::vector<std::size_t> all_but(const Partition& partition, std::size_t part) {
  if (part >= partition.size()) {
    fail_argument("all_but", "part", fmt::format("{}", part),
                  fmt::format("below the number of parts, {}", partition.size()));
  }
  std::vector<std::size_t> rest;
  for (std::size_t i = 0; i < partition.size(); ++i) {
    if (i != part) rest.insert(rest.end(), partition[i].begin(), partition[i].end());
  }
  std::sort(rest.begin(), rest.end());
  return rest;
}

}  // namespace neyman
