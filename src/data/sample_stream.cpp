#include "neyman/data/sample_stream.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/random.hpp"
#include "neyman/core/text.hpp"
#include "neyman/data/splits.hpp"

namespace neyman {

SampleStream::SampleStream(std::vector<Table> tables, ReadOptions options,
                           std::vector<std::string> parameters)
    : tables_(std::move(tables)),
      options_(std::move(options)),
      parameter_names_(std::move(parameters)),
      first_{0} {
  check_at_least("SampleStream", "the number of tables", tables_.size(), 1);
  if (options_.on_invalid != OnInvalid::refuse)
    fail_argument("SampleStream", "on_invalid", "drop", "refuse");
  for (const auto& table : tables_) {
    if (!table.point.empty())
      check_same_size("SampleStream", "point", table.point.size(), parameter_names_.size(),
                      "one for each parameter");
    SampleReader reader(table.file, options_);
    reader.seek(0);
    if (feature_names_.empty()) feature_names_ = reader.feature_names();
    if (feature_names_ != reader.feature_names())
      throw FileError(fmt::format(
          "{}: has the features {}, but {} has {}; name the ones to use in columns", table.file,
          list_names(reader.feature_names()), tables_[0].file, list_names(feature_names_)));
    first_.push_back(first_.back() + *reader.file_rows());
  }
}

void SampleStream::leave_out(double share, std::uint64_t seed) {
  check_in_range("SampleStream::leave_out", "share", share, 0.0, 1.0);
  left_out_ = share;
  left_out_seed_ = seed;
}

void SampleStream::read_table(std::size_t table, std::size_t begin, std::size_t end,
                              Samples& into) const {
  auto options = options_;
  options.block_rows = end - begin;
  SampleReader reader(tables_[table].file, std::move(options));
  reader.seek(begin);
  auto events = reader.next();
  const std::size_t count = end - begin;
  // Where rows are wide, in several blocks, the last of which goes beyond the end.
  while (events && events->size() < count) {
    const auto more = reader.next();
    if (!more) break;
    events->append(*more);
  }
  if (!events || events->size() < count)
    throw FileError(fmt::format("{}: has {} rows from row {} on, but had {} before",
                                tables_[table].file, events ? events->size() : 0, begin, count));
  if (events->size() > count) {
    std::vector<std::size_t> wanted(count);
    std::iota(wanted.begin(), wanted.end(), std::size_t{0});
    *events = events->take(wanted);
  }
  if (events->groups.empty()) {
    events->groups.resize(count);
    std::iota(events->groups.begin(), events->groups.end(),
              static_cast<std::int64_t>(first_[table] + begin));
  }
  const auto& point = tables_[table].point;
  if (!point.empty()) {
    events->parameter_names = parameter_names_;
    events->theta = Matrix(count, point.size());
    for (std::size_t i = 0; i < count; ++i)
      std::copy(point.begin(), point.end(), events->theta.row(i).begin());
  }
  if (left_out_ > 0.0) {
    std::vector<std::size_t> kept;
    for (std::size_t i = 0; i < count; ++i)
      if (hashed(events->groups[i], left_out_seed_) >= left_out_) kept.push_back(i);
    *events = events->take(kept);
  }
  into.append(*events);
}

Samples SampleStream::read(std::size_t begin, std::size_t end) const {
  check_at_least("SampleStream::read", "rows", rows(), end);
  Samples out;
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    const std::size_t from = std::max(begin, first_[t]), to = std::min(end, first_[t + 1]);
    if (from < to) read_table(t, from - first_[t], to - first_[t], out);
  }
  return out;
}

Samples SampleStream::window(const Window& which) const {
  check_at_least("SampleStream::window", "count", which.count, which.number + 1);
  const std::size_t pieces = stretches * which.count;
  std::vector<std::size_t> order(pieces);
  std::iota(order.begin(), order.end(), std::size_t{0});
  RandomStream random(which.seed, "stretches", which.epoch);
  for (std::size_t i = pieces; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  Samples out;
  for (std::size_t k = 0; k < stretches; ++k) {
    const std::size_t piece = order[which.number * stretches + k];
    const std::size_t begin = piece * rows() / pieces, end = (piece + 1) * rows() / pieces;
    if (begin < end) out.append(read(begin, end));
  }
  return out;
}

}  // namespace neyman
