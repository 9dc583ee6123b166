#include "neyman/simulators/design.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <Eigen/Cholesky>
#include <algorithm>
#include <atomic>
#include <boost/math/special_functions/erf.hpp>
#include <boost/random/sobol.hpp>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <mutex>
#include <numbers>
#include <numeric>
#include <utility>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/progress.hpp"
#include "neyman/data/reader.hpp"
#include "neyman/distributed/tasks.hpp"
#include "simulators/reading.hpp"

namespace neyman {

namespace {

constexpr std::size_t most_grid_points = 10'000'000;
/// Further away the cumulative distribution is no longer a double of full precision.
constexpr double most_sigmas = 37.0;
/// Generators that are tried for each component of a lattice: all of a small one.
constexpr std::size_t most_generators = 512;
/// Rows drawn from one stream. Part of what a seed means: do not change.
constexpr std::size_t draw_block = 2048;
/// Of a function: θ that stand for all of it where it is integrated, those of them that are saved,
/// and how often it is asked again for θ inside of the ranges.
constexpr std::size_t pool_rows = 65536, saved_rows = 4096;
constexpr int most_calls = 100;
/// Normals that tell how many of those with correlations lie inside of the ranges, and the least
/// share.
constexpr std::size_t tried_normals = 20000;
constexpr double least_inside = 1e-3;

struct KindName {
  Design::Kind kind;
  const char* name;
  const char* meaning;
  const char* needs = nullptr;  // the key without which it is not known
};
constexpr KindName kind_names[] = {
    {Design::Kind::uniform, "uniform", "at random over the ranges"},
    {Design::Kind::sobol, "sobol", "evenly spread over the ranges"},
    {Design::Kind::latin_hypercube, "latin-hypercube", "each parameter evenly spread by itself"},
    {Design::Kind::grid, "grid", "the points of a grid over the ranges", "points"},
    {Design::Kind::normal, "normal", "a normal distribution, cut off at the ranges", "sigma"},
    {Design::Kind::table, "table", "given points", "rows"},
    {Design::Kind::fixed, "fixed", "one point", "point"}};
constexpr const char* function_name = "function";  // in no file

/// The first where no kind has the name: after a problem, a fallback that is words may be asked
/// for.
const KindName& find_kind(const std::string& name) {
  for (const auto& known : kind_names)
    if (known.name == name) return known;
  return kind_names[0];
}

double normal_cdf(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

/// The quantile u of a standard normal truncated to [low, high].
double truncated_quantile(double u, double low, double high) {
  // In the upper half the complement keeps the precision.
  if (low > 0.0) return -truncated_quantile(1.0 - u, -high, -low);
  const double below = normal_cdf(low), above = normal_cdf(high);
  const double probability = below + u * (above - below);
  if (probability >= 1.0) return high;
  return std::clamp(-std::numbers::sqrt2 * boost::math::erfc_inv(2.0 * probability), low, high);
}

/// √(2π) times the normal probability between a and b.
double normal_integral(double a, double b) {
  if (b < 0.0) return normal_integral(-b, -a);  // without loss of digits in the tails
  constexpr double root_half = 0.7071067811865476, root_half_pi = 1.2533141373155003;
  return root_half_pi * (std::erfc(a * root_half) - std::erfc(b * root_half));
}

double to_unit(std::uint64_t bits) { return (static_cast<double>(bits >> 12) + 0.5) * 0x1.0p-52; }

template <class T>
void shuffle(std::span<T> values, RandomStream& random) {
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random.below(i)]);
}

/// A parameter's θ where it is on a log scale, and back.
double to_scale(bool log, double theta) { return log ? std::log(theta) : theta; }
double from_scale(bool log, double value, const Parameter& range) {
  return std::clamp(log ? std::exp(value) : value, range.low, range.high);
}

bool is_log(const Design::Config& config, std::size_t p) {
  return !config.log.empty() && config.log[p];
}

/// All combinations of the values of each parameter; the last varies fastest.
Matrix grid_rows(const ParameterSpace& parameters, const Design::Config& config) {
  const auto& points = config.points;
  check_same_size("Design", "points", points.size(), parameters.size(), "one for each parameter");
  std::size_t count = 1;
  for (std::size_t p = 0; p < points.size(); ++p) {
    check_at_least("Design", fmt::format("points[{}]", p), points[p], 1);
    if (points[p] > most_grid_points / count)
      fail_argument("Design", "the product of points", fmt::format("{}", fmt::join(points, " * ")),
                    fmt::format("at most {}", most_grid_points));
    count *= points[p];
  }
  Matrix rows(count, points.size());
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t rest = i;
    for (std::size_t p = points.size(); p-- > 0; rest /= points[p]) {
      const auto k = static_cast<double>(rest % points[p]);
      const double share = points[p] == 1 ? 0.5 : k / static_cast<double>(points[p] - 1);
      const bool log = is_log(config, p);
      const double low = to_scale(log, parameters[p].low), high = to_scale(log, parameters[p].high);
      rows(i, p) = share == 1.0   ? parameters[p].high
                   : share == 0.0 ? parameters[p].low
                                  : from_scale(log, low + share * (high - low), parameters[p]);
    }
  }
  return rows;
}

/// One number for each parameter: a list in their order, or a table by name; empty where absent
/// or where a problem was noted.
std::vector<double> read_values(Settings& settings, const Key& key,
                                const std::vector<std::string>& names, Limits limits) {
  if (!settings.has(key.name)) return {};
  const std::size_t before = settings.problems().size();
  std::vector<double> out;
  if (settings.is_table(key.name)) {
    auto table = settings.table(key);
    for (const auto& name : names)
      out.push_back(table.number({name, "value of the parameter"}, limits));
  }
  if (settings.describing() || !settings.is_table(key.name))
    out = settings.numbers(key, {}, limits);
  if (settings.problems().size() > before) return {};
  if (out.size() != names.size()) {
    settings.problem(
        key.name, fmt::format("has {} values, but must have {}, one for each parameter", out.size(),
                              names.size()));
    return {};
  }
  return out;
}

