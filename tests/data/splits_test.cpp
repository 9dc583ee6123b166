#include "neyman/data/splits.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>

#include "support.hpp"

namespace neyman {
namespace {

using test::message_of;

/// Every index of [0, n) is in exactly one part, and indices ascend.
bool partitions(const Partition& parts, std::size_t n) {
  std::vector<int> seen(n, 0);
  for (const auto& part : parts) {
    if (!std::is_sorted(part.begin(), part.end())) return false;
    for (const std::size_t i : part) {
      if (i >= n) return false;
      ++seen[i];
    }
  }
  return std::all_of(seen.begin(), seen.end(), [](int count) { return count == 1; });
}

std::pair<std::size_t, std::size_t> smallest_and_largest(const Partition& parts) {
  std::size_t low = parts[0].size(), high = low;
  for (const auto& part : parts) {
    low = std::min(low, part.size());
    high = std::max(high, part.size());
  }
  return {low, high};
}

/// The events of each part that have this label.
template <class Label>
Partition only(const Partition& parts, const std::vector<Label>& labels, Label label) {
  Partition chosen(parts.size());
  for (std::size_t p = 0; p < parts.size(); ++p) {
    for (const std::size_t i : parts[p]) {
      if (labels[i] == label) chosen[p].push_back(i);
    }
  }
  return chosen;
}

bool groups_are_whole(const Partition& parts, const std::vector<std::int64_t>& groups) {
  std::map<std::int64_t, std::size_t> part_of;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    for (const std::size_t i : parts[p]) {
      if (part_of.emplace(groups[i], p).first->second != p) return false;
    }
  }
  return true;
}

TEST(Splits, ExactFractionsGiveExactSizes) {
  const std::array<double, 3> fractions = {0.7, 0.2, 0.1};
  for (const std::size_t n : {10, 1000, 123450}) {
    const Partition parts = random_split(n, fractions, 1);
    EXPECT_TRUE(partitions(parts, n));
    EXPECT_EQ(parts[0].size(), n * 7 / 10);
    EXPECT_EQ(parts[1].size(), n * 2 / 10);
    EXPECT_EQ(parts[2].size(), n / 10);
  }
}

TEST(Splits, DependOnTheSeedAlone) {
  const std::array<double, 2> half = {0.5, 0.5};
  EXPECT_EQ(random_split(100, half, 3), random_split(100, half, 3));
  EXPECT_NE(random_split(100, half, 3), random_split(100, half, 4));
  EXPECT_EQ(k_fold(100, 5, 3), k_fold(100, 5, 3));
  EXPECT_NE(k_fold(100, 5, 3), k_fold(100, 5, 4));
  std::vector<std::int64_t> groups(100);
  for (std::size_t i = 0; i < 100; ++i) groups[i] = static_cast<std::int64_t>(i / 4);
  EXPECT_EQ(group_k_fold(groups, 5, 3), group_k_fold(groups, 5, 3));
  EXPECT_NE(group_k_fold(groups, 5, 3), group_k_fold(groups, 5, 4));
}

TEST(Splits, EveryPairOfEventsIsSeparatedAsOftenAsChanceWill) {
  // Of n = 10 events in two halves, two given events are in different halves with probability
  // 5/9. The count over 4000 seeds is binomial; a bound of 5 standard deviations for each of the
  // 45 pairs fails by chance with probability below 3e-5.
  const std::array<double, 2> half = {0.5, 0.5};
  const int trials = 4000;
  std::vector<int> apart(100, 0);
  for (int seed = 0; seed < trials; ++seed) {
    std::vector<int> part_of(10, 0);
    const Partition parts = random_split(10, half, static_cast<std::uint64_t>(seed));
    for (const std::size_t i : parts[1]) part_of[i] = 1;
    for (std::size_t i = 0; i < 10; ++i) {
      for (std::size_t j = 0; j < i; ++j) apart[10 * i + j] += part_of[i] != part_of[j];
    }
  }
  const double mean = trials * 5.0 / 9.0, deviation = std::sqrt(mean * 4.0 / 9.0);
  for (std::size_t i = 0; i < 10; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      EXPECT_NEAR(apart[10 * i + j], mean, 5 * deviation) << i << " " << j;
    }
  }
}

TEST(Splits, StratifiedKeepsTheProportionsOfARareLabel) {
  std::vector<int> labels(1000, 0);
  for (std::size_t i = 0; i < 20; ++i) labels[50 * i] = 1;
  const std::array<double, 2> fractions = {0.75, 0.25};
  const Partition parts = stratified_split(labels, fractions, 5);
  EXPECT_TRUE(partitions(parts, 1000));
  EXPECT_EQ(parts[0].size(), 750u);
  EXPECT_EQ(only(parts, labels, 1)[0].size(), 15u);
}

