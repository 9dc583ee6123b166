#include "neyman/simulators/distribution.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/distributed/tasks.hpp"
#include "simulators/shapes.hpp"

namespace neyman {

namespace {

/// Rows drawn from one stream: few enough that a block stays in the cache of a core, many enough
/// that what is done once a block does not count. Part of what a seed means: do not change.
constexpr std::size_t sample_block = 2048;
constexpr std::size_t larger_than_caches = std::size_t{32} << 20;

/// Past the caches, memory is written without being read before.
void copy(std::span<const double> from, double* to, [[maybe_unused]] bool past_caches) {
  std::size_t i = 0;
#if defined(__SSE2__)
  if (past_caches) {
    if (reinterpret_cast<std::uintptr_t>(to) % sizeof(__m128d) != 0 && !from.empty())
      to[i++] = from[0];
    for (; i + 2 <= from.size(); i += 2) _mm_stream_pd(to + i, _mm_loadu_pd(from.data() + i));
    _mm_sfence();
  }
#endif
  std::copy(from.begin() + static_cast<std::ptrdiff_t>(i), from.end(), to + i);
}

[[noreturn]] void fail_unknown(const Distribution& distribution, std::string_view what) {
  throw ArgumentError(fmt::format("{}: its {} is not known", distribution.kind(), what));
}

}  // namespace

void Distribution::sample_each(MatrixView points, RandomStream& random, Matrix& out) const {
  detail::check_shape(*this, points, out);
  const std::size_t d = out.cols();
  Matrix drawn;
  for (std::size_t begin = 0, end = 0; begin < out.rows(); begin = end) {
    const auto point = points.row(begin);
    do {
      ++end;
    } while (end < out.rows() && std::equal(point.begin(), point.end(), points.row(end).begin()));
    if (drawn.rows() != end - begin) drawn = Matrix(end - begin, d);
    sample(point, random, drawn);
    std::copy(drawn.values().begin(), drawn.values().end(), out.data() + begin * d);
  }
}

Distribution::Runs Distribution::runs() const {
  Runs out;
  for (const auto& part : parts()) {
    const Runs own = part->runs();
    out.events = std::max(out.events, own.events);
    out.at_once = std::max(out.at_once, own.at_once);
    out.tolerate = std::max(out.tolerate, own.tolerate);
    out.block = std::max(out.block, own.block);
  }
  return out;
}

std::optional<Distribution::Trial> Distribution::trial() const {
  std::optional<Trial> out;
  for (const auto& part : parts())
    if (const auto own = part->trial(); own && (!out || own->seconds > out->seconds)) out = own;
  return out;
}

void Distribution::set_cache_folder(const std::string& folder) const {
  for (const auto& part : parts()) part->set_cache_folder(folder);
}

std::optional<bool> Distribution::depends_on(std::size_t parameter) const {
  for (const auto& part : parts())
    if (part->depends_on(parameter).value_or(false)) return true;
  return std::nullopt;
}

void Distribution::log_density(std::span<const double>, MatrixView, std::span<double>) const {
  fail_unknown(*this, "density");
}

double Distribution::cdf(std::span<const double>, double) const { fail_unknown(*this, "cdf"); }

double Distribution::quantile(std::span<const double>, double) const {
  fail_unknown(*this, "quantile");
}

void sample_into(const Distribution& distribution, std::span<const double> point,
                 std::uint64_t seed, std::string_view purpose, Matrix& out, Progress* whole,
                 Tasks* tasks) {
  const std::size_t d = distribution.dimension();
  check_same_size("sample_into", "a row of out", out.cols(), d, "the dimension");
  std::optional<Progress> own;
  if (whole == nullptr) own.emplace("simulate", out.rows(), "events");
  Progress& progress = whole != nullptr ? *whole : *own;
  const auto draw = [&](std::size_t block, std::size_t rows) {
    RandomStream random(seed, purpose, block);
    Matrix drawn(rows, d);
    distribution.sample(point, random, drawn);
    progress.advance(rows);
    return drawn;
  };
  const bool past_caches = out.values().size_bytes() > larger_than_caches;
  const auto put = [&](const Matrix& drawn, std::size_t row) {
    copy(drawn.values(), out.data() + row * d, past_caches);
  };
  const auto runs = distribution.runs();
  const std::size_t least = runs.block > 0 ? runs.block : runs.at_once > 0 ? 1 : sample_block;
  const std::size_t size = std::max(least, runs.events);
  if (tasks != nullptr && runs.events > 1) {
    const auto one = [&](std::size_t block) {
      return draw(block, std::min(size, out.rows() - block * size));
    };
    const auto drawn = spread<Matrix>(
        tasks, (out.rows() + size - 1) / size, one, [](auto& bytes, auto& x) { bytes(x); },
        runs.at_once);
    for (std::size_t block = 0; block < drawn.size(); ++block) put(drawn[block], block * size);
    return;
  }
  const auto one = [&](Block block) { put(draw(block.index, block.size()), block.begin); };
  runs.at_once > 0 ? waiting_blocks(out.rows(), size, runs.at_once, one)
                   : parallel_blocks(out.rows(), size, one);
}

bool depends_on(const Distribution& distribution, const ParameterSpace& parameters,
                std::optional<std::size_t> only) {
  bool known = true;  // without drawing events
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    if (only && *only != p) continue;
    const auto own = distribution.depends_on(p);
    if (own.value_or(false)) return true;
    known &= own.has_value();
  }
  if (known) return false;
  const auto at = [&](double rest, double moved) {
    std::vector<double> out;
    for (std::size_t p = 0; p < parameters.size(); ++p)
      out.push_back(parameters[p].low +
                    (only && *only != p ? rest : moved) * (parameters[p].high - parameters[p].low));
    return out;
  };
  // What depends on θ gives other events from the same random numbers.
  const auto draw = [&](const std::vector<double>& point, std::size_t events) {
    Matrix x(events, distribution.dimension());
    RandomStream random(1, "dependence");
    distribution.sample(point, random, x);
    return x;
  };
  const auto differ = [&](const std::vector<double>& a, const std::vector<double>& b,
                          std::size_t events) {
    try {
      return !(draw(a, events) == draw(b, events));
    } catch (const Error&) {
      return true;  // it can be made at some points and not at others
    }
  };
  // A parameter may move few of the events, and another one decide how many these are.
  constexpr std::size_t few = 16, some = 64, many = 4096;
  if (differ(at(0.31, 0.31), at(0.31, 0.73), few)) return true;
  return differ(at(0.96, 0.04), at(0.96, 0.96), distribution.trial() ? some : many);
}

