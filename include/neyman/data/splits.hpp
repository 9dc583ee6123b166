#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

// Cuts of events into parts. Every event is in exactly one part, and the parts depend on the
// arguments alone. Indices in a part ascend.
namespace neyman {

/// The indices of the events of each part.
using Partition = std::vector<std::vector<std::size_t>>;

/// Parts of n events at random. A part's size differs from fraction · n by less than one for two
/// parts, and is never more than one above it.
/// @throw ArgumentError unless the fractions are positive with sum one and no part is empty.
Partition random_split(std::size_t n, std::span<const double> fractions, std::uint64_t seed);

/// The same with each label spread over the parts in proportion: within each label too, a part's
/// share differs from its fraction by less than two events for two parts.
Partition stratified_split(std::span<const int> labels, std::span<const double> fractions,
                           std::uint64_t seed);

/// The same where the events of one group stay in one part. Larger groups are placed first, each
/// in the part that lacks most, so that the sizes are about as even as the groups allow.
Partition group_split(std::span<const std::int64_t> groups, std::span<const double> fractions,
                      std::uint64_t seed);

/// K folds of n events at random, whose sizes differ by at most one.
/// @throw ArgumentError unless 2 <= folds <= n.
Partition k_fold(std::size_t n, std::size_t folds, std::uint64_t seed);

/// K folds whose sizes differ by at most one, overall and within each label.
/// @throw ArgumentError where a label has fewer events than there are folds.
Partition stratified_k_fold(std::span<const int> labels, std::size_t folds, std::uint64_t seed);

/// K folds where the events of one group stay in one fold (see group_split).
/// @throw ArgumentError where there are fewer groups than folds.
Partition group_k_fold(std::span<const std::int64_t> groups, std::size_t folds, std::uint64_t seed);

/// A number in [0, 1) that a group has wherever it is met, uniform over groups and independent for
/// each seed: it cuts events that are not all in memory at once.
double hashed(std::int64_t group, std::uint64_t seed);

/// One of K folds by `hashed`: sizes differ as those of random draws do.
std::size_t hashed_fold(std::int64_t group, std::size_t folds, std::uint64_t seed);

/// The folds of events by `hashed_fold`.
/// @throw ArgumentError unless there are folds, and events in each.
Partition hashed_k_fold(std::span<const std::int64_t> groups, std::size_t folds,
                        std::uint64_t seed);

/// The events of all parts but one, ascending: what to train on where `part` is held out.
std::vector<std::size_t> all_but(const Partition& partition, std::size_t part);

}  // namespace neyman