TEST(Splits, GroupsOfEqualSizeAreSharedEvenly) {
  std::vector<std::int64_t> groups;
  for (std::int64_t g = 0; g < 20; ++g) groups.insert(groups.end(), 5, g * 1000 - 7);
  const Partition parts = group_k_fold(groups, 4, 2);
  EXPECT_TRUE(partitions(parts, 100));
  EXPECT_TRUE(groups_are_whole(parts, groups));
  EXPECT_EQ(smallest_and_largest(parts), (std::pair<std::size_t, std::size_t>{25, 25}));
}

TEST(Splits, OneLargeGroupFillsItsFold) {
  std::vector<std::int64_t> groups(50, 1);
  for (std::int64_t g = 2; g < 52; ++g) groups.push_back(g);
  const Partition parts = group_k_fold(groups, 2, 9);
  EXPECT_EQ(parts[0].size(), 50u);
  EXPECT_EQ(parts[1].size(), 50u);
  EXPECT_TRUE(groups_are_whole(parts, groups));
}

TEST(Splits, AllButIsTheComplement) {
  const Partition parts = k_fold(10, 3, 1);
  for (std::size_t p = 0; p < 3; ++p) {
    EXPECT_TRUE(partitions({parts[p], all_but(parts, p)}, 10));
  }
  EXPECT_EQ(message_of<ArgumentError>([&] { all_but(parts, 3); }),
            "all_but: part is 3, but must be below the number of parts, 3");
}

TEST(Splits, WrongArgumentsAreRefused) {
  const auto split_error = [](std::size_t n, std::vector<double> fractions) {
    return message_of<ArgumentError>([&] { random_split(n, fractions, 1); });
  };
  EXPECT_EQ(split_error(10, {0.5, 0.6}),
            "random_split: the sum of fractions is 1.1, but must be 1");
  EXPECT_CONTAINS(split_error(10, {1.5, -0.5}), "fractions[1] is -0.5, but must be positive");
  EXPECT_CONTAINS(split_error(10, {std::nan(""), 1}), "fractions[0] is nan");
  EXPECT_CONTAINS(split_error(10, {}), "fractions.size() is 0");
  EXPECT_EQ(split_error(2, {0.9, 0.1}),
            "random_split: the number of events is 2, but must be large enough that part 1 is not "
            "empty");
  EXPECT_CONTAINS(split_error(0, {1.0}), "the number of events is 0");
  EXPECT_EQ(message_of<ArgumentError>([] { k_fold(3, 4, 1); }),
            "k_fold: n is 3, but must be at least 4");
  EXPECT_EQ(message_of<ArgumentError>([] { k_fold(3, 1, 1); }),
            "k_fold: folds is 1, but must be at least 2");
  const std::vector<int> labels = {0, 0, 0, 1};
  EXPECT_EQ(message_of<ArgumentError>([&] { stratified_k_fold(labels, 2, 1); }),
            "stratified_k_fold: the number of events with label 1 is 1, but must be at least 2");
  const std::vector<std::int64_t> groups = {5, 5, 5, 6};
  EXPECT_EQ(message_of<ArgumentError>([&] { group_k_fold(groups, 3, 1); }),
            "group_k_fold: the number of groups is 2, but must be at least 3");
}

RC_GTEST_PROP(Splits, FoldsPartitionAndDifferByOneAtMost, ()) {
  const auto folds = *rc::gen::inRange<std::size_t>(2, 12);
  const auto n = folds + *rc::gen::inRange<std::size_t>(0, 200);
  const auto parts = k_fold(n, folds, *rc::gen::arbitrary<std::uint64_t>());
  RC_ASSERT(parts.size() == folds);
  RC_ASSERT(partitions(parts, n));
  const auto [low, high] = smallest_and_largest(parts);
  RC_ASSERT(high - low <= 1u);
}

RC_GTEST_PROP(Splits, StratifiedFoldsAreEvenInEachLabelAndOverall, ()) {
  const auto folds = *rc::gen::inRange<std::size_t>(2, 6);
  auto labels = *rc::gen::container<std::vector<int>>(rc::gen::inRange(-1, 3));
  for (std::size_t i = 0; i < folds; ++i) {
    for (const int label : {-1, 0, 1, 2}) labels.push_back(label);
  }
  const auto parts = stratified_k_fold(labels, folds, *rc::gen::arbitrary<std::uint64_t>());
  RC_ASSERT(partitions(parts, labels.size()));
  const auto [low, high] = smallest_and_largest(parts);
  RC_ASSERT(high - low <= 1u);
  for (const int label : {-1, 0, 1, 2}) {
    const auto [least, most] = smallest_and_largest(only(parts, labels, label));
    RC_ASSERT(most - least <= 1u);
  }
}

