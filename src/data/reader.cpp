#include "neyman/data/reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>

#include "data/table_source.hpp"
#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/progress.hpp"
#include "neyman/core/text.hpp"

namespace neyman {

namespace {

std::unique_ptr<TableSource> open_table(const std::string& path, const ReadOptions& options) {
  const auto [file, dataset] = table_name(path);
  const auto format = file_format(file, options.format);
  if (!dataset.empty() && format != FileFormat::hdf5)
    throw FileError(fmt::format(
        "{}: names '{}' inside of a file, but only HDF5 files have tables inside", path, dataset));
  if (!dataset.empty() && !options.dataset.empty() && dataset != options.dataset)
    throw FileError(fmt::format("{}: the dataset '{}' is asked for as well, but there must be one",
                                path, options.dataset));
  switch (format) {
    case FileFormat::npy:
      return open_npy(file, options);
    case FileFormat::hdf5: {
      auto inside = options;
      if (!dataset.empty()) inside.dataset = dataset;
      return open_hdf5(file, inside);
    }
    default:
      return open_csv(file, options);
  }
}

/// Every column that the options name, in order.
std::vector<std::string> named_columns(const ReadOptions& options) {
  std::vector<std::string> names = options.features;
  names.insert(names.end(), options.parameters.begin(), options.parameters.end());
  if (!options.weight.empty()) names.push_back(options.weight);
  if (!options.group.empty()) names.push_back(options.group);
  return names;
}

void check_options(const ReadOptions& options) {
  check_at_least("SampleReader", "block_rows", options.block_rows, 1);
  std::set<std::string> seen;
  for (const std::string& name : named_columns(options)) {
    if (!seen.insert(name).second) {
      fail_argument("SampleReader", "column '" + name + "'", "named twice",
                    "a feature, a parameter, the weight or the group, and only one of these");
    }
  }
}

void refuse_duplicates(const std::string& path, const std::vector<std::string>& columns) {
  std::set<std::string> seen;
  for (const std::string& name : columns) {
    if (!seen.insert(name).second) {
      throw FileError(fmt::format("{}: has two columns named '{}'", path, shortened(name)));
    }
  }
}

void refuse_missing(const std::string& path, const std::vector<std::string>& columns,
                    const ReadOptions& options) {
  const std::set<std::string_view> there(columns.begin(), columns.end());
  std::vector<std::string> missing;
  for (const std::string& name : named_columns(options))
    if (there.count(name) == 0) missing.push_back(name);
  if (missing.empty()) return;
  throw FileError(fmt::format("{}: has no column{} '{}'; columns are {}", path,
                              missing.size() > 1 ? "s" : "", list_names(missing, "', '"),
                              list_names(columns)));
}

/// All columns that the options do not name otherwise.
std::vector<std::string> remaining_columns(const std::string& path,
                                           const std::vector<std::string>& columns,
                                           const ReadOptions& options) {
  const std::vector<std::string> list = named_columns(options);
  const std::set<std::string_view> named(list.begin(), list.end());
  std::vector<std::string> features;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].empty()) {
      throw FileError(
          fmt::format("{}: column {} has no name; give it one, or say which columns are features",
                      path, i + 1));
    }
    if (named.count(columns[i]) == 0) features.push_back(columns[i]);
  }
  if (features.empty()) throw FileError(path + ": has no column left for the features");
  return features;
}

}  // namespace

struct SampleReader::State {
  std::string path;
  ReadOptions options;
  std::unique_ptr<TableSource> source;
  std::vector<std::string> features;
  Selection selection;  // features, parameters, weight
  TableBlock block;
  std::size_t rows = 0;
  std::size_t dropped = 0;

  bool valid(std::size_t row) const {
    const std::size_t width = selection.values.size();
    const double* values = block.values.data() + row * width;
    return std::all_of(values, values + width, [](double v) { return std::isfinite(v); });
  }

  /// The valid rows of the block.
  Samples to_samples() const {
    std::vector<std::size_t> kept;
    for (std::size_t row = 0; row < block.rows; ++row) {
      if (valid(row)) kept.push_back(row);
    }
    const std::size_t width = selection.values.size();
    const std::size_t parameters = options.parameters.size();
    Samples samples;
    samples.feature_names = features;
    samples.parameter_names = options.parameters;
    samples.x = Matrix(kept.size(), features.size());
    if (parameters > 0) samples.theta = Matrix(kept.size(), parameters);
    for (std::size_t i = 0; i < kept.size(); ++i) {
      const double* from = block.values.data() + kept[i] * width;
      std::copy_n(from, features.size(), samples.x.row(i).begin());
      from += features.size();
      if (parameters > 0) std::copy_n(from, parameters, samples.theta.row(i).begin());
      if (!options.weight.empty()) samples.weights.push_back(from[parameters]);
      if (!options.group.empty()) samples.groups.push_back(block.groups[kept[i]]);
    }
    return samples;
  }
};

SampleReader::SampleReader(const std::string& path, ReadOptions options)
    : state_(std::make_unique<State>()) {
  check_options(options);
  State& state = *state_;
  state.path = path;
  state.source = open_table(path, options);
  const std::vector<std::string>& columns = state.source->columns();
  refuse_duplicates(path, columns);
  refuse_missing(path, columns, options);
  state.features =
      options.features.empty() ? remaining_columns(path, columns, options) : options.features;

  std::vector<std::string> values = state.features;
  values.insert(values.end(), options.parameters.begin(), options.parameters.end());
  if (!options.weight.empty()) values.push_back(options.weight);
  std::map<std::string_view, std::size_t> index;
  for (std::size_t i = 0; i < columns.size(); ++i) index.emplace(columns[i], i);
  for (const std::string& name : values) state.selection.values.push_back(index.at(name));
  if (!options.group.empty()) state.selection.group = index.at(options.group);
  state.selection.refuse_invalid = options.on_invalid == OnInvalid::refuse;
  state.options = std::move(options);
}

