#include "neyman/distributed/ordered_sum.hpp"

#include <algorithm>
#include <cstring>

namespace neyman {

namespace {

/// The i-th number of bytes that hold floats.
float number(const char* bytes, std::size_t i) {
  float out;
  std::memcpy(&out, bytes + i * sizeof out, sizeof out);
  return out;
}

template <class T>
void append(std::string& bytes, const T* values, std::size_t count) {
  bytes.append(reinterpret_cast<const char*>(values), count * sizeof(T));
}

}  // namespace

OrderedSum::OrderedSum(Communicator& ranks, std::size_t values)
    : ranks_(ranks), values_(values), to_(ranks.size()), from_(ranks.size()) {}

void OrderedSum::operator()(const std::function<const float*(std::size_t)>& block,
                            std::span<double> notes, float* total) {
  const std::size_t count = notes.size(), size = ranks_.size(), me = ranks_.rank();
  const std::size_t mine = length(me);
  // To each rank its part of my blocks, then the notes.
  for (std::size_t r = 0; r < size; ++r) {
    to_[r].clear();
    for (std::size_t b = me; b < count; b += size) append(to_[r], block(b) + begin(r), length(r));
    for (std::size_t b = me; b < count; b += size) append(to_[r], &notes[b], 1);
    const std::size_t blocks = (count + size - 1 - r) / size;
    from_[r].resize(blocks * (mine * sizeof(float) + sizeof(double)));
  }
  ranks_.exchange(to_, from_);

  std::vector<float> sums(mine);
  for (std::size_t b = 0; b < count; ++b) {
    const auto& bytes = from_[b % size];
    const char* part = bytes.data() + b / size * mine * sizeof(float);
    const std::size_t blocks = (count + size - 1 - b % size) / size;
    std::memcpy(&notes[b], bytes.data() + blocks * mine * sizeof(float) + b / size * sizeof(double),
                sizeof(double));
    for (std::size_t i = 0; i < mine; ++i)
      sums[i] = b == 0 ? number(part, i) : sums[i] + number(part, i);
  }

  for (std::size_t r = 0; r < size; ++r) {
    to_[r].clear();
    append(to_[r], sums.data(), mine);
    from_[r].resize(length(r) * sizeof(float));
  }
  ranks_.exchange(to_, from_);
  for (std::size_t r = 0; r < size; ++r)
    std::memcpy(total + begin(r), from_[r].data(), from_[r].size());
}

}  // namespace neyman
