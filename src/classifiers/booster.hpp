#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

// XGBoost's C API with owners for its handles and its errors as exceptions. Nothing else
// includes xgboost/c_api.h.
namespace neyman::detail {

/// Rows of bin codes, in XGBoost's own form.
class BoosterData {
 public:
  /// @param codes row-major, columns × rows values without NaN.
  /// @param threads how many XGBoost may use on them.
  BoosterData(std::span<const float> codes, std::size_t columns, std::size_t threads);
  ~BoosterData();
  BoosterData(const BoosterData&) = delete;
  BoosterData& operator=(const BoosterData&) = delete;
  std::size_t rows() const { return rows_; }
  std::size_t threads() const { return threads_; }
  void* handle() const { return handle_; }

 private:
  void* handle_ = nullptr;
  std::size_t rows_, threads_;
};

/// First and second derivative of the loss with respect to the margin, one a row.
struct Derivatives {
  std::vector<float> first, second;

  explicit Derivatives(std::size_t rows) : first(rows), second(rows) {}
};

/// Rounds a derivative to a multiple of 2⁻²⁴ of the largest weight. XGBoost adds them up as
/// doubles in an order that depends on its threads; sums of such multiples are exact (for fewer
/// than 2²⁹ rows), so the trees are the same bits for any number of threads.
class DerivativeGrid {
 public:
  explicit DerivativeGrid(double largest);
  float operator()(double derivative) const;

 private:
  double unit_;
};

/// A sum of trees.
class Booster {
 public:
  using Options = std::vector<std::pair<std::string, std::string>>;

  /// A sum without trees. `cached` are the data for which `margins` keeps up with new trees.
  Booster(const Options& options, std::span<BoosterData* const> cached);
  /// Restores `bytes()`.
  explicit Booster(const std::vector<std::uint8_t>& bytes);
  ~Booster();
  Booster(Booster&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Booster& operator=(Booster&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }

  /// Adds a tree that lowers the loss with these derivatives; `seed` chooses its features.
  void grow(const BoosterData& data, Derivatives& derivatives, std::uint64_t seed);
  /// Σ of the trees for each row of the data, valid until the next call from this thread.
  std::span<const float> margins(const BoosterData& data) const;
  /// Ends the training: from here on `margins` of bin codes may be called from several threads.
  void freeze(std::size_t columns);
  /// The same for rows of bin codes, on the calling thread.
  std::vector<float> margins(std::span<const float> codes, std::size_t columns) const;
  /// The first trees alone.
  Booster first(std::size_t trees) const;
  std::size_t trees() const;
  std::vector<std::uint8_t> bytes() const;

  struct Node {
    bool leaf = true;
    std::size_t column = 0;
    float threshold = 0.0F;       ///< codes[column] < threshold: go to `yes`, else to `no`
    std::size_t yes = 0, no = 0;  ///< nodes of the same tree
    float value = 0.0F;           ///< of a leaf
  };
  /// Every tree, its root first.
  std::vector<std::vector<Node>> nodes() const;

 private:
  explicit Booster(void* handle) : handle_(handle) {}
  void set(const std::string& name, const std::string& value);

  void* handle_ = nullptr;
};

}  // namespace neyman::detail