Matrix read_rows(Settings& settings, const std::vector<std::string>& names,
                 const std::string& folder) {
  const bool listed = settings.has("rows"), in_file = settings.has("file");
  if (listed == in_file)
    settings.problem(in_file ? "rows" : "",
                     "must have either rows or a file with a column for each parameter");
  std::vector<std::vector<double>> lists;
  std::string file;
  if (listed)
    lists = settings.rows({"rows", "θ of each point, in the parameters' order; this or file"});
  if (in_file)
    file = settings.text({"file", "a table with a column for each parameter; this or rows"}, "");
  if (listed == in_file) return {};
  if (listed) {
    Matrix out(lists.size(), names.size());
    for (std::size_t i = 0; i < lists.size(); ++i) {
      if (lists[i].size() != names.size()) {
        settings.problem("rows", fmt::format("has {} values in a row, but must have {}, one for "
                                             "each parameter",
                                             lists[i].size(), names.size()));
        return {};
      }
      std::copy(lists[i].begin(), lists[i].end(), out.row(i).begin());
    }
    return out;
  }
  try {
    ReadOptions options;
    options.features = names;
    return read_samples((std::filesystem::path(folder) / file).string(), options).samples.x;
  } catch (const Error& error) {
    settings.problem("file", fmt::format("cannot be used: {}", error.what()));
    return {};
  }
}

/// A matrix with a row and a column for each parameter; empty where absent or a problem was noted.
Matrix read_square(Settings& settings, const Key& key, std::size_t size) {
  if (!settings.has(key.name)) return {};
  const std::size_t before = settings.problems().size();
  const auto lists = settings.rows(key);
  if (settings.problems().size() > before) return {};
  bool fits = lists.size() == size && lists[0].size() == size;
  Matrix out(fits ? size : 0, fits ? size : 0);
  for (std::size_t i = 0; fits && i < size; ++i)
    std::copy(lists[i].begin(), lists[i].end(), out.row(i).begin());
  for (std::size_t i = 0; fits && i < size; ++i)
    for (std::size_t j = 0; j < i; ++j)
      fits = fits && std::abs(out(i, j) - out(j, i)) <= 1e-9 * std::abs(out(i, j));
  if (fits) return out;
  settings.problem(key.name, fmt::format("must be symmetric, with {0} rows and {0} columns: one "
                                         "for each parameter",
                                         size));
  return {};
}

void read_normal(Settings& table, const std::vector<std::string>& names, Design::Config& config) {
  config.mean = read_values(table,
                            {"mean",
                             "of each parameter; absent: the middle of its range; of log θ on "
                             "a log scale, as all others"},
                            names, Limits::any());
  config.sigma =
      read_values(table, {"sigma", "standard deviation of each parameter; this or covariance"},
                  names, Limits::positive());
  config.correlation = read_square(
      table, {"correlation", "of the parameters, a matrix; absent: they are independent"},
      names.size());
  const Matrix covariance = read_square(
      table, {"covariance", "of the parameters, a matrix; in the place of sigma and correlation"},
      names.size());
  if (table.describing() || !table.has("covariance")) return;
  for (const char* other : {"sigma", "correlation"})
    if (table.has(other)) table.problem(other, "stands beside covariance, which says it too");
  if (covariance.empty()) return;
  config.sigma.assign(names.size(), 0.0);
  for (std::size_t p = 0; p < names.size(); ++p) {
    if (!(covariance(p, p) > 0.0)) {
      table.problem("covariance", fmt::format("has {} on its diagonal, but must be positive there",
                                              covariance(p, p)));
      return;
    }
    config.sigma[p] = std::sqrt(covariance(p, p));
  }
  config.correlation = covariance;
  for (std::size_t p = 0; p < names.size(); ++p)
    for (std::size_t q = 0; q < names.size(); ++q)
      config.correlation(p, q) =
          p == q ? 1.0 : covariance(p, q) / (config.sigma[p] * config.sigma[q]);
}

/// The keys of one kind.
Design::Config read_config(Design::Kind kind, Settings table, const std::vector<std::string>& names,
                           const std::string& folder) {
  Design::Config config;
  config.kind = kind;
  if (kind <= Design::Kind::normal) {
    const auto on_log = table.texts(
        {"log", "parameters on a log scale, such as [\"tau\"]: all here is then of their log"}, {});
    if (!on_log.empty()) config.log.assign(names.size(), false);
    for (const auto& name : on_log) {
      const auto found = std::find(names.begin(), names.end(), name);
      if (found == names.end())
        table.problem("log", unknown_name(name, "a parameter", names));
      else
        config.log[static_cast<std::size_t>(found - names.begin())] = true;
    }
  }
  if (kind == Design::Kind::grid) {
    const Key key("points", "of the grid, for each parameter", Key::required);
    for (const double points : read_values(
             table, key, names, Limits::between(1, static_cast<double>(most_grid_points)))) {
      if (points != std::floor(points))
        table.problem("points", fmt::format("has {}, but must have whole numbers", points));
      config.points.push_back(static_cast<std::size_t>(points));
    }
  } else if (kind == Design::Kind::normal) {
    read_normal(table, names, config);
  } else if (kind == Design::Kind::table) {
    config.rows = read_rows(table, names, folder);
    config.resample = table.flag(
        {"resample", "each θ is a row at random; false: all rows equally often"}, config.resample);
  } else if (kind == Design::Kind::fixed) {
    auto point = read_values(table, {"point", "its θ", Key::required}, names, Limits::any());
    const std::size_t size = point.size();
    config.rows = Matrix(size == 0 ? 0 : 1, size, std::move(point));
  }
  return config;
}

