#pragma once

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "neyman/core/error.hpp"
#include "neyman/data/reader.hpp"
#include "neyman/data/samples.hpp"

namespace neyman::test {

/// Properties run with a fixed seed; the variable RC_PARAMS sets another.
inline const int fixed_seed = ::setenv("RC_PARAMS", "seed=20151106", 0);

/// A folder of its own that is removed with all its content.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    // In memory where possible: the many small files of a property are all synced to disk.
    const std::filesystem::path base = std::filesystem::exists("/dev/shm")
                                           ? std::filesystem::path("/dev/shm")
                                           : std::filesystem::temp_directory_path();
    std::string name = (base / "neyman-data-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(folder_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  /// Writes a file of these bytes and gives its path.
  std::string file(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }
  std::size_t count() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

 private:
  std::filesystem::path folder_;
};

/// The message of the E that `work` throws.
template <class E, class Work>
std::string message_of(Work&& work) {
  try {
    work();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("another exception: ") + error.what();
  }
  return "no exception";
}

#define EXPECT_CONTAINS(text, part)                          \
  EXPECT_NE(std::string(text).find(part), std::string::npos) \
      << "  text: " << (text) << "\n  part: " << (part)

/// Doubles of every magnitude, made of random bits, with the special ones more often.
inline rc::Gen<double> finite_double() {
  return rc::gen::oneOf(rc::gen::map(rc::gen::resize(1000, rc::gen::arbitrary<std::uint64_t>()),
                                     [](std::uint64_t bits) {
                                       // A few odd multiplications spread small numbers over all
                                       // bits.
                                       const double value =
                                           std::bit_cast<double>(bits * 0x9E3779B97F4A7C15ULL);
                                       return std::isfinite(value) ? value : 1.0;
                                     }),
                        rc::gen::element(0.0, -0.0, 1.0, 0.1, 5e-324, -2.2250738585072014e-308,
                                         1.7976931348623157e308, 9007199254740993.0));
}

inline bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}
template <class Range>
bool same_bits(const Range& a, const Range& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                                            [](double u, double v) { return same_bits(u, v); });
}
inline bool same_bits(const Matrix& a, const Matrix& b) {
  return a.rows() == b.rows() && a.cols() == b.cols() && same_bits(a.values(), b.values());
}

inline bool same_bits(const Samples& a, const Samples& b) {
  return a.feature_names == b.feature_names && a.parameter_names == b.parameter_names &&
         same_bits(a.x, b.x) && same_bits(a.theta, b.theta) && same_bits(a.weights, b.weights) &&
         a.groups == b.groups;
}

inline Matrix constant(std::size_t rows, std::size_t cols, double value) {
  return Matrix(rows, cols, std::vector<double>(rows * cols, value));
}

/// Samples of any shape with at least one row. Names come from the generator.
inline Samples arbitrary_samples(const rc::Gen<std::string>& name, std::int64_t largest_group) {
  Samples samples;
  const auto rows = *rc::gen::inRange<std::size_t>(1, 12);
  const auto features = *rc::gen::inRange<std::size_t>(1, 4);
  const auto parameters = *rc::gen::inRange<std::size_t>(0, 3);
  const auto names = *rc::gen::unique<std::vector<std::string>>(features + parameters, name);
  const auto doubles = [](std::size_t count) {
    return *rc::gen::container<std::vector<double>>(count, finite_double());
  };
  samples.feature_names.assign(names.begin(), names.begin() + static_cast<long>(features));
  samples.parameter_names.assign(names.begin() + static_cast<long>(features), names.end());
  samples.x = Matrix(rows, features, doubles(rows * features));
  if (parameters > 0) samples.theta = Matrix(rows, parameters, doubles(rows * parameters));
  if (*rc::gen::arbitrary<bool>()) samples.weights = doubles(rows);
  if (*rc::gen::arbitrary<bool>()) {
    samples.groups = *rc::gen::container<std::vector<std::int64_t>>(
        rows, rc::gen::oneOf(rc::gen::arbitrary<std::int64_t>(),
                             rc::gen::element(largest_group, -largest_group)));
  }
  return samples;
}

/// Options that read back what was written with default options.
inline ReadOptions options_for(const Samples& samples) {
  ReadOptions options;
  options.parameters = samples.parameter_names;
  if (samples.weighted()) options.weight = "weight";
  if (!samples.groups.empty()) options.group = "group";
  return options;
}

/// Reads in blocks of `block_rows` and puts them together.
inline Samples read_in_blocks(const std::string& path, ReadOptions options,
                              std::size_t block_rows) {
  options.block_rows = block_rows;
  SampleReader reader(path, options);
  Samples all;
  while (auto block = reader.next()) {
    EXPECT_LE(block->size(), block_rows);
    all.append(*block);
  }
  return all;
}

}  // namespace neyman::test