RC_GTEST_PROP(Splits, RandomAndStratifiedSplitsAreCloseToTheirFractions, ()) {
  const double fraction = *rc::gen::inRange(1, 100) / 100.0;
  const std::array<double, 2> fractions = {fraction, 1.0 - fraction};
  auto labels = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 3));
  labels.resize(labels.size() + 100, 2);  // no part is then empty
  const double n = static_cast<double>(labels.size());
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const Partition random = random_split(labels.size(), fractions, seed);
  const Partition stratified = stratified_split(labels, fractions, seed);
  for (const Partition* parts : {&random, &stratified}) {
    RC_ASSERT(partitions(*parts, labels.size()));
    RC_ASSERT(std::abs(static_cast<double>((*parts)[0].size()) - fraction * n) < 1.0 + 1e-9);
  }
  for (const int label : {0, 1, 2}) {
    const auto chosen = only(stratified, labels, label);
    const double count = static_cast<double>(chosen[0].size() + chosen[1].size());
    RC_ASSERT(std::abs(static_cast<double>(chosen[0].size()) - fraction * count) < 2.0);
  }
}

RC_GTEST_PROP(Splits, GroupsNeverStraddle, ()) {
  auto groups =
      *rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(-20, 20));
  for (std::int64_t g = 100; g < 110; ++g) groups.push_back(g);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  std::map<std::int64_t, std::size_t> sizes;
  for (const std::int64_t g : groups) ++sizes[g];
  std::size_t largest = 0;
  for (const auto& [g, size] : sizes) largest = std::max(largest, size);

  const std::array<double, 3> fractions = {0.6, 0.25, 0.15};
  const Partition parts = group_split(groups, fractions, seed);
  RC_ASSERT(partitions(parts, groups.size()));
  RC_ASSERT(groups_are_whole(parts, groups));

  const Partition folds = group_k_fold(groups, 4, seed);
  RC_ASSERT(partitions(folds, groups.size()));
  RC_ASSERT(groups_are_whole(folds, groups));
  const auto [low, high] = smallest_and_largest(folds);
  RC_ASSERT(high - low <= largest);  // else moving a group would have been better
}

TEST(Splits, HashedNumbersAreUniformAndIndependentOfEachOther) {
  // Neighbouring groups and seeds. Two numbers of each group in a table of 16 × 16: χ² with 255
  // degrees of freedom is within 255 ± 6·√510 but for 1e-8 of all hashes.
  constexpr std::size_t cells = 16, count = 256 * 400;
  for (const std::uint64_t seed : {0ULL, 1ULL, 77ULL, ~0ULL}) {
    for (const bool neighbours : {false, true}) {
      std::vector<double> table(cells * cells);
      for (std::size_t i = 0; i < count; ++i) {
        const auto group = static_cast<std::int64_t>(i);
        const double first = hashed(group, seed);
        const double second = neighbours ? hashed(group + 1, seed) : hashed(group, seed + 1);
        ASSERT_TRUE(first >= 0.0 && first < 1.0);
        table[hashed_fold(group, cells, seed) * cells + static_cast<std::size_t>(second * cells)] +=
            1.0;
      }
      double chi2 = 0.0;
      for (const double n : table) chi2 += (n - 400.0) * (n - 400.0) / 400.0;
      EXPECT_NEAR(chi2, 255.0, 6.0 * std::sqrt(510.0)) << seed << neighbours;
    }
  }
}

TEST(Splits, HashedFoldsKnowAGroupAgain) {
  std::vector<std::int64_t> groups;
  for (std::int64_t i = 0; i < 999; ++i) groups.push_back(i / 3 - 100);
  const auto folds = hashed_k_fold(groups, 5, 3);
  EXPECT_TRUE(partitions(folds, groups.size()));
  EXPECT_TRUE(groups_are_whole(folds, groups));
  for (std::size_t k = 0; k < 5; ++k)
    for (const std::size_t i : folds[k]) EXPECT_EQ(hashed_fold(groups[i], 5, 3), k);
  EXPECT_NE(folds, hashed_k_fold(groups, 5, 4));
  EXPECT_EQ(hashed_k_fold(groups, 1, 3).front().size(), groups.size());
  const std::vector<std::int64_t> one = {1};
  EXPECT_CONTAINS(message_of<ArgumentError>([&] { hashed_k_fold(one, 3, 1); }), "is not empty");
}

}  // namespace
}  // namespace neyman