/// The place of θ on a Morton curve over the ranks of each parameter's values: neighbours on it are
/// neighbours in θ.
std::vector<std::size_t> along_curve(const Matrix& theta) {
  const std::size_t n = theta.rows(), d = theta.cols();
  const std::size_t bits = std::min<std::size_t>(20, 62 / std::max<std::size_t>(d, 1));
  std::vector<std::uint64_t> place(n, 0);
  std::vector<std::size_t> order(n);
  for (std::size_t p = 0; p < std::min<std::size_t>(d, 62); ++p) {
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return theta(a, p) < theta(b, p); });
    std::size_t rank = 0;
    for (std::size_t i = 0; i < n; ++i) {
      if (i > 0 && theta(order[i], p) > theta(order[i - 1], p)) rank = i;
      const auto cell = static_cast<std::uint64_t>(static_cast<double>(rank) /
                                                   static_cast<double>(n) * std::pow(2.0, bits));
      for (std::size_t b = 0; b < bits; ++b) place[order[i]] |= (cell >> b & 1U) << (b * d + p);
    }
  }
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return place[a] != place[b]
               ? place[a] < place[b]
               : std::lexicographical_compare(theta.row(a).begin(), theta.row(a).end(),
                                              theta.row(b).begin(), theta.row(b).end());
  });
  return order;
}

/// What a function draws.
void check_drawn(const Matrix& theta, std::size_t rows, std::size_t parameters) {
  check_same_size("Design", "what the function draws", theta.rows(), rows, "one row for each θ");
  check_same_size("Design", "a row that the function draws", theta.cols(), parameters,
                  "one for each parameter");
  check_finite("Design", "what the function draws", theta.values());
}

}  // namespace

struct Design::Correlated {
  Eigen::MatrixXd factor;     // of the covariance: L Lᵀ
  Eigen::MatrixXd precision;  // its inverse
  double log_norm = 0.0;      // of the density inside of the ranges
  double inside = 1.0;        // the share of θ that lie there
};

struct Design::Lattices {
  std::mutex mutex;
  std::map<std::size_t, std::vector<std::size_t>> generators;  // by the number of points
};

std::vector<std::string> Design::kinds() {
  std::vector<std::string> out;
  for (const auto& known : kind_names) out.emplace_back(known.name);
  return out;
}

std::string Design::kind() const {
  for (const auto& known : kind_names)
    if (known.kind == config_.kind) return known.name;
  return function_name;
}

Design::Design(ParameterSpace parameters, Config config)
    : parameters_(std::move(parameters)),
      config_(std::move(config)),
      lattices_(std::make_shared<Lattices>()) {
  check_at_least("Design", "number of parameters", parameters_.size(), 1);
  if (!config_.log.empty())
    check_same_size("Design", "log", config_.log.size(), parameters_.size(),
                    "one for each parameter");
  for (std::size_t p = 0; p < parameters_.size(); ++p)
    if (on_log_scale(p) && !(parameters_[p].low > 0.0))
      fail_argument("Design", fmt::format("the range of {}", parameters_[p].name),
                    fmt::format("[{}, {}]", parameters_[p].low, parameters_[p].high),
                    "positive on a log scale");
  if (config_.kind == Kind::grid) rows_ = grid_rows(parameters_, config_);
  if (config_.kind == Kind::table || config_.kind == Kind::fixed) {
    rows_ = config_.rows;
    check_at_least("Design", "number of rows", rows_.rows(), 1);
    if (config_.kind == Kind::fixed) check_same_size("Design", "rows", rows_.rows(), 1, "a point");
    check_same_size("Design", "a row", rows_.cols(), parameters_.size(), "one for each parameter");
    for (std::size_t i = 0; i < rows_.rows(); ++i)
      parameters_.check_inside(fmt::format("Design: row {}", i), rows_.row(i));
  }
  if (config_.kind == Kind::function) take_pool();
  if (config_.kind == Kind::normal) check_normal();
}

void Design::check_normal() {
  const std::size_t d = parameters_.size();
  const auto low = [&](std::size_t p) { return to_scale(on_log_scale(p), parameters_[p].low); };
  const auto high = [&](std::size_t p) { return to_scale(on_log_scale(p), parameters_[p].high); };
  if (config_.mean.empty())
    for (std::size_t p = 0; p < d; ++p) config_.mean.push_back(0.5 * (low(p) + high(p)));
  check_same_size("Design", "mean", config_.mean.size(), d, "one for each parameter");
  check_same_size("Design", "sigma", config_.sigma.size(), d, "one for each parameter");
  check_finite("Design", "mean", config_.mean);
  for (std::size_t p = 0; p < d; ++p) {
    check_positive("Design", fmt::format("sigma[{}]", p), config_.sigma[p]);
    const double outside = std::max({0.0, low(p) - config_.mean[p], config_.mean[p] - high(p)});
    if (outside > most_sigmas * config_.sigma[p])
      fail_argument("Design", fmt::format("mean[{}]", p), fmt::format("{}", config_.mean[p]),
                    fmt::format("within {} sigma of the range [{}, {}] of {}", most_sigmas, low(p),
                                high(p), parameters_[p].name));
  }
  const auto& correlation = config_.correlation;
  if (correlation.empty()) return;
  check_same_size("Design", "correlation", correlation.rows(), d, "one row for each parameter");
  check_same_size("Design", "a row of correlation", correlation.cols(), d,
                  "one for each parameter");
  const auto at = [](std::size_t p) { return static_cast<Eigen::Index>(p); };
  Eigen::MatrixXd covariance(at(d), at(d));
  for (std::size_t p = 0; p < d; ++p)
    for (std::size_t q = 0; q < d; ++q) {
      const double value = correlation(p, q);
      if (p == q ? value != 1.0 : !(std::abs(value) < 1.0 && correlation(q, p) == value))
        fail_argument("Design", fmt::format("correlation[{}][{}]", p, q), fmt::format("{}", value),
                      p == q ? "1" : "between -1 and 1, the same in row and column");
      covariance(at(p), at(q)) = value * config_.sigma[p] * config_.sigma[q];
    }
  const Eigen::LLT<Eigen::MatrixXd> cholesky(covariance);
  if (cholesky.info() != Eigen::Success)
    throw ArgumentError(
        "Design: correlation is not positive definite, but must be: no normal distribution has it");
  auto made = std::make_shared<Correlated>();
  made->factor = cholesky.matrixL();
  made->precision = cholesky.solve(Eigen::MatrixXd::Identity(at(d), at(d)));
  correlated_ = made;
  Matrix normals(tried_normals, d);
  RandomStream random(0, "design/inside");
  for (double& value : normals.values()) value = random.normal();
  made->inside = static_cast<double>(correlated(normals).rows()) / tried_normals;
  if (made->inside < least_inside)
    throw ArgumentError(
        fmt::format("Design: the ranges hold {:.2g} of the normal distribution, but must hold at "
                    "least {}; widen them, or change mean and covariance",
                    made->inside, least_inside));
  made->log_norm = -std::log(made->inside);
  for (std::size_t p = 0; p < d; ++p)
    made->log_norm += std::log(parameters_[p].high - parameters_[p].low) -
                      std::log(made->factor(at(p), at(p))) - 0.5 * std::log(2.0 * std::numbers::pi);
}

