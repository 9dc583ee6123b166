#include "measurements/normaliser_table.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "measurements/chebyshev.hpp"
#include "neyman/core/random.hpp"

namespace neyman::detail {

namespace {

constexpr std::size_t most_together = 3;
constexpr std::size_t least_degree = 4, most_degree = 28, degree_step = 4;
constexpr std::size_t checks = 128;

/// The subsets of `count` of n, in lexical order.
std::vector<std::vector<std::size_t>> subsets(std::size_t n, std::size_t count) {
  std::vector<std::vector<std::size_t>> out;
  std::vector<std::size_t> chosen(count);
  for (std::size_t i = 0; i < count; ++i) chosen[i] = i;
  for (;;) {
    out.push_back(chosen);
    std::size_t i = count;
    while (i > 0 && chosen[i - 1] == n - count + i - 1) --i;
    if (i == 0) return out;
    ++chosen[i - 1];
    for (; i < count; ++i) chosen[i] = chosen[i - 1] + 1;
  }
}

double binomial(std::size_t n, std::size_t k) {
  double out = 1.0;
  for (std::size_t i = 1; i <= k; ++i)
    out *= static_cast<double>(n - k + i) / static_cast<double>(i);
  return out;
}

std::size_t product(const std::vector<std::size_t>& factors) {
  std::size_t out = 1;
  for (const std::size_t factor : factors) out *= factor;
  return out;
}

/// Random points of the box, a third of them nearer to the anchors, where fits are.
Matrix check_points(const std::vector<NormaliserTable::Axis>& axes) {
  Matrix out(checks, axes.size());
  for (std::size_t row = 0; row < checks; ++row) {
    RandomStream random(0, "checks of a normalisation", row);
    const double size = row % 3 == 0 ? 0.4 : 1.0;
    for (std::size_t a = 0; a < axes.size(); ++a) {
      const double low = axes[a].anchor + size * (axes[a].low - axes[a].anchor),
                   high = axes[a].anchor + size * (axes[a].high - axes[a].anchor);
      out(row, a) = low + (high - low) * random.uniform();
    }
  }
  return out;
}

}  // namespace

/// The coefficients of a part from the values at its nodes.
void NormaliserTable::fill(Part& part, const Function& of) const {
  const std::size_t n = part.members.size();
  std::vector<std::size_t> sizes;
  for (const std::size_t degree : part.degrees) sizes.push_back(degree + 1);
  const std::size_t tensor = product(sizes), cells = product(part.cells);
  Matrix points(cells * tensor, axes_.size());
  for (std::size_t row = 0; row < points.rows(); ++row) {
    for (std::size_t a = 0; a < axes_.size(); ++a) points(row, a) = axes_[a].anchor;
    for (std::size_t m = n, cell = row / tensor, node = row % tensor; m-- > 0;) {
      const auto& edges = edges_[part.members[m]];
      const double low = edges[cell % part.cells[m]], high = edges[cell % part.cells[m] + 1];
      const auto angle =
          M_PI * static_cast<double>(node % sizes[m]) / static_cast<double>(part.degrees[m]);
      points(row, part.members[m]) =
          std::clamp(0.5 * (low + high) + 0.5 * (high - low) * std::cos(angle), low, high);
      cell /= part.cells[m];
      node /= sizes[m];
    }
  }
  part.coefficients = of(points);
  // One dimension of the tensors after the other.
  for (std::size_t m = 0, inner = tensor; m < n; ++m) {
    const std::size_t size = sizes[m];
    inner /= size;
    const auto transform = chebyshev_coefficients(part.degrees[m]);
    std::vector<double> line(size);
    for (std::size_t begin = 0; begin < part.coefficients.size(); begin += inner * size)
      for (std::size_t i = 0; i < inner; ++i) {
        for (std::size_t j = 0; j < size; ++j) {
          line[j] = 0.0;
          for (std::size_t k = 0; k < size; ++k)
            line[j] += transform[j * size + k] * part.coefficients[begin + k * inner + i];
        }
        for (std::size_t j = 0; j < size; ++j) part.coefficients[begin + j * inner + i] = line[j];
      }
  }
}

void NormaliserTable::add(const Part& part, std::span<const double> point,
                          LogNormaliser& out) const {
  // As three dimensions; those that are missing come first and have one polynomial, 1.
  std::array<ChebyshevValues, most_together> at;
  std::array<std::size_t, most_together> sizes;
  const std::size_t n = part.members.size(), missing = most_together - n;
  std::size_t cell = 0, tensor = 1;
  for (std::size_t d = 0; d < most_together; ++d) {
    sizes[d] = 1;
    if (d < missing) {
      at[d].set(0.0, 0.0, 0);
      continue;
    }
    const std::size_t m = d - missing, axis = part.members[m];
    const auto& edges = edges_[axis];
    const auto above = std::upper_bound(edges.begin() + 1, edges.end() - 1, point[axis]);
    const double low = *(above - 1), high = *above, scale = 2.0 / (high - low);
    at[d].set((point[axis] - low) * scale - 1.0, scale, part.degrees[m]);
    cell = cell * part.cells[m] + static_cast<std::size_t>(above - 1 - edges.begin());
    sizes[d] = part.degrees[m] + 1;
    tensor *= sizes[d];
  }
  const double* coefficient = part.coefficients.data() + cell * tensor;
  // whole[r][s][t]: derivatives of these orders by the three, together two at most.
  double whole[3][3][3] = {};
  for (std::size_t i = 0; i < sizes[0]; ++i) {
    double plane[3][3] = {};
    for (std::size_t j = 0; j < sizes[1]; ++j) {
      double line[3] = {};
      for (std::size_t k = 0; k < sizes[2]; ++k, ++coefficient) {
        line[0] += *coefficient * at[2].values[k];
        line[1] += *coefficient * at[2].first[k];
        line[2] += *coefficient * at[2].second[k];
      }
      for (std::size_t t = 0; t < 3; ++t) {
        plane[0][t] += at[1].values[j] * line[t];
        plane[1][t] += at[1].first[j] * line[t];
        plane[2][t] += at[1].second[j] * line[t];
      }
    }
    for (std::size_t s = 0; s < 3; ++s)
      for (std::size_t t = 0; s + t < 3; ++t) {
        whole[0][s][t] += at[0].values[i] * plane[s][t];
        whole[1][s][t] += at[0].first[i] * plane[s][t];
        whole[2][s][t] += at[0].second[i] * plane[s][t];
      }
  }
  out.value += part.factor * whole[0][0][0];
  const std::size_t all = axes_.size();
  for (std::size_t a = missing; a < most_together; ++a) {
    std::array<std::size_t, most_together> order{};
    order[a] = 1;
    const std::size_t p = part.members[a - missing];
    out.first[p] += part.factor * whole[order[0]][order[1]][order[2]];
    for (std::size_t b = missing; b < most_together; ++b) {
      ++order[b];
      out.second[p * all + part.members[b - missing]] +=
          part.factor * whole[order[0]][order[1]][order[2]];
      --order[b];
    }
  }
}

bool NormaliserTable::contains(std::span<const double> point) const {
  for (std::size_t a = 0; a < axes_.size(); ++a)
    if (!(point[a] >= axes_[a].low && point[a] <= axes_[a].high)) return false;
  return true;
}

void NormaliserTable::evaluate(std::span<const double> point, LogNormaliser& out) const {
  out.value = constant_;
  out.first.assign(axes_.size(), 0.0);
  out.second.assign(axes_.size() * axes_.size(), 0.0);
  for (const auto& part : parts_) add(part, point, out);
}

/// The degree that a parameter needs alone, with the others at their anchors: checked between the
/// nodes.
std::size_t NormaliserTable::degree_of(std::size_t axis, const Function& of, double aim) const {
  constexpr std::array inner{0.03, 0.2, 0.41, 0.66, 0.9};
  const auto& edges = edges_[axis];
  const std::size_t cells = edges.size() - 1;
  Matrix between(cells * inner.size(), axes_.size());
  for (std::size_t row = 0; row < between.rows(); ++row) {
    for (std::size_t a = 0; a < axes_.size(); ++a) between(row, a) = axes_[a].anchor;
    const double low = edges[row / inner.size()], high = edges[row / inner.size() + 1];
    between(row, axis) = low + (high - low) * inner[row % inner.size()];
  }
  const auto exact = of(between);
  for (std::size_t degree = least_degree;; degree += 2) {
    Part alone{1.0, {axis}, {degree}, {cells}, {}};
    fill(alone, of);
    if (degree + 2 > most_degree || largest_difference({alone}, 0.0, between, exact) <= aim)
      return degree;
  }
}

double NormaliserTable::largest_difference(const std::vector<Part>& parts, double constant,
                                           const Matrix& points,
                                           const std::vector<double>& exact) const {
  LogNormaliser found;
  double worst = 0.0;
  for (std::size_t row = 0; row < points.rows(); ++row) {
    found.value = constant;
    found.first.assign(axes_.size(), 0.0);
    found.second.assign(axes_.size() * axes_.size(), 0.0);
    for (const auto& part : parts) add(part, points.row(row), found);
    const double difference = std::abs(found.value - exact[row]);
    worst = difference <= worst ? worst : difference;  // not a number where that is one
  }
  return worst;
}

/// The parts, not yet filled, in which up to `together` of the parameters act together; returns how
/// many nodes they have.
std::size_t NormaliserTable::lay_out(std::size_t together, const std::vector<std::size_t>& degrees,
                                     double at_anchor) {
  const std::size_t n = axes_.size();
  std::size_t nodes = 0;
  double rest = 1.0;
  parts_.clear();
  for (std::size_t size = 1; size <= together; ++size) {
    // How often what `size` of them do is in the sum: of all n, once, and nothing else.
    double factor = size == n ? 1.0 : 0.0;
    if (n > together)
      factor = ((together - size) % 2 == 0 ? 1.0 : -1.0) * binomial(n - size - 1, together - size);
    if (factor == 0.0) continue;
    for (auto& members : subsets(n, size)) {
      Part part{factor, std::move(members), {}, {}, {}};
      std::size_t own = 1;
      for (const std::size_t m : part.members) {
        part.degrees.push_back(degrees[m]);
        part.cells.push_back(edges_[m].size() - 1);
        own *= part.cells.back() * (degrees[m] + 1);
      }
      nodes += own;
      rest -= factor;
      parts_.push_back(std::move(part));
    }
  }
  constant_ = rest * at_anchor;
  return nodes;
}

std::optional<NormaliserTable> NormaliserTable::make(const std::vector<Axis>& axes,
                                                     const Function& of, const Config& config) {
  NormaliserTable out;
  const std::size_t n = axes.size();
  out.axes_ = axes;
  for (const auto& axis : axes) {
    auto& edges = out.edges_.emplace_back(1, axis.low);
    for (const double at : axis.breaks)
      if (at > axis.low && at < axis.high) edges.push_back(at);
    edges.push_back(axis.high);
  }
  std::size_t asked = 0;
  const Function counted = [&](const Matrix& points) {
    asked += points.rows();
    return of(points);
  };
  std::vector<std::size_t> alone;
  for (std::size_t a = 0; a < n; ++a) alone.push_back(out.degree_of(a, counted, 0.1 * config.aim));
  const auto points = check_points(axes);
  const auto exact = counted(points);
  Matrix anchor(1, n);
  for (std::size_t a = 0; a < n; ++a) anchor(0, a) = axes[a].anchor;
  const double at_anchor = counted(anchor)[0];

  std::optional<NormaliserTable> best;
  const std::size_t most = std::min(n, most_together), least = n > most ? 2 : n;
  for (std::size_t together = least; together <= most; ++together)
    for (std::size_t raised = 0; raised <= 2 * degree_step; raised += degree_step) {
      auto degrees = alone;
      for (auto& degree : degrees) degree = std::min(degree + raised, most_degree);
      if (asked + out.lay_out(together, degrees, at_anchor) > config.points) break;
      for (auto& part : out.parts_) out.fill(part, counted);
      out.error_ = out.largest_difference(out.parts_, out.constant_, points, exact);
      if (out.error_ <= config.allowed && (!best || out.error_ < best->error_)) best = out;
      if (out.error_ <= config.aim) return best;
    }
  return best;
}

}  // namespace neyman::detail
