#include "measurements/cumulant_table.hpp"

#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <limits>

#include "measurements/chebyshev.hpp"

namespace neyman::detail {

namespace {

constexpr std::size_t cumulant_degree = 11;

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Matrix inverse_of(const Matrix& matrix) {
  const auto n = static_cast<Eigen::Index>(matrix.rows());
  Matrix out(matrix.rows(), matrix.rows());
  Eigen::Map<RowMajor>(out.data(), n, n) =
      Eigen::Map<const RowMajor>(matrix.data(), n, n).inverse();
  return out;
}

/// The dimension whose highest coefficients are largest.
std::size_t worst_dimension(const std::vector<double>& coefficients, std::size_t dimensions) {
  constexpr std::size_t size = cumulant_degree + 1;
  std::vector<double> tails(dimensions, 0.0);
  for (std::size_t n = 0; n < coefficients.size(); ++n)
    for (std::size_t d = dimensions, rest = n; d-- > 0; rest /= size)
      if (rest % size + 2 >= size) tails[d] = std::max(tails[d], std::abs(coefficients[n]));
  return static_cast<std::size_t>(std::max_element(tails.begin(), tails.end()) - tails.begin());
}

}  // namespace

CumulantTable::Cell::~Cell() {
  for (auto& half : halves) delete half.load();
}

CumulantTable::CumulantTable(const Matrix& coordinates, std::vector<double> low,
                             std::vector<double> high, Lattice lattice, Points points,
                             const Config& config)
    : size_(coordinates.rows()),
      coordinates_(coordinates),
      inverse_(inverse_of(coordinates)),
      lattice_(std::move(lattice)),
      points_(std::move(points)),
      config_(config) {
  std::copy(low.begin(), low.end(), low_.begin());
  std::copy(high.begin(), high.end(), high_.begin());
}

CumulantTable::~CumulantTable() { delete root_.load(); }

double CumulantTable::approximate(const Box& low, const Box& high, bool rough, Cell& cell) const {
  constexpr std::size_t checks = 8;
  std::vector<double> centre(size_, 0.0);
  Matrix steps(size_, size_);
  for (std::size_t i = 0; i < size_; ++i)
    for (std::size_t k = 0; k < size_; ++k) {
      centre[k] += inverse_(k, i) * 0.5 * (low[i] + high[i]);
      steps(i, k) = inverse_(k, i) * 0.5 * (high[i] - low[i]);
    }
  cell.coefficients = lattice_(centre, steps, chebyshev_nodes(cumulant_degree), rough);
  chebyshev_transform(cell.coefficients, size_, cumulant_degree);
  cell.halved = worst_dimension(cell.coefficients, size_);
  Matrix between(checks, size_);
  std::vector<double> found(checks);
  std::array<ChebyshevValues, most_dimensions> at;
  for (std::size_t c = 0; c < checks; ++c) {
    for (std::size_t k = 0; k < size_; ++k) between(c, k) = centre[k];
    for (std::size_t i = 0; i < size_; ++i) {  // spread by irrational steps
      const double way = static_cast<double>(c + 1) * std::sqrt(2.0 + 3.0 * static_cast<double>(i));
      const double u = 2.0 * (way - std::floor(way)) - 1.0;
      at[i].set(u, 1.0, cumulant_degree);
      for (std::size_t k = 0; k < size_; ++k) between(c, k) += u * steps(i, k);
    }
    found[c] = chebyshev_tensor(size_, cumulant_degree, at.data(), cell.coefficients.data()).value;
  }
  const auto exact = points_(between, rough);
  double worst = 0.0;
  for (std::size_t c = 0; c < checks; ++c) {
    const double difference = std::abs(found[c] - exact[c]);
    worst = std::isnan(difference) ? std::numeric_limits<double>::infinity()
                                   : std::max(worst, difference);
  }
  return worst;
}

std::unique_ptr<CumulantTable::Cell> CumulantTable::fill(const Box& low, const Box& high,
                                                         bool smallest) const {
  auto cell = std::make_unique<Cell>();
  // Fewer events may need smaller cells than all of them, but not by much.
  constexpr double hopeless = 100.0;
  if (config_.rough && !smallest && approximate(low, high, true, *cell) > hopeless * config_.aim)
    return cell;
  cell->good = approximate(low, high, false, *cell) <= (smallest ? config_.allowed : config_.aim);
  return cell;
}

const CumulantTable::Cell& CumulantTable::cell_at(std::atomic<const Cell*>& slot, const Box& low,
                                                  const Box& high, bool smallest) const {
  if (const Cell* known = slot.load(std::memory_order_acquire)) return *known;
  // Two threads may fill it at once; the first one's is kept, and they are the same.
  auto made = fill(low, high, smallest);
  const Cell* none = nullptr;
  if (slot.compare_exchange_strong(none, made.get(), std::memory_order_acq_rel))
    return *made.release();
  return *none;
}

bool CumulantTable::evaluate(std::span<const double> b, Jet& out) const {
  Box beta{}, low = low_, high = high_;
  for (std::size_t i = 0; i < size_; ++i) {
    for (std::size_t k = 0; k < size_; ++k) beta[i] += coordinates_(i, k) * b[k];
    if (!(beta[i] >= low[i] && beta[i] <= high[i])) return false;
  }
  const Cell* cell = &cell_at(root_, low, high, false);
  const std::size_t most = config_.halvings * size_;
  for (std::size_t depth = 1; !cell->good; ++depth) {
    if (depth > most) return false;
    const std::size_t d = cell->halved;
    const double middle = 0.5 * (low[d] + high[d]);
    const bool upper = beta[d] > middle;
    (upper ? low : high)[d] = middle;
    cell = &cell_at(cell->halves[upper ? 1 : 0], low, high, depth == most);
  }
  std::array<ChebyshevValues, most_dimensions> at;
  for (std::size_t i = 0; i < size_; ++i) {
    const double scale = 2.0 / (high[i] - low[i]);
    at[i].set(scale * (beta[i] - low[i]) - 1.0, scale, cumulant_degree);
  }
  const auto jet = chebyshev_tensor(size_, cumulant_degree, at.data(), cell->coefficients.data());
  out = {jet.value, {}, {}};
  for (std::size_t k = 0; k < size_; ++k)
    for (std::size_t i = 0; i < size_; ++i) {
      out.first[k] += coordinates_(i, k) * jet.first[i];
      for (std::size_t l = 0; l < size_; ++l)
        for (std::size_t j = 0; j < size_; ++j)
          out.second[k][l] +=
              coordinates_(i, k) * coordinates_(j, l) * jet.second[std::min(i, j)][std::max(i, j)];
    }
  return true;
}

}  // namespace neyman::detail