void Design::take_pool() {
  if (!config_.function) fail_argument("Design", "function", "null", "a function that draws θ");
  auto drawn = draw_function(pool_rows, 0);
  pool_ = std::make_shared<const Matrix>(drawn.take(along_curve(drawn)));
}

Matrix Design::draw_function(std::size_t n, std::uint64_t seed) const {
  Matrix out(0, parameters_.size());
  for (int call = 0; call < most_calls; ++call) {
    const std::size_t wanted = n - out.rows();
    if (wanted == 0) return out;
    const Matrix drawn = config_.function(wanted, derive_seed(seed, "function", call));
    check_drawn(drawn, wanted, parameters_.size());
    std::vector<std::size_t> inside;
    for (std::size_t i = 0; i < drawn.rows(); ++i) {
      bool in = true;
      for (std::size_t p = 0; p < drawn.cols(); ++p)
        in = in && drawn(i, p) >= parameters_[p].low && drawn(i, p) <= parameters_[p].high;
      if (in) inside.push_back(i);
    }
    if (call == 0 && inside.empty() && wanted >= 100) break;
    if (!inside.empty()) out.append(drawn.take(inside));
  }
  if (out.rows() == n) return out;
  throw ArgumentError(
      fmt::format("Design: {} of {} θ that the function drew lie inside of the ranges, but all "
                  "must; widen the ranges, or draw others",
                  out.rows(), n));
}

Design Design::fixed(ParameterSpace parameters, std::vector<double> point) {
  const std::size_t size = point.size();
  return {std::move(parameters), {.kind = Kind::fixed, .rows = Matrix(1, size, std::move(point))}};
}

Design Design::from(Settings& settings, Key key, const ParameterSpace& parameters,
                    const std::string& folder, std::string_view fallback) {
  if (!settings.has(key.name)) return Design(parameters);
  const std::size_t before = settings.problems().size();
  Config config = read(settings, key, parameters.names(), folder, fallback);
  if (settings.problems().size() > before) return Design(parameters);
  try {
    return {parameters, std::move(config)};
  } catch (const ArgumentError& error) {
    settings.problem(key.name, "does not hold: " + error.reason());
    return Design(parameters);
  }
}

Design::Config Design::read(Settings& settings, Key key, const std::vector<std::string>& names,
                            const std::string& folder, std::string_view fallback) {
  const auto need = [&](const KindName& kind) {
    settings.problem(
        key.name, fmt::format("is \"{}\", but must be a table with {} too", kind.name, kind.needs));
  };
  Config config;
  const bool named = settings.is_text(key.name);  // design = "sobol"
  if (named) {
    const auto& kind = find_kind(settings.choice(key, fallback, Design::kinds()));
    config.kind = kind.kind;
    if (kind.needs != nullptr) need(kind);
  }
  if (!settings.describing() && settings.is_table(key.name)) {
    auto table = settings.table(key);
    if (const auto held = table.object<DesignObject>("object")) {
      for (const char* other : {"kind", "fingerprint"}) table.skip(other);
      config.kind = Kind::function;
      config.function = held->function;
      return config;
    }
  }
  if (settings.describing() || !named) {
    Kinds kinds{"design", "where θ come from", "uniform", {}};
    for (const auto& known : kind_names) kinds.names.emplace_back(known.name, known.meaning);
    config = settings.table(key).by_kind(kinds, [&](const std::string& name, Settings table) {
      const auto& kind = find_kind(name);
      // A table of points may be in a file instead, and sigma in a covariance.
      if (kind.needs != nullptr && kind.kind != Kind::table && !table.has(kind.needs) &&
          !(kind.kind == Kind::normal && table.has("covariance")))
        need(kind);
      return read_config(kind.kind, table, names, folder);
    });
  }
  return config;
}

