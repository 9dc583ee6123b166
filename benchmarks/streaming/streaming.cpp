// A ratio learned from files larger than memory:
//   build/benchmarks/streaming/streaming [rows = 1e7] [folder = .] [npy | h5] [epochs = 2]
// Writes two files with half of the rows each, 10 features: independent unit normals, of which the
// first three are shifted by ½ in the denominator. Trains and calibrates with the configuration of
// `files` in a study, in two folds, and prints what it took: seconds, the largest resident memory,
// and the error against the exact ratio. The files, 40 bytes a row, are removed.
#include <fmt/format.h>
#include <hdf5.h>
#include <sys/resource.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "neyman/classifiers/mlp.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/progress.hpp"
#include "neyman/core/random.hpp"
#include "neyman/data/sample_stream.hpp"
#include "neyman/ratios/classifier_ratio.hpp"
#include "neyman/simulators/files.hpp"

namespace {

using namespace neyman;
namespace fs = std::filesystem;

constexpr std::size_t features = 10, shifted = 3;
constexpr double shift = 0.5;

/// log r = Σ_j shift²/2 − shift · x_j.
double exact(std::span<const double> x) {
  double sum = 0.0;
  for (std::size_t j = 0; j < shifted; ++j) sum += shift * (0.5 * shift - x[j]);
  return sum;
}

Matrix draw(std::size_t rows, bool denominator, std::uint64_t seed) {
  Matrix x(rows, features);
  RandomStream random(seed, denominator ? "denominator" : "numerator");
  random.fill_normal(x.values());
  if (denominator)
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < shifted; ++j) x(i, j) += shift;
  return x;
}

constexpr std::size_t written_at_once = 1 << 16;

/// Calls `write` with float32 of the rows [at, at + count), one block after the other.
template <class Write>
void for_each_block(std::size_t rows, bool denominator, Write&& write) {
  for (std::size_t at = 0; at < rows; at += written_at_once) {
    const std::size_t count = std::min(written_at_once, rows - at);
    const auto x = draw(count, denominator, 1 + at / written_at_once);
    write(at, count, std::vector<float>(x.values().begin(), x.values().end()));
  }
}

void write_npy(const std::string& path, std::size_t rows, bool denominator) {
  std::ofstream file(path, std::ios::binary);
  std::string header =
      fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {})}}", rows, features);
  while ((header.size() + 11) % 64 != 0) header += ' ';
  header += '\n';
  const auto size = static_cast<unsigned>(header.size());
  file << "\x93NUMPY\x01" << '\0' << static_cast<char>(size & 255) << static_cast<char>(size >> 8)
       << header;
  for_each_block(rows, denominator, [&](std::size_t, std::size_t, const auto& numbers) {
    file.write(reinterpret_cast<const char*>(numbers.data()),
               static_cast<std::streamsize>(numbers.size() * sizeof(float)));
  });
  if (!file.flush()) throw FileError(path + ": cannot be written");
}

/// One dataset, rows × features, in chunks of 16 384 rows.
void write_hdf5(const std::string& path, std::size_t rows, bool denominator) {
  const hsize_t extents[] = {rows, features}, chunk[] = {std::min<hsize_t>(rows, 16384), features};
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t space = H5Screate_simple(2, extents, nullptr);
  const hid_t layout = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(layout, 2, chunk);
  const hid_t dataset =
      H5Dcreate2(file, "events", H5T_IEEE_F32LE, space, H5P_DEFAULT, layout, H5P_DEFAULT);
  for_each_block(rows, denominator, [&](std::size_t at, std::size_t count, const auto& numbers) {
    const hsize_t start[] = {at, 0}, size[] = {count, features};
    const hid_t memory = H5Screate_simple(2, size, nullptr);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, nullptr, size, nullptr);
    if (H5Dwrite(dataset, H5T_NATIVE_FLOAT, memory, space, H5P_DEFAULT, numbers.data()) < 0)
      throw FileError(path + ": cannot be written");
    H5Sclose(memory);
  });
  H5Dclose(dataset);
  H5Pclose(layout);
  H5Sclose(space);
  H5Fclose(file);
}

/// Of this process so far: CPU seconds, and the largest resident memory in GiB.
struct Usage {
  double cpu, peak;
};
Usage usage() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return {seconds(used.ru_utime) + seconds(used.ru_stime),
          static_cast<double>(used.ru_maxrss) / (1 << 20)};
}

template <class Work>
auto timed(const char* what, Work&& work) {
  const double start = seconds_now(), cpu = usage().cpu;
  auto out = work();
  fmt::print("{:28} {:8.1f} s, {:8.1f} CPU s, {:.2f} GiB at most\n", what, seconds_now() - start,
             usage().cpu - cpu, usage().peak);
  std::fflush(stdout);
  return out;
}

}  // namespace

int main(int count, char** arguments) {
  const auto rows = static_cast<std::size_t>(count > 1 ? std::stod(arguments[1]) : 1e7);
  const fs::path folder = count > 2 ? arguments[2] : ".";
  Mlp::Config network;
  const std::string format = count > 3 ? arguments[3] : "npy";
  network.epochs = count > 4 ? std::stoul(arguments[4]) : 2;
  network.batch_size = 1024;

  RatioConfig config;
  config.classifier = std::make_shared<Mlp>(network);
  config.calibrator = make_calibrator("smooth");
  config.folds = 2;
  const std::string names[] = {(folder / ("numerator." + format)).string(),
                               (folder / ("denominator." + format)).string()};
  fmt::print("{} rows of {} features in {} files, {} threads, {} epochs\n", rows, features, format,
             threads(), network.epochs);
  timed("write the files", [&] {
    for (const int side : {0, 1})
      (format == "npy" ? write_npy : write_hdf5)(names[side], rows / 2, side == 1);
    return 0;
  });
  const auto samples = timed("read them once", [&] {
    std::vector<FoldedSample> out;
    for (std::uint64_t side = 0; side < 2; ++side) {
      Files::Config files;
      files.tables = {{names[side], {}}};
      files.stream = true;
      const Files events(files, ParameterSpace());
      out.emplace_back(*events.stored(), config, side, events.stream());
    }
    return out;
  });
  const auto ratio = timed("train two folds, calibrate", [&] {
    return ClassifierRatio(samples[0], samples[1], {0.0}, {1.0}, config);
  });
  for (const auto& name : names) fs::remove(name);

  const auto x = draw(100000, false, 987654321);
  const auto found = ratio.log_ratios(x, std::vector{0.0}, std::vector{1.0});
  const auto plain = ratio.uncalibrated(x);
  double error = 0.0, uncalibrated = 0.0, spread = 0.0;
  for (std::size_t i = 0; i < x.rows(); ++i) {
    const double truth = exact(x.row(i)), n = static_cast<double>(x.rows());
    error += std::abs(found[i] - truth) / n;
    uncalibrated += std::abs(plain[i] - truth) / n;
    spread += std::abs(truth) / n;
  }
  fmt::print(
      "mean |log r̂ − log r|: {:.4f} calibrated, {:.4f} by the networks; mean |log r|: {:.3f}\n",
      error, uncalibrated, spread);
}