bool can_simulate(const Distribution& distribution) {
  if (distribution.stored() != nullptr) return false;
  const auto parts = distribution.parts();
  return std::all_of(parts.begin(), parts.end(),
                     [](const DistributionPtr& part) { return can_simulate(*part); });
}

Matrix sample(const Distribution& distribution, std::span<const double> point, std::size_t count,
              std::uint64_t seed, std::string_view purpose, Progress* whole, Tasks* tasks) {
  Matrix out(count, distribution.dimension());
  sample_into(distribution, point, seed, purpose, out, whole, tasks);
  return out;
}

std::vector<double> log_density(const Distribution& distribution, std::span<const double> point,
                                MatrixView x) {
  if (!distribution.has_density()) fail_unknown(distribution, "density");
  check_same_size("log_density", "a row of x", x.cols(), distribution.dimension(), "the dimension");
  std::vector<double> out(x.rows());
  parallel_blocks(x.rows(), default_block, [&](Block block) {
    for (std::size_t i = block.begin; i < block.end; ++i)
      for (std::size_t j = 0; j < x.cols(); ++j)
        if (!std::isfinite(x(i, j)))
          fail_argument("log_density", fmt::format("x[{}][{}]", i, j), fmt::format("{}", x(i, j)),
                        "finite");
    distribution.log_density(point, x.rows(block.begin, block.end),
                             std::span(out).subspan(block.begin, block.size()));
  });
  return out;
}

}  // namespace neyman