ParameterSpace Design::bounded(std::vector<Parameter> parameters, const Config& config) {
  constexpr double sigmas = 4.0, spread = 0.05;
  constexpr const char* function = "Design::bounded";
  const auto open_below = [&](std::size_t p) {
    return !std::isfinite(parameters[p].low) || (is_log(config, p) && parameters[p].low <= 0.0);
  };
  const auto open = [&](std::size_t p) {
    return open_below(p) || !std::isfinite(parameters[p].high);
  };
  if (!config.log.empty())
    check_same_size(function, "log", config.log.size(), parameters.size(),
                    "one for each parameter");
  bool any = false;
  for (std::size_t p = 0; p < parameters.size(); ++p) any = any || open(p);
  if (!any) return ParameterSpace(std::move(parameters));
  Matrix rows = config.rows;
  if (config.kind == Kind::function && config.function) {
    rows = config.function(pool_rows, derive_seed(0, "function"));
    check_drawn(rows, pool_rows, parameters.size());
  }
  const bool normal = config.kind == Kind::normal;
  if (!normal && rows.empty()) {
    std::string names;
    for (std::size_t p = 0; p < parameters.size(); ++p)
      if (open(p)) names += (names.empty() ? "" : ", ") + parameters[p].name;
    throw ArgumentError(
        fmt::format("{}: the range of {} has an end that is not finite, but must have two numbers, "
                    "or a design that says where θ are: a normal, a table or a function",
                    function, names));
  }
  if (!normal)
    check_same_size(function, "a row", rows.cols(), parameters.size(), "one for each parameter");
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    if (!open(p)) continue;
    double low = 0.0, high = 0.0;
    if (normal) {
      if (config.mean.size() != parameters.size())
        fail_argument(
            function, "mean", "absent",
            fmt::format("one for each parameter where {} has no range", parameters[p].name));
      check_same_size(function, "sigma", config.sigma.size(), parameters.size(),
                      "one for each parameter");
      low = config.mean[p] - sigmas * config.sigma[p];
      high = config.mean[p] + sigmas * config.sigma[p];
      if (is_log(config, p)) low = std::exp(low), high = std::exp(high);
    } else {
      const auto values = rows.column(p);
      const auto [least, most] = std::minmax_element(values.begin(), values.end());
      const double more = spread * (*most > *least ? *most - *least : std::abs(*most) + 1.0);
      low = *least >= 0.0 ? std::max(0.0, *least - more) : *least - more;
      high = *most + more;
    }
    if (open_below(p)) parameters[p].low = low;
    if (!std::isfinite(parameters[p].high)) parameters[p].high = high;
  }
  return ParameterSpace(std::move(parameters));
}

double Design::value(std::size_t parameter, double u) const {
  const auto& range = parameters_[parameter];
  const bool log = on_log_scale(parameter);
  const double low = to_scale(log, range.low), high = to_scale(log, range.high);
  if (config_.kind != Kind::normal)
    return log ? from_scale(true, low + u * (high - low), range) : low + u * (high - low);
  const double mean = config_.mean[parameter], sigma = config_.sigma[parameter];
  const double z = truncated_quantile(u, (low - mean) / sigma, (high - mean) / sigma);
  return from_scale(log, mean + sigma * z, range);
}

double Design::log_density(std::span<const double> point, std::span<double> gradient) const {
  if (!has_density())
    fail_argument("Design::log_density", "kind", kind(), "one whose density is known");
  const std::size_t d = parameters_.size();
  double out = 0.0;
  std::fill(gradient.begin(), gradient.end(), 0.0);
  std::vector<double> away(d), steps(d, 1.0);  // from the mean; of the scale by θ
  for (std::size_t p = 0; p < d; ++p) {
    const auto& range = parameters_[p];
    const bool log = on_log_scale(p);
    const double low = to_scale(log, range.low), high = to_scale(log, range.high);
    if (log) {
      steps[p] = 1.0 / point[p];
      out += std::log(steps[p]);
      if (!gradient.empty()) gradient[p] -= steps[p];
    }
    if (config_.kind != Kind::normal) {
      out += std::log((range.high - range.low) / (high - low));
      continue;
    }
    const double mean = config_.mean[p], sigma = config_.sigma[p];
    away[p] = to_scale(log, point[p]) - mean;
    if (correlated_) continue;
    out += std::log((range.high - range.low) / sigma) - 0.5 * std::pow(away[p] / sigma, 2) -
           std::log(normal_integral((low - mean) / sigma, (high - mean) / sigma));
    if (!gradient.empty()) gradient[p] -= away[p] / (sigma * sigma) * steps[p];
  }
  if (!correlated_) return out;
  const Eigen::Map<const Eigen::VectorXd> z(away.data(), static_cast<Eigen::Index>(d));
  const Eigen::VectorXd pull = correlated_->precision * z;
  for (std::size_t p = 0; p < gradient.size(); ++p)
    gradient[p] -= pull(static_cast<Eigen::Index>(p)) * steps[p];
  return out + correlated_->log_norm - 0.5 * z.dot(pull);
}

Matrix Design::correlated(const Matrix& normals) const {
  const std::size_t d = parameters_.size();
  Matrix out(0, d), one(1, d);
  std::vector<double> kept;
  for (std::size_t i = 0; i < normals.rows(); ++i) {
    bool inside = true;
    for (std::size_t p = 0; p < d && inside; ++p) {
      double value = config_.mean[p];
      for (std::size_t q = 0; q <= p; ++q)
        value += correlated_->factor(static_cast<Eigen::Index>(p), static_cast<Eigen::Index>(q)) *
                 normals(i, q);
      one(0, p) = on_log_scale(p) ? std::exp(value) : value;
      inside = one(0, p) >= parameters_[p].low && one(0, p) <= parameters_[p].high;
    }
    if (inside) kept.insert(kept.end(), one.data(), one.data() + d);
  }
  const std::size_t rows = kept.size() / d;
  return {rows, d, std::move(kept)};
}

Matrix Design::draw_correlated(std::size_t n, std::uint64_t seed, std::string_view purpose) const {
  const std::size_t d = parameters_.size();
  Matrix out(n, d);
  parallel_blocks(n, draw_block, [&](Block block) {
    RandomStream random(seed, purpose, block.index);
    for (std::size_t i = block.begin; i < block.end;) {
      Matrix normals(block.end - i, d);
      for (double& value : normals.values()) value = random.normal();
      const Matrix inside = correlated(normals);
      std::copy(inside.values().begin(), inside.values().end(), out.data() + i * d);
      i += inside.rows();
    }
  });
  return out;
}