SampleReader::~SampleReader() = default;
SampleReader::SampleReader(SampleReader&&) noexcept = default;
SampleReader& SampleReader::operator=(SampleReader&&) noexcept = default;

std::optional<Samples> SampleReader::next() {
  // Fewer rows at once where they are wide: a block is memory beside that of the result.
  constexpr std::size_t most_values = std::size_t{1} << 25;
  State& state = *state_;
  const std::size_t rows =
      std::min(state.options.block_rows, std::max<std::size_t>(1, most_values / columns().size()));
  for (;;) {
    check_stop();
    state.source->read(rows, state.selection, state.block);
    if (state.block.rows == 0) break;
    Samples samples = state.to_samples();
    state.rows += state.block.rows;
    state.dropped += state.block.rows - samples.size();
    if (samples.size() > 0) return samples;
  }
  if (state.rows == 0) throw FileError(state.path + ": has no rows");
  if (state.rows == state.dropped) {
    throw FileError(fmt::format("{}: has no valid row: all {} have a value that is not finite",
                                state.path, state.rows));
  }
  return std::nullopt;
}

const std::vector<std::string>& SampleReader::columns() const { return state_->source->columns(); }
const std::vector<std::string>& SampleReader::feature_names() const { return state_->features; }
std::size_t SampleReader::rows() const { return state_->rows; }
std::size_t SampleReader::dropped() const { return state_->dropped; }

std::optional<std::size_t> SampleReader::file_rows() const { return state_->source->rows(); }

void SampleReader::seek(std::size_t row) {
  if (!file_rows())
    throw FileError(state_->path +
                    ": is a CSV file, which is read from the top to the end; to read it in any "
                    "order, convert it to NPY or HDF5");
  state_->source->seek(row);
}

ReadResult read_samples(const std::string& path, const ReadOptions& options) {
  SampleReader reader(path, options);
  ReadResult result;
  Samples& samples = result.samples;
  std::vector<double> x, theta;  // grow by doubling; the tables take them over
  while (std::optional<Samples> block = reader.next()) {
    const auto extend = [](auto& all, const auto& more) {
      all.insert(all.end(), more.begin(), more.end());
    };
    extend(x, block->x.values());
    extend(theta, block->theta.values());
    extend(samples.weights, block->weights);
    extend(samples.groups, block->groups);
  }
  result.rows = reader.rows();
  result.dropped = reader.dropped();
  const std::size_t kept = result.rows - result.dropped;
  samples.feature_names = reader.feature_names();
  samples.x = Matrix(kept, samples.feature_names.size(), std::move(x));
  samples.parameter_names = options.parameters;
  if (!options.parameters.empty()) {
    samples.theta = Matrix(kept, options.parameters.size(), std::move(theta));
  }
  return result;
}

TableColumns table_columns(const std::string& path, const ReadOptions& options) {
  const std::unique_ptr<TableSource> source = open_table(path, options);
  refuse_duplicates(path, source->columns());
  return {source->columns(), source->named() || !options.columns.empty()};
}

std::vector<std::string> file_columns(const std::string& path, const ReadOptions& options) {
  return table_columns(path, options).names;
}

void refuse_too_wide(const std::string& path, std::optional<std::uint64_t> rows,
                     std::uint64_t columns) {
  constexpr std::uint64_t most_columns = 100'000;
  if (columns <= most_columns) return;
  throw FileError(
      fmt::format("{}: has {}{} columns, but must have at most {}, and a row for each "
                  "event; is it transposed?",
                  path, rows ? fmt::format("{} rows and ", *rows) : "", columns, most_columns));
}

std::vector<std::string> names_for(const std::string& path, const ReadOptions& options,
                                   std::size_t count) {
  if (options.columns.empty()) return default_feature_names(count);
  if (options.columns.size() != count) {
    throw FileError(fmt::format("{}: has {} columns, but {} names were given for them", path, count,
                                options.columns.size()));
  }
  return options.columns;
}

void refuse_invalid_values(const std::string& path, const std::vector<std::string>& columns,
                           const Selection& selection, const TableBlock& block,
                           std::size_t first_row) {
  const std::size_t width = selection.values.size();
  for (std::size_t i = 0; i < block.rows * width; ++i) {
    if (std::isfinite(block.values[i])) continue;
    throw InvalidValue(
        fmt::format("{}: row {} (counted from 0): column '{}' is {}, but must be finite", path,
                    first_row + i / width, columns[selection.values[i % width]], block.values[i]));
  }
}

std::int64_t whole_group(const std::string& path, const std::string& column, double value,
                         std::size_t row) {
  if (std::abs(value) <= largest_exact_integer && value == std::floor(value)) {
    return static_cast<std::int64_t>(value);
  }
  throw FileError(
      fmt::format("{}: row {} (counted from 0): column '{}' is {}, but must be a whole number",
                  path, row, column, value));
}

std::int64_t whole_group(const std::string& path, const std::string& column, std::uint64_t value,
                         std::size_t row) {
  if (value <= static_cast<std::uint64_t>(INT64_MAX)) return static_cast<std::int64_t>(value);
  throw FileError(
      fmt::format("{}: row {} (counted from 0): column '{}' is {}, but must be at most {}", path,
                  row, column, value, INT64_MAX));
}

}  // namespace neyman
