// neyman's side of calibrating 10⁶ scores, and of drawing the second example's events.
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "../../second_example.hpp"
#include "../worker.hpp"
#include "neyman/calibration/histogram.hpp"
#include "neyman/calibration/isotonic.hpp"
#include "neyman/calibration/kde.hpp"
#include "neyman/core/parallel.hpp"

namespace {

using namespace neyman;
using peers::Json;

std::vector<double> read_doubles(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::vector<double> values(static_cast<std::size_t>(file.tellg()) / sizeof(double));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(values.data()),
            static_cast<std::streamsize>(values.size() * sizeof(double)));
  return values;
}

/// In the form that the peer has: steps, and bins of equal width.
std::unique_ptr<Calibrator> make(const std::string& kind, std::size_t bins) {
  if (kind == "isotonic") {
    IsotonicCalibrator::Config config;
    config.interpolate = false;
    return std::make_unique<IsotonicCalibrator>(config);
  }
  if (kind == "kde") return std::make_unique<KdeCalibrator>();
  HistogramCalibrator::Config config;
  config.edges = kind == "histogram" ? HistogramCalibrator::Edges::uniform
                                     : HistogramCalibrator::Edges::equal_probability;
  config.bins = bins;
  config.interpolate = false;
  return std::make_unique<HistogramCalibrator>(config);
}

class Contender {
 public:
  Json answer(const Json& request) {
    const auto task = request.at("task").get<std::string>();
    if (task == "load") return load(request);
    if (task == "fit") return fit(request);
    if (task == "evaluate") return evaluate(request);
    if (task == "sample") return draw(request);
    throw std::runtime_error("unknown task " + task);
  }

 private:
  Json load(const Json& request) {
    const auto folder = request.at("folder").get<std::string>();
    numerator_ = read_doubles(folder + "/numerator.f64");
    denominator_ = read_doubles(folder + "/denominator.f64");
    std::vector<double> all = numerator_;
    all.insert(all.end(), denominator_.begin(), denominator_.end());
    logits_ = Logits(std::move(all));
    return Json::object();
  }

  Json fit(const Json& request) {
    calibrator_ = make(request.at("kind"), request.value("bins", std::size_t{50}));
    return peers::timed([&] { calibrator_->fit({numerator_, denominator_}); });
  }

  /// At all scores; with the values at some logits, to be compared.
  Json evaluate(const Json& request) const {
    LogRatios found;
    Json out = peers::timed([&] { found = calibrator_->log_ratios(logits_); });
    const auto at = request.at("at").get<std::vector<double>>();
    const auto some = calibrator_->log_ratios(Logits(at));
    out["values"] = std::vector<double>(some.begin(), some.end());
    return out;
  }

  Json draw(const Json& request) {
    const auto rows = request.at("rows").get<std::size_t>();
    if (x_.rows() != rows) x_ = Matrix(rows, 5);
    const std::vector<double> point{1.0, -1.0};
    Json out =
        peers::timed([&] { sample_into(*simulator_, point, request.at("seed"), "benchmark", x_); });
    for (std::size_t c = 0; c < x_.cols(); ++c) {
      double sum = 0.0;
      for (std::size_t i = 0; i < rows; ++i) sum += x_(i, c);
      out["means"].push_back(sum / static_cast<double>(rows));
    }
    return out;
  }

  const ParameterSpace space_{{{"alpha", -3.0, 3.0, 1.0}, {"beta", -3.0, 3.0, -1.0}}};
  const DistributionPtr simulator_ = benchmarks::second_example(space_);
  std::vector<double> numerator_, denominator_;
  Logits logits_;
  std::unique_ptr<Calibrator> calibrator_;
  Matrix x_;
};

}  // namespace

int main() {
  set_threads(1);
  Contender contender;
  return peers::serve([&](const Json& request) { return contender.answer(request); });
}