Matrix Design::draw(std::size_t n, std::uint64_t seed, std::string_view purpose) const {
  if (!rows_.empty()) return draw_rows(n, seed, purpose);
  if (config_.kind == Kind::function) return draw_function(n, derive_seed(seed, purpose));
  if (correlated_) return draw_correlated(n, seed, purpose);
  if (config_.kind == Kind::sobol) return draw_sobol(n, seed, purpose);
  if (config_.kind == Kind::latin_hypercube) return draw_latin(n, seed, purpose);
  Matrix out(n, parameters_.size());
  parallel_blocks(n, draw_block, [&](Block block) {
    RandomStream random(seed, purpose, block.index);
    for (std::size_t i = block.begin; i < block.end; ++i)
      for (std::size_t p = 0; p < out.cols(); ++p) out(i, p) = value(p, random.uniform());
  });
  return out;
}

Matrix Design::draw_sobol(std::size_t n, std::uint64_t seed, std::string_view purpose) const {
  const std::size_t d = parameters_.size();
  if (d > boost::random::default_sobol_table::max_dimension)
    fail_argument("Design", "number of parameters", fmt::format("{}", d),
                  fmt::format("at most {} for sobol",
                              std::size_t{boost::random::default_sobol_table::max_dimension}));
  RandomStream random(seed, purpose);
  std::vector<std::uint64_t> shift(d);
  for (auto& bits : shift) bits = random.bits();
  Matrix out(n, d);
  parallel_blocks(n, 16 * draw_block, [&](Block block) {
    boost::random::sobol sequence(d);
    // Boost leaves the first point, zero, out.
    if (block.begin > 0) sequence.seed(block.begin - 1);
    for (std::size_t i = block.begin; i < block.end; ++i)
      for (std::size_t p = 0; p < d; ++p)
        out(i, p) = value(p, to_unit((i == 0 ? 0 : sequence()) ^ shift[p]));
  });
  return out;
}

Matrix Design::draw_latin(std::size_t n, std::uint64_t seed, std::string_view purpose) const {
  Matrix out(n, parameters_.size());
  parallel_tasks(parameters_.size(), [&](std::size_t p) {
    RandomStream random(seed, purpose, p);
    std::vector<std::uint32_t> part(n);
    std::iota(part.begin(), part.end(), 0U);
    shuffle(std::span(part), random);
    for (std::size_t i = 0; i < n; ++i)
      out(i, p) = value(p, (part[i] + random.uniform()) / static_cast<double>(n));
  });
  return out;
}

Matrix Design::draw_rows(std::size_t n, std::uint64_t seed, std::string_view purpose) const {
  const std::size_t d = parameters_.size(), count = rows_.rows();
  Matrix out(n, d);
  // The rows in random order decide which of them occur once more; a second shuffle the events.
  std::vector<std::uint32_t> order(count), chosen(n);
  if (config_.resample) {
    RandomStream random(seed, purpose);
    for (auto& row : chosen) row = static_cast<std::uint32_t>(random.below(count));
  } else if (!single()) {
    RandomStream random(seed, purpose);
    std::iota(order.begin(), order.end(), 0U);
    shuffle(std::span(order), random);
    for (std::size_t i = 0; i < n; ++i) chosen[i] = order[i % count];
    shuffle(std::span(chosen), random);
  }
  for (std::size_t i = 0; i < n; ++i)
    std::copy_n(rows_.data() + chosen[i] * d, d, out.data() + i * d);
  return out;
}

/// Component by component: each new component is the one with the smallest mean over the points of
/// Π (1 + 2π² B₂(x_p)), B₂(x) = x² − x + 1/6, the squared error of the worst function (Kuo 2003).
std::vector<std::size_t> Design::generator(std::size_t count) const {
  const std::lock_guard lock(lattices_->mutex);
  auto& found = lattices_->generators[count];
  if (!found.empty()) return found;
  std::vector<double> kernel(count), product(count);
  for (std::size_t i = 0; i < count; ++i) {
    const double x = static_cast<double>(i) / static_cast<double>(count);
    kernel[i] = 1.0 + 2.0 * std::numbers::pi * std::numbers::pi * (x * x - x + 1.0 / 6.0);
  }
  product = kernel;
  found.push_back(1);
  const std::size_t half = count / 2, step = std::max<std::size_t>(1, half / most_generators);
  while (found.size() < parameters_.size()) {
    double least = std::numeric_limits<double>::infinity();
    std::size_t best = 1;
    for (std::size_t start = 1; start <= half; start += step) {
      std::size_t z = start;
      while (std::gcd(z, count) > 1) ++z;  // the last before count, count − 1, is coprime
      double sum = 0.0;
      for (std::size_t i = 0, at = 0; i < count; ++i, at = at + z < count ? at + z : at + z - count)
        sum += product[i] * kernel[at];
      if (sum < least) {
        least = sum;
        best = z;
      }
    }
    for (std::size_t i = 0, at = 0; i < count;
         ++i, at = at + best < count ? at + best : at + best - count)
      product[i] *= kernel[at];
    found.push_back(best);
  }
  return found;
}

Matrix Design::nodes(std::size_t count, std::uint64_t seed, std::uint64_t block) const {
  check_at_least("Design::nodes", "count", count, 1);
  if (!rows_.empty() && rows_.rows() <= count) return rows_;
  return config_.kind == Kind::table || pool_ ? table_nodes(count, seed, block)
                                              : lattice_nodes(count, seed, block);
}

