#include "neyman/simulators/join.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "neyman/core/check.hpp"
#include "simulators/shapes.hpp"

namespace neyman {

namespace {

/// The columns of all parts in their places.
void put_together(const std::vector<Matrix>& parts, Matrix& out) {
  // Few rows at a time, which stay in the cache from one column to the next.
  constexpr std::size_t few = 256;
  for (std::size_t begin = 0; begin < out.rows(); begin += few) {
    const std::size_t end = std::min(begin + few, out.rows());
    std::size_t column = 0;
    for (const Matrix& part : parts) {
      for (std::size_t j = 0; j < part.cols(); ++j, ++column) {
        const double* from = part.data() + j;
        double* to = out.data() + column;
        for (std::size_t i = begin; i < end; ++i) to[i * out.cols()] = from[i * part.cols()];
      }
    }
  }
}

}  // namespace

Join::Join(std::vector<DistributionPtr> parts) : parts_(std::move(parts)) {
  check_at_least("join", "parts", parts_.size(), 1);
  for (const auto& part : parts_) {
    if (part == nullptr) fail_argument("join", "a part", "null", "a distribution");
    dimension_ += part->dimension();
  }
}

DistributionPtr Join::make(Settings settings, const ParameterSpace& parameters,
                           const std::string& folder) {
  std::vector<DistributionPtr> parts;
  for (auto& table :
       settings.tables({"parts", "distributions, independent and side by side", Key::required}))
    parts.push_back(make_distribution(table, parameters, folder));
  if (parts.empty()) settings.problem("parts", "is missing or empty, but must be a list of tables");
  if (parts.empty() || std::find(parts.begin(), parts.end(), nullptr) != parts.end())
    return nullptr;
  return std::make_shared<Join>(std::move(parts));
}

void Join::sample(std::span<const double> point, RandomStream& random, Matrix& out) const {
  detail::check_shape(*this, out);
  put_together(sample_parts(point, random, out.rows()), out);
}

void Join::sample_each(MatrixView points, RandomStream& random, Matrix& out) const {
  detail::check_shape(*this, points, out);
  put_together(draw(out.rows(), [&](const Distribution& part,
                                    Matrix& drawn) { part.sample_each(points, random, drawn); }),
               out);
}

std::vector<Matrix> Join::sample_parts(std::span<const double> point, RandomStream& random,
                                       std::size_t rows) const {
  return draw(rows,
              [&](const Distribution& part, Matrix& drawn) { part.sample(point, random, drawn); });
}

std::vector<Matrix> Join::draw(std::size_t rows, const DrawPart& draw_part) const {
  std::vector<Matrix> drawn;
  for (const auto& part : parts_) {
    drawn.emplace_back(rows, part->dimension());
    draw_part(*part, drawn.back());
  }
  return drawn;
}

bool Join::has_density() const {
  return std::all_of(parts_.begin(), parts_.end(), [](const auto& p) { return p->has_density(); });
}

void Join::log_density(std::span<const double> point, MatrixView x, std::span<double> out) const {
  detail::check_shape(*this, x, out);
  std::fill(out.begin(), out.end(), 0.0);
  std::vector<double> term(x.rows());
  std::size_t offset = 0;
  for (const auto& part : parts_) {
    const std::size_t d = part->dimension();
    part->log_density(point, MatrixView(x.data() + offset, x.rows(), d, x.stride()), term);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += term[i];
    offset += d;
  }
}

bool Join::has_cdf() const { return parts_.size() == 1 && parts_.front()->has_cdf(); }

double Join::cdf(std::span<const double> point, double x) const {
  return has_cdf() ? parts_.front()->cdf(point, x) : Distribution::cdf(point, x);
}

double Join::quantile(std::span<const double> point, double probability) const {
  return has_cdf() ? parts_.front()->quantile(point, probability)
                   : Distribution::quantile(point, probability);
}

}  // namespace neyman
