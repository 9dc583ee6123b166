#include "neyman/measurements/asymptotics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/tools/toms748_solve.hpp>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "measurements/tested_value.hpp"
#include "neyman/core/check.hpp"

namespace neyman {

namespace {

constexpr std::array band{-2.0, -1.0, 0.0, 1.0, 2.0};
constexpr std::array band_names{"expected −2σ", "expected −1σ", "expected median", "expected +1σ",
                                "expected +2σ"};

double normal_tail(double z) { return 0.5 * std::erfc(z / std::sqrt(2.0)); }

/// CL_s where the statistic lies `z` standard deviations above its median without signal, and
/// `separation` = √q_A is what lies between the hypotheses.
double cl_s(double z, double separation) { return normal_tail(z + separation) / normal_tail(z); }

/// The separation at which CL_s of such data is `size`: the inverse of the above.
double separation_at(double z, double size) {
  const boost::math::normal normal;
  return boost::math::quantile(boost::math::complement(normal, size * normal_tail(z))) - z;
}

void check_upper(std::string_view function, TestStatistic statistic) {
  if (statistic != TestStatistic::q && statistic != TestStatistic::q_tilde)
    fail_argument(function, "statistic", to_string(statistic), "q or q-tilde");
}

/// Tests of many values of μ: the fits that do not depend on it are done once.
class Scanner {
 public:
  Scanner(const StatisticalModel& model, const MeasurementData& data, TestStatistic statistic)
      : statistic_(statistic),
        data_(data),
        observed_(model, statistic),
        without_(model, statistic) {
    ok_ = observed_.fit_free(data, model.start()).ok;
    ok_ = without_.fit_held(data, 0.0, observed_.free_point()).ok && ok_;
    const std::vector<double> background(without_.point().begin(), without_.point().end());
    asimov_ = model.asimov(background);
    // The best fit of the Asimov data set is the point that it was made at.
    without_.fit_free(asimov_, background);
    starts_[0.0] = {background, background};
  }

  SignalTest operator()(double tested) {
    const auto start = std::min_element(starts_.begin(), starts_.end(), [&](auto& a, auto& b) {
                         return std::abs(a.first - tested) < std::abs(b.first - tested);
                       })->second;
    SignalTest out;
    out.tested = tested;
    const auto observed = observed_.compare(data_, tested, start.observed);
    const auto without = without_.compare(asimov_, tested, start.without);
    out.ok = ok_ && observed.ok && without.ok;
    out.estimate = observed.estimate;
    out.statistic = observed.statistic;
    out.asimov_statistic = without.statistic;
    if (observed.statistic > 0.0 && without.statistic > 0.0 && out.ok)
      starts_[tested] = {{observed_.point().begin(), observed_.point().end()},
                         {without_.point().begin(), without_.point().end()}};
    set_p_values(out);
    return out;
  }

 private:
  struct Starts {
    std::vector<double> observed, without;
  };

  void set_p_values(SignalTest& out) const {
    const double root = std::sqrt(out.statistic), separation = std::sqrt(out.asimov_statistic);
    // Standard deviations above the median without signal.
    double z = root - separation;
    if (statistic_ == TestStatistic::q_tilde && root > separation)
      z = separation > 0.0 ? (out.statistic - out.asimov_statistic) / (2.0 * separation) : root;
    out.cl_sb = normal_tail(z + separation);
    out.cl_b = normal_tail(z);
    out.cl_s = cl_s(z, separation);
    for (std::size_t i = 0; i < band.size(); ++i) out.expected_cl_s[i] = cl_s(-band[i], separation);
  }