Matrix Design::lattice_nodes(std::size_t wanted, std::uint64_t seed, std::uint64_t block) const {
  const std::size_t d = parameters_.size();
  // Of normals with correlations some come to lie outside of the ranges.
  const std::size_t count =
      correlated_
          ? static_cast<std::size_t>(std::ceil(static_cast<double>(wanted) / correlated_->inside))
          : wanted;
  const auto z = generator(count);
  RandomStream random(seed, "design/nodes", block);
  Matrix unit(count, d);
  for (std::size_t p = 0; p < d; ++p) {
    const double shift = random.uniform();
    for (std::size_t i = 0, at = 0; i < count; ++i, at = (at + z[p]) % count) {
      const double u = static_cast<double>(at) / static_cast<double>(count) + shift;
      const double folded = 1.0 - std::abs(2.0 * (u - std::floor(u)) - 1.0);
      unit(i, p) = std::clamp(folded, 0x1.0p-53, 1.0 - 0x1.0p-53);
    }
  }
  if (correlated_) {
    for (double& u : unit.values()) u = -std::numbers::sqrt2 * boost::math::erfc_inv(2.0 * u);
    const Matrix inside = correlated(unit);
    if (inside.rows() <= wanted) return inside.empty() ? draw_correlated(1, seed, "node") : inside;
    std::vector<std::size_t> some(wanted);  // evenly, as the lattice is in order
    for (std::size_t i = 0; i < wanted; ++i) some[i] = i * inside.rows() / wanted;
    return inside.take(some);
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (config_.kind != Kind::grid) {
      for (std::size_t p = 0; p < d; ++p) unit(i, p) = value(p, unit(i, p));
      continue;
    }
    std::size_t row = 0;
    for (std::size_t p = 0; p < d; ++p) {
      const auto points = static_cast<double>(config_.points[p]);
      row = row * config_.points[p] + static_cast<std::size_t>(unit(i, p) * points);
    }
    std::copy_n(rows_.row(row).begin(), d, unit.row(i).begin());
  }
  return unit;
}

Matrix Design::table_nodes(std::size_t count, std::uint64_t seed, std::uint64_t block) const {
  const Matrix& rows = pool_ ? *pool_ : rows_;
  RandomStream random(seed, "design/nodes", block);
  std::vector<std::size_t> chosen(count);
  const double width = static_cast<double>(rows.rows()) / static_cast<double>(count);
  for (std::size_t i = 0; i < count; ++i)
    chosen[i] =
        std::min(rows.rows() - 1,
                 static_cast<std::size_t>((static_cast<double>(i) + random.uniform()) * width));
  return rows.take(chosen);
}

void Design::save(Archive& archive) const {
  // A function is in no file: θ that it drew stand for it.
  archive.set("kind", pool_ ? "table" : kind());
  archive.set("points", std::vector<std::int64_t>(config_.points.begin(), config_.points.end()));
  archive.set("mean", config_.mean);
  archive.set("sigma", config_.sigma);
  if (pool_) {
    std::vector<std::size_t> some(saved_rows);
    for (std::size_t i = 0; i < some.size(); ++i) some[i] = i * pool_->rows() / some.size();
    archive.set("rows", pool_->take(some));
  } else {
    archive.set("rows", config_.rows);
  }
  archive.set("correlation", config_.correlation);
  archive.set("log", std::vector<std::int64_t>(config_.log.begin(), config_.log.end()));
  archive.set("resample", config_.resample);
}

Design::Design(const Archive& archive, ParameterSpace parameters)
    : Design(std::move(parameters), [&] {
        Config config;
        const auto names = kinds();
        const auto found = std::find(names.begin(), names.end(), archive.text("kind"));
        if (found == names.end())
          throw FileError(unknown_name(archive.text("kind"), "a design", names));
        config.kind = kind_names[found - names.begin()].kind;
        for (const auto points : archive.get<std::vector<std::int64_t>>("points"))
          config.points.push_back(static_cast<std::size_t>(points));
        config.mean = archive.numbers("mean");
        config.sigma = archive.numbers("sigma");
        config.rows = archive.get<Matrix>("rows");
        if (!archive.has("correlation")) return config;  // an older one
        config.correlation = archive.get<Matrix>("correlation");
        for (const auto log : archive.get<std::vector<std::int64_t>>("log"))
          config.log.push_back(log != 0);
        config.resample = archive.flag("resample");
        return config;
      }()) {}

namespace {

/// @throw SimulatorError where more of so many runs have failed than the simulator tolerates.
void check_failures(const Distribution::Runs& runs, std::size_t count, std::size_t failed,
                    const std::string& last) {
  const auto most = static_cast<std::size_t>(runs.tolerate * static_cast<double>(count));
  if (failed > most || (failed > 0 && count == 1))
    throw SimulatorError(fmt::format(
        "{}\n{} of {} runs of the simulator failed, and {} are tolerated; make the simulator "
        "work at this θ, narrow the ranges of the parameters, or raise simulator.tolerate "
        "(the share of runs that may fail, now {})",
        last, failed, count, most, runs.tolerate));
  if (failed > 0 && failed == count)
    throw SimulatorError(fmt::format("all {} runs of the simulator failed", count));
}

/// Runs of several events at one θ each.
Samples simulate_runs(const Distribution& distribution, const Design& design, std::size_t n,
                      std::uint64_t seed, std::string_view purpose, Tasks* tasks) {
  const auto runs = distribution.runs();
  const std::size_t d = distribution.dimension(), count = (n + runs.events - 1) / runs.events;
  // What does not divide evenly is spread over the runs, so that no θ counts for less.
  const auto begin = [&](std::size_t run) { return run * (n / count) + std::min(run, n % count); };
  const Matrix points = design.draw(count, seed, fmt::format("{}/theta", purpose));
  struct Run {
    Matrix x = {};
    std::string failure = {};  // why there are no events
  };
  std::atomic<std::size_t> failed{0};  // here
  Progress progress("simulate", n, "events");
  const auto draw = [&](std::size_t run) {
    RandomStream random(seed, purpose, run);
    Run out{Matrix(begin(run + 1) - begin(run), d)};
    try {
      distribution.sample(points.row(run), random, out.x);
    } catch (const SimulatorError& error) {
      out = {Matrix(), error.what()};
      check_failures(runs, count, ++failed, out.failure);
    }
    progress.advance(begin(run + 1) - begin(run));
    return out;
  };
  const auto drawn = spread<Run>(
      tasks, count, draw, [](auto& bytes, auto& run) { bytes(run.x, run.failure); }, runs.at_once);
  std::size_t failed_in_all = 0;
  for (const auto& run : drawn)
    if (!run.failure.empty()) check_failures(runs, count, ++failed_in_all, run.failure);
  Samples out;
  std::vector<std::size_t> run_of;
  out.x = Matrix(0, d);
  for (std::size_t r = 0; r < count; ++r) {
    run_of.insert(run_of.end(), drawn[r].x.rows(), r);
    if (drawn[r].x.rows() > 0) out.x.append(drawn[r].x);
  }
  out.theta = points.take(run_of);
  return out;
}

}  // namespace

