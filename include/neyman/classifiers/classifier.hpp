#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "neyman/core/archive.hpp"
#include "neyman/core/matrix.hpp"
#include "neyman/core/progress.hpp"
#include "neyman/core/scales.hpp"
#include "neyman/core/settings.hpp"

namespace neyman {

class Communicator;

/// What a classifier learns from: rows of features, which side each belongs to, and weights.
/// The two sides are given equal total weight by `fit`, whatever their sizes and weights.
struct TrainingSet {
  MatrixView x;
  std::span<const std::uint8_t> denominator;  ///< y: 0 numerator, 1 denominator
  std::span<const double> weights = {};       ///< one a row, or empty: all 1
  std::uint64_t seed = 0;
  Progress* progress = nullptr;  ///< told of the share that is done and of the loss; or nobody is
  /// Ranks that train one classifier together, each with the same set; null: this process alone.
  Communicator* ranks = nullptr;

  std::size_t size() const { return x.rows(); }
};

/// The same, with memory of its own.
struct TrainingRows {
  Matrix x;
  std::vector<std::uint8_t> denominator;
  std::vector<double> weights = {};
  std::vector<std::int64_t> groups = {};  ///< one a row, or empty; rows of a stream have them
};

/// Makes the rows of one epoch: other ones for every number, about as many, the same for the same.
/// Called from several threads at once.
using TrainingEpochs = std::function<TrainingRows(std::size_t epoch)>;

/// Rows that are learned from as they are read, because they are more than memory holds.
struct TrainingStream {
  std::size_t rows = 0;     ///< about how many there are
  std::size_t windows = 1;  ///< of an epoch: together they hold every row once
  /// The rows of a window, with groups; about as many in each, the same for the same numbers.
  /// Called from several threads at once.
  std::function<TrainingRows(std::size_t epoch, std::size_t window)> read = {};
  std::uint64_t seed = 0;
  Progress* progress = nullptr;
  Communicator* ranks = nullptr;  ///< as in TrainingSet

  /// How many windows rows are cut into: each has about four million numbers.
  static std::size_t windows_for(std::size_t rows, std::size_t columns) {
    constexpr std::size_t numbers = std::size_t{1} << 22;
    return std::max<std::size_t>(1, (rows * columns + numbers - 1) / numbers);
  }
};

/// Learns to tell numerator from denominator; its score reduces x to one number.
///
/// With balanced sides the best score is s* = p1 / (p0 + p1) (denominator over both), and
/// log r = −logit(s*). Everything leaves as logits, never as saturated probabilities.
class Classifier {
 public:
  virtual ~Classifier() = default;

  /// The name in the room's list and in a study: "mlp", "boosted-trees", …
  virtual std::string kind() const = 0;
  /// An unfitted copy with the same configuration.
  virtual std::unique_ptr<Classifier> fresh() const = 0;

  /// @throw ArgumentError on NaN, sizes that disagree, negative weights or an empty side.
  virtual void fit(const TrainingSet& data) = 0;
  /// Trains on rows that are made anew for every epoch, so that none is seen twice. Kinds that do
  /// not learn by epochs train on those of epoch 0.
  /// @throw ArgumentError as `fit`.
  virtual void fit_epochs(const TrainingEpochs& epochs, std::uint64_t seed,
                          Progress* progress = nullptr);
  /// Whether `fit_stream` is there: kinds that learn by epochs have it.
  virtual bool streams() const { return false; }
  /// Trains on rows that are read window by window, in every epoch anew.
  /// @throw ArgumentError as `fit`, and where the kind does not stream.
  virtual void fit_stream(const TrainingStream& stream);
  /// Into how many parts ranks can cut each step of a training; 1: they cannot train one together.
  virtual std::size_t shares() const { return 1; }
  virtual bool fitted() const = 0;
  virtual std::size_t features() const = 0;

  /// Logit of the score of each row; always finite.
  /// @throw ArgumentError before `fit`, or where x has another number of columns.
  virtual Logits logits(MatrixView x) const = 0;

  /// ∂z/∂x, one row an event; only where `differentiable()`.
  virtual bool differentiable() const { return false; }
  virtual Matrix gradient(MatrixView x) const;

  /// The fitted state and the configuration; `load_classifier` restores it exactly.
  virtual void save(Archive& archive) const = 0;
  virtual void load(const Archive& archive) = 0;
};

/// A classifier that the calling program made, as the value of a table's key `object`: `kind` and
/// `fingerprint` (a text that is another one where the classifier is) may stand beside it.
struct ClassifierObject final : SettingObject {
  explicit ClassifierObject(std::shared_ptr<const Classifier> made) : classifier(std::move(made)) {}
  std::shared_ptr<const Classifier> classifier;
};

/// Makes an unfitted classifier from `kind = "…"` and its options in a study's table.
std::unique_ptr<Classifier> make_classifier(Settings settings);
std::unique_ptr<Classifier> make_classifier(const std::string& kind);
/// Restores what `save` wrote; the archive names the kind.
std::unique_ptr<Classifier> load_classifier(const Archive& archive);
/// @throw ArgumentError before `fit`.
void save_classifier(const Classifier& classifier, Archive& archive);
std::vector<std::string> classifier_kinds();

namespace detail {
/// Tells how far a training is, as a share, and its figure of merit.
inline void tell(Progress* progress, double share, const char* merit, double value) {
  if (progress == nullptr) return;
  progress->merit(merit, value);
  progress->reach(share);
}
/// Checks sizes, values and weights of a training set, not that both sides have rows.
void check_rows(const char* function, const TrainingSet& data);
/// @throw ArgumentError unless each side has weight.
void check_sides(const char* function, const double (&weight)[2]);
/// Checks a training set and returns weights with a sum of n/2 on each side.
std::vector<double> balanced_weights(const char* function, const TrainingSet& data);
/// What every `logits` asks of its input: a fitted classifier, its number of columns, finite
/// values (the message names row and column).
void check_input(const char* function, const Classifier& classifier, MatrixView x);
}  // namespace detail

}  // namespace neyman