  TestStatistic statistic_;
  const MeasurementData& data_;
  detail::TestedValue observed_, without_;
  MeasurementData asimov_;
  bool ok_ = false;
  std::map<double, Starts> starts_;
};

}  // namespace

SignalTest asymptotic_test(const StatisticalModel& model, const MeasurementData& data,
                           double tested, TestStatistic statistic) {
  model.check_data("asymptotic_test", data);
  check_upper("asymptotic_test", statistic);
  detail::check_tested("asymptotic_test", model, statistic, tested);
  return Scanner(model, data, statistic)(tested);
}

std::vector<SignalTest> asymptotic_scan(const StatisticalModel& model, const MeasurementData& data,
                                        const std::vector<double>& values,
                                        TestStatistic statistic) {
  constexpr const char* function = "asymptotic_scan";
  model.check_data(function, data);
  check_upper(function, statistic);
  for (const double value : values) detail::check_tested(function, model, statistic, value);
  Scanner scan(model, data, statistic);
  std::vector<SignalTest> out;
  for (const double value : values) out.push_back(scan(value));
  return out;
}

UpperLimit upper_limit(const StatisticalModel& model, const MeasurementData& data,
                       const UpperLimitOptions& options) {
  constexpr const char* function = "upper_limit";
  model.check_data(function, data);
  check_upper(function, options.statistic);
  check_in_range(function, "level", options.level, 0.5, 1.0 - 1e-9);
  const auto& parameter = model.parameters()[model.interest()];
  const double highest = options.highest.value_or(parameter.high);
  detail::check_tested(function, model, options.statistic, highest);
  check_positive(function, "highest", highest);
  const double size = 1.0 - options.level;

  Scanner scan(model, data, options.statistic);
  const auto test = [&](double tested) {
    const auto result = scan(tested);
    if (!result.ok)
      fail_argument(function, "a fit", fmt::format("failed at {} = {:g}", parameter.name, tested),
                    "converged; try the fit by itself for the reason");
    return result;
  };
  const auto end = test(highest);
  // Each limit is where a function of μ crosses zero from below. CL_s of the observed data is taken
  // as its logarithm, and the expected ones as their separations: nearly straight lines in μ.
  const auto solve = [&](const std::string& name, double end_cl_s,
                         const std::function<double(const SignalTest&)>& distance) {
    const double beyond = distance(end);
    if (beyond < 0.0)
      fail_argument(function,
                    fmt::format("CL_s of the {} limit at {} = {:g}", name, parameter.name, highest),
                    fmt::format("{:.3g}", end_cl_s),
                    fmt::format("below {:g} for the limit to lie inside; widen the range of {}",
                                size, parameter.name));
    std::uintmax_t most = 100;
    const auto close = [](double a, double b) {
      return std::abs(a - b) <= 1e-7 * (std::abs(a) + std::abs(b)) + 1e-300;
    };
    const auto bracket =
        boost::math::tools::toms748_solve([&](double tested) { return distance(test(tested)); },
                                          0.0, highest, distance(test(0.0)), beyond, close, most);
    return 0.5 * (bracket.first + bracket.second);
  };
  UpperLimit out;
  out.level = options.level;
  out.observed = solve("observed", end.cl_s, [&](const SignalTest& result) {
    return std::log(size) - std::log(std::max(result.cl_s, 1e-300));
  });
  for (std::size_t i = 0; i < band.size(); ++i) {
    const double wanted = separation_at(-band[i], size);
    out.expected[i] = solve(band_names[i], end.expected_cl_s[i], [&](const SignalTest& result) {
      return std::sqrt(result.asimov_statistic) - wanted;
    });
  }
  out.estimate = end.estimate;
  return out;
}

Discovery discovery(const StatisticalModel& model, const MeasurementData& data, double expected) {
  model.check_data("discovery", data);
  detail::check_tested("discovery", model, TestStatistic::q0, 0.0);
  check_in_range("discovery", "expected", expected, model.parameters()[model.interest()].low,
                 model.parameters()[model.interest()].high);
  detail::TestedValue test(model, TestStatistic::q0);
  const auto observed = test(data, 0.0, model.start(), model.start());
  Discovery out;
  // Without signal there may be no way to the data: nothing expected where something was seen.
  const auto impossible = [&](const detail::TestedValue::Value& value) {
    return test.free_ok() && std::isinf(value.statistic);
  };
  out.impossible = impossible(observed);
  out.statistic = observed.statistic;
  out.significance = std::sqrt(observed.statistic);
  out.p_value = normal_tail(out.significance);
  out.estimate = observed.estimate;
  const bool held = test.fit_held(data, expected, model.start()).ok;
  const std::vector<double> point(test.point().begin(), test.point().end());
  const auto asimov = test(model.asimov(point), 0.0, point, point);
  out.expected_significance = std::sqrt(asimov.statistic);
  out.ok = (observed.ok || out.impossible) && held && (asimov.ok || impossible(asimov));
  return out;
}

}  // namespace neyman