Design empirical_design(const Samples& events, const ParameterSpace& parameters,
                        bool fills_ranges) {
  constexpr std::size_t most_rows = 200'000;
  constexpr double same_weight = 0.02;  // up to which θ count as equally often simulated
  check_same_size("empirical_design", "θ of the events", events.theta.rows(), events.size(),
                  "one for each event");
  check_at_least("empirical_design", "number of events", events.size(), 1);
  const auto order = along_curve(events.theta);
  const auto weight = [&](std::size_t i) { return std::abs(events.weight(i)); };
  const auto table = [&](const std::vector<std::size_t>& chosen) {
    return Design(parameters, {.kind = Design::Kind::table,
                               .rows = events.theta.take(chosen),
                               .fills_ranges = fills_ranges});
  };
  // Each θ once, where all have the same weight: few θ then make an integral that is exact.
  std::vector<std::size_t> distinct;
  std::vector<double> weights;
  for (const std::size_t i : order) {
    const auto same = [&](std::size_t j) {
      return std::equal(events.theta.row(i).begin(), events.theta.row(i).end(),
                        events.theta.row(j).begin());
    };
    if (distinct.empty() || !same(distinct.back())) {
      distinct.push_back(i);
      weights.push_back(0.0);
    }
    weights.back() += weight(i);
  }
  const auto [least, largest] = std::minmax_element(weights.begin(), weights.end());
  if (*largest - *least <= same_weight * *largest && distinct.size() <= most_rows)
    return table(distinct);
  // Rows at equal steps of the weights' sum.
  const std::size_t rows = std::min(events.size(), most_rows);
  const double step =
      std::accumulate(weights.begin(), weights.end(), 0.0) / static_cast<double>(rows);
  std::vector<std::size_t> chosen;
  double sum = 0.0;
  for (const std::size_t i : order) {
    sum += weight(i);
    while (chosen.size() < rows && sum > (static_cast<double>(chosen.size()) + 0.5) * step)
      chosen.push_back(i);
  }
  while (chosen.size() < rows) chosen.push_back(order.back());
  return table(chosen);
}

Samples simulate(const Distribution& distribution, const ParameterSpace& parameters,
                 const Design& design, std::size_t n, std::uint64_t seed, std::string_view purpose,
                 Tasks* tasks) {
  if (design.parameters() != parameters)
    throw ArgumentError("simulate: design is of other parameters, but must be of the given ones");
  if (const auto* stored = distribution.stored()) return *stored;
  const std::size_t d = distribution.dimension();
  const bool in_runs = distribution.runs().events > 1;
  Samples out;
  if (in_runs) out = simulate_runs(distribution, design, n, seed, purpose, tasks);
  out.feature_names = distribution.feature_names();
  if (out.feature_names.empty()) out.feature_names = default_feature_names(d);
  out.parameter_names = parameters.names();
  if (in_runs) return out;
  out.theta = design.draw(n, seed, fmt::format("{}/theta", purpose));
  out.x = Matrix(n, d);
  const auto runs = distribution.runs();
  Progress progress("simulate", n, "events");
  std::mutex mutex;
  std::vector<std::size_t> failed;  // events whose θ the simulator failed at
  const auto note_failure = [&](std::size_t event, const std::string& why) {
    const std::lock_guard lock(mutex);
    failed.push_back(event);
    check_failures(runs, n, failed.size(), why);
  };
  const auto draw = [&](Block block) {
    RandomStream random(seed, purpose, block.index);
    Matrix drawn(block.size(), d);
    const auto theta = out.theta.rows(block.begin, block.end);
    try {
      distribution.sample_each(theta, random, drawn);
    } catch (const SimulatorError&) {
      if (runs.tolerate == 0.0) throw;
      // Once more, one at a time: most of the block's θ are good.
      Matrix one(1, d);
      for (std::size_t i = 0; i < theta.rows(); ++i) {
        RandomStream own(seed, fmt::format("{}/alone", purpose), block.begin + i);
        try {
          distribution.sample(theta.row(i), own, one);
          std::copy_n(one.data(), d, drawn.row(i).begin());
        } catch (const SimulatorError& error) {
          note_failure(block.begin + i, error.what());
        }
      }
    } catch (const ArgumentError&) {
      // Once more, one at a time, to find the θ that is to blame.
      Matrix one(1, d);
      for (std::size_t i = 0; i < theta.rows(); ++i) {
        try {
          distribution.sample(theta.row(i), random, one);
        } catch (const ArgumentError& error) {
          std::vector<std::size_t> all(parameters.size());
          std::iota(all.begin(), all.end(), std::size_t{0});
          throw ArgumentError(fmt::format("{} (at {})", error.what(),
                                          detail::describe_point(parameters, theta.row(i), all)));
        }
      }
      throw;
    }
    std::copy(drawn.values().begin(), drawn.values().end(), out.x.data() + block.begin * d);
    progress.advance(block.size());
  };
  const std::size_t size = runs.block > 0 ? runs.block : draw_block;
  if (runs.at_once > 0)
    waiting_blocks(n, size, runs.at_once, draw);
  else
    parallel_blocks(n, size, draw);
  if (failed.empty()) return out;
  std::sort(failed.begin(), failed.end());
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < n; ++i)
    if (!std::binary_search(failed.begin(), failed.end(), i)) kept.push_back(i);
  return out.take(kept);
}

}  // namespace neyman
