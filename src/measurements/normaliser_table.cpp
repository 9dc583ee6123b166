#include "measurements/normaliser_table.hpp"

#include <algorithm>
#include <cmath>

#include "measurements/chebyshev.hpp"

namespace neyman::detail {

namespace {

constexpr std::size_t most_together = TensorJet::most;
// By how many parameters have cells together.
constexpr std::size_t table_degrees[most_together] = {16, 12, 10, 6};
constexpr std::size_t most_cells[most_together] = {128, 64, 48, 24};  // along one axis

/// Of so many parameters: pairs where they are too many.
std::size_t together_of(std::size_t parameters) {
  return parameters <= most_together ? parameters : 2;
}

}  // namespace

/// The cell of a part that has a point: its edges and its number.
struct NormaliserTable::Place {
  std::array<double, most_together> low, high, u;
  std::size_t number = 0;
};

NormaliserTable::NormaliserTable(const std::vector<Axis>& axes, Function of, const Config& config)
    : axes_(axes), of_(std::move(of)), config_(config) {
  for (const auto& axis : axes_) {
    auto& edges = edges_.emplace_back(1, axis.low);
    for (const double at : axis.breaks)
      if (at > axis.low && at < axis.high) edges.push_back(at);
    edges.push_back(axis.high);
  }
}

NormaliserTable::~NormaliserTable() {
  for (auto& part : parts_)
    for (std::size_t c = 0; c < part.count; ++c) delete part.cells[c].load();
}

/// The largest difference along an axis, with the others at their anchors, between polynomials of
/// this degree in each of its cells and the function.
double NormaliserTable::along(std::size_t axis, std::size_t degree) const {
  constexpr std::array between{0.02, 0.23, 0.41, 0.7, 0.95};
  // Some of the cells stand for all: the one of the anchor, and others evenly.
  constexpr std::size_t most_compared = 6;
  const auto& edges = edges_[axis];
  const double anchor = axes_[axis].anchor;
  std::vector<std::size_t> compared;
  const std::size_t all = edges.size() - 1, step = (all + most_compared - 1) / most_compared;
  for (std::size_t cell = 0; cell < all; ++cell)
    if (cell % step == 0 || (anchor >= edges[cell] && anchor <= edges[cell + 1]))
      compared.push_back(cell);
  const std::size_t cells = compared.size(), nodes = degree + 1, rows = nodes + between.size();
  const auto places = chebyshev_nodes(degree);
  Matrix points(cells * rows, axes_.size());
  for (std::size_t row = 0; row < points.rows(); ++row) {
    for (std::size_t a = 0; a < axes_.size(); ++a) points(row, a) = axes_[a].anchor;
    const double low = edges[compared[row / rows]], high = edges[compared[row / rows] + 1];
    const std::size_t k = row % rows;
    const double u = k < nodes ? places[k] : 2.0 * between[k - nodes] - 1.0;
    points(row, axis) = std::clamp(0.5 * (low + high) + 0.5 * (high - low) * u, low, high);
  }
  const auto values = of_(points);
  const auto transform = chebyshev_coefficients(degree);
  ChebyshevValues chebyshev;
  double worst = 0.0;
  for (std::size_t cell = 0; cell < cells; ++cell)
    for (std::size_t b = 0; b < between.size(); ++b) {
      chebyshev.set(2.0 * between[b] - 1.0, 1.0, degree);
      double sum = 0.0;
      for (std::size_t j = 0; j < nodes; ++j)
        for (std::size_t k = 0; k < nodes; ++k)
          sum += chebyshev.values[j] * transform[j * nodes + k] * values[cell * rows + k];
      worst = std::max(worst, std::abs(sum - values[cell * rows + nodes + b]));
    }
  return worst;
}

/// Halves the cells of an axis until the polynomials are good along it.
void NormaliserTable::refine(std::size_t axis) {
  const std::size_t together = together_of(axes_.size());
  while (2 * (edges_[axis].size() - 1) <= most_cells[together - 1] &&
         along(axis, table_degrees[together - 1]) > config_.aim) {
    std::vector<double> finer;
    for (std::size_t e = 0; e + 1 < edges_[axis].size(); ++e) {
      finer.push_back(edges_[axis][e]);
      finer.push_back(0.5 * (edges_[axis][e] + edges_[axis][e + 1]));
    }
    finer.push_back(edges_[axis].back());
    edges_[axis] = std::move(finer);
  }
}

void NormaliserTable::add_part(double factor, std::vector<std::size_t> members) {
  Part part;
  part.factor = factor;
  part.members = std::move(members);
  part.degree = table_degrees[together_of(axes_.size()) - 1];
  part.count = 1;
  for (const std::size_t m : part.members) part.count *= edges_[m].size() - 1;
  part.cells = std::make_unique<std::atomic<const Cell*>[]>(part.count);
  parts_.push_back(std::move(part));
}

NormaliserTable::Place NormaliserTable::place_of(const Part& part,
                                                 std::span<const double> point) const {
  Place out;
  for (std::size_t m = 0; m < part.members.size(); ++m) {
    const auto& edges = edges_[part.members[m]];
    const double x = point[part.members[m]];
    const auto above = std::upper_bound(edges.begin() + 1, edges.end() - 1, x);
    out.low[m] = *(above - 1);
    out.high[m] = *above;
    out.u[m] = 2.0 * (x - out.low[m]) / (out.high[m] - out.low[m]) - 1.0;
    out.number =
        out.number * (edges.size() - 1) + static_cast<std::size_t>(above - 1 - edges.begin());
  }
  return out;
}

/// The polynomial of a cell, compared with the function at some places between the nodes.
std::unique_ptr<NormaliserTable::Cell> NormaliserTable::fill(const Part& part,
                                                             const Place& place) const {
  constexpr std::size_t checks = 8;
  const std::size_t n = part.members.size(), size = part.degree + 1;
  std::size_t tensor = 1;
  for (std::size_t m = 0; m < n; ++m) tensor *= size;
  const auto nodes = chebyshev_nodes(part.degree);
  Matrix points(tensor + checks, axes_.size());
  for (std::size_t row = 0; row < points.rows(); ++row) {
    for (std::size_t a = 0; a < axes_.size(); ++a) points(row, a) = axes_[a].anchor;
    for (std::size_t m = n, node = row; m-- > 0; node /= size) {
      double u = nodes[node % size];
      if (row >= tensor) {  // check points are spread by irrational steps
        const double way =
            static_cast<double>(row - tensor + 1) * std::sqrt(2.0 + 3.0 * static_cast<double>(m));
        u = 2.0 * (way - std::floor(way)) - 1.0;
      }
      points(row, part.members[m]) = std::clamp(
          0.5 * (place.low[m] + place.high[m]) + 0.5 * (place.high[m] - place.low[m]) * u,
          place.low[m], place.high[m]);
    }
  }
  auto cell = std::make_unique<Cell>();
  auto values = of_(points);
  const std::vector<double> exact(values.begin() + static_cast<std::ptrdiff_t>(tensor),
                                  values.end());
  values.resize(tensor);
  chebyshev_transform(values, n, part.degree);
  cell->coefficients = std::move(values);
  LogNormaliser found;
  for (std::size_t c = 0; c < checks; ++c) {
    found.value = 0.0;
    found.first.assign(axes_.size(), 0.0);
    found.second.assign(axes_.size() * axes_.size(), 0.0);
    add(part, place_of(part, points.row(tensor + c)), *cell, found);
    if (!(std::abs(found.value - part.factor * exact[c]) <= config_.allowed)) cell->good = false;
  }
  return cell;
}

const NormaliserTable::Cell& NormaliserTable::cell_at(const Part& part, const Place& place) const {
  auto& slot = part.cells[place.number];
  if (const Cell* known = slot.load(std::memory_order_acquire)) return *known;
  // Two threads may fill it at once; the first one's is kept, and they are the same.
  auto made = fill(part, place);
  const Cell* none = nullptr;
  if (slot.compare_exchange_strong(none, made.get(), std::memory_order_acq_rel))
    return *made.release();
  return *none;
}

void NormaliserTable::add(const Part& part, const Place& place, const Cell& cell,
                          LogNormaliser& out) const {
  std::array<ChebyshevValues, most_together> at;
  const std::size_t n = part.members.size(), all = axes_.size();
  for (std::size_t m = 0; m < n; ++m)
    at[m].set(place.u[m], 2.0 / (place.high[m] - place.low[m]), part.degree);
  const auto jet = chebyshev_tensor(n, part.degree, at.data(), cell.coefficients.data());
  out.value += part.factor * jet.value;
  for (std::size_t a = 0; a < n; ++a) {
    const std::size_t p = part.members[a];
    out.first[p] += part.factor * jet.first[a];
    for (std::size_t b = a; b < n; ++b) {
      const std::size_t q = part.members[b];
      out.second[p * all + q] += part.factor * jet.second[a][b];
      if (a != b) out.second[q * all + p] += part.factor * jet.second[a][b];
    }
  }
}

bool NormaliserTable::evaluate(std::span<const double> point, LogNormaliser& out) const {
  for (std::size_t a = 0; a < axes_.size(); ++a)
    if (!(point[a] >= axes_[a].low && point[a] <= axes_[a].high)) return false;
  out.value = constant_;
  out.first.assign(axes_.size(), 0.0);
  out.second.assign(axes_.size() * axes_.size(), 0.0);
  for (const auto& part : parts_) {
    const auto place = place_of(part, point);
    const auto& cell = cell_at(part, place);
    if (!cell.good) return false;
    add(part, place, cell, out);
  }
  return true;
}

/// At the anchor, and at corners around it where all parameters are moved: there the sum of what
/// two of many do would fail.
bool NormaliserTable::good_near_anchor(double at_anchor) const {
  const std::size_t n = axes_.size();
  LogNormaliser found;
  std::vector<double> anchor;
  for (const auto& axis : axes_) anchor.push_back(axis.anchor);
  if (!evaluate(anchor, found) || !(std::abs(found.value - at_anchor) <= config_.allowed))
    return false;
  if (n <= most_together) return true;
  Matrix corners(8, n);
  for (std::size_t row = 0; row < corners.rows(); ++row)
    for (std::size_t a = 0; a < n; ++a) {
      const bool up = ((row >> (a % 3)) & 1) == 0;
      const double size = row % 2 == 0 ? 0.4 : 0.9;
      corners(row, a) =
          axes_[a].anchor + size * ((up ? axes_[a].high : axes_[a].low) - axes_[a].anchor);
    }
  const auto exact = of_(corners);
  for (std::size_t row = 0; row < corners.rows(); ++row)
    if (!evaluate(corners.row(row), found) ||
        !(std::abs(found.value - exact[row]) <= config_.allowed))
      return false;
  return true;
}

std::shared_ptr<const NormaliserTable> NormaliserTable::make(const std::vector<Axis>& axes,
                                                             Function of, const Config& config) {
  const std::size_t n = axes.size();
  std::shared_ptr<NormaliserTable> out(new NormaliserTable(axes, std::move(of), config));
  for (std::size_t a = 0; a < n; ++a) out->refine(a);
  Matrix anchor(1, n);
  for (std::size_t a = 0; a < n; ++a) anchor(0, a) = axes[a].anchor;
  const double at_anchor = out->of_(anchor)[0];
  if (n <= most_together) {
    std::vector<std::size_t> all(n);
    for (std::size_t a = 0; a < n; ++a) all[a] = a;
    out->add_part(1.0, std::move(all));
  } else {
    // Σ_pairs f_pq − (n − 2) Σ f_p + ((n − 1)(n − 2) / 2) f: right for every sum of functions of
    // two.
    const auto size = static_cast<double>(n);
    for (std::size_t a = 0; a < n; ++a) {
      out->add_part(2.0 - size, {a});
      for (std::size_t b = 0; b < a; ++b) out->add_part(1.0, {b, a});
    }
    out->constant_ = 0.5 * (size - 1.0) * (size - 2.0) * at_anchor;
  }
  if (!out->good_near_anchor(at_anchor)) return nullptr;
  return out;
}

}  // namespace neyman::detail
