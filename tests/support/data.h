// Data of tests: numbers that depend on a seed alone, and matrices with gaps between their rows.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "lib/tensor/view.h"
#include "lib/util/rng.h"

namespace lra {

template <class T>
std::vector<T> random_normal(int64_t count, uint64_t seed, double scale = 1.0) {
  Random random(seed, RandomStream::kData);
  std::vector<T> x(static_cast<size_t>(count));
  // Rounded to float, so that float and double data of a seed are the same numbers.
  for (T& value : x) value = static_cast<T>(static_cast<float>(scale * random.normal()));
  return x;
}

inline std::vector<double> to_double(const std::vector<float>& x) { return {x.begin(), x.end()}; }

// A matrix whose rows lie `gap` elements apart. Gaps, and 64 elements before and after, hold NaN: an op that reads them
// spoils its result, one that writes them is found by intact().
template <class T>
class GappedMatrix {
 public:
  GappedMatrix(int64_t rows, int64_t cols, int64_t gap)
      : rows_(rows),
        cols_(cols),
        stride_(cols + gap),
        data_(rows * stride_ + 2 * kMargin, std::numeric_limits<T>::quiet_NaN()) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < cols; ++j) view().row(i)[j] = T(0);
    }
  }
  GappedMatrix(int64_t rows, int64_t cols, int64_t gap, uint64_t seed, double scale = 1.0)
      : GappedMatrix(rows, cols, gap) {
    set(random_normal<T>(rows * cols, seed, scale));
  }

  MatrixView<T> view() { return {data_.data() + kMargin, rows_, cols_, stride_}; }
  MatrixView<const T> view() const { return {data_.data() + kMargin, rows_, cols_, stride_}; }
  MatrixView<const T> read() const { return view(); }

  std::vector<T> values() const {
    std::vector<T> out;
    for (int64_t i = 0; i < rows_; ++i) out.insert(out.end(), view().row(i), view().row(i) + cols_);
    return out;
  }
  template <class U>
  void set(const std::vector<U>& values) {
    for (int64_t i = 0; i < rows_ * cols_; ++i) view().row(i / cols_)[i % cols_] = static_cast<T>(values[i]);
  }
  template <class U>
  GappedMatrix<U> as() const {
    GappedMatrix<U> out(rows_, cols_, stride_ - cols_);
    out.set(values());
    return out;
  }
  bool intact() const {
    for (int64_t i = 0; i < static_cast<int64_t>(data_.size()); ++i) {
      const int64_t at = i - kMargin;
      const bool inside = at >= 0 && at < rows_ * stride_ && at % stride_ < cols_;
      if (!inside && !std::isnan(data_[i])) return false;
    }
    return true;
  }

 private:
  static constexpr int64_t kMargin = 64;
  int64_t rows_, cols_, stride_;
  std::vector<T> data_;
};

}  // namespace lra
