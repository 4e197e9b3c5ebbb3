#include "lib/attention/iterative_inverse.h"

#include <algorithm>

#include "lib/attention/row_kernels.h"
#include "lib/ops/matmul.h"

namespace lra {
namespace {

// c = diagonal I - a b
void bracket(float diagonal, ConstMatrix a, ConstMatrix b, Matrix c) {
  matmul(a, Transpose::kNo, b, Transpose::kNo, c, Write::kOver, -1.0f);
  for (int64_t i = 0; i < c.rows; ++i) c.row(i)[i] += diagonal;
}

}  // namespace

IterativeInverse::IterativeInverse(ConstMatrix m, Arena& arena)
    : m_(m),
      x_(square(arena)),
      b1_(square(arena)),
      b2_(square(arena)),
      b3_(square(arena)),
      column_sums_(arena.floats(m.rows)) {
  std::fill_n(column_sums_, m.rows, 0.0f);
  for (int64_t i = 0; i < m.rows; ++i) {
    for (int64_t j = 0; j < m.rows; ++j) column_sums_[j] += m.row(i)[j];
  }
  largest_ = *std::max_element(column_sums_, column_sums_ + m.rows);
  for (Matrix& z : z_) z = square(arena);
  for (int64_t i = 0; i < m.rows; ++i) {
    for (int64_t j = 0; j < m.rows; ++j) z_[0].row(j)[i] = m.row(i)[j] / largest_;
  }
  for (int step = 0; step < kSteps; ++step) {
    brackets_of(step);
    matmul(z_[step], Transpose::kNo, b3_, Transpose::kNo, z_[step + 1], Write::kOver, 0.25f);
  }
}

void IterativeInverse::brackets_of(int step) const {
  matmul(m_, Transpose::kNo, z_[step], Transpose::kNo, x_, Write::kOver);
  for (int64_t i = 0; i < m_.rows; ++i) {
    for (int64_t j = 0; j < m_.rows; ++j) b1_.row(i)[j] = (i == j ? 7.0f : 0.0f) - x_.row(i)[j];
  }
  bracket(15.0f, x_, b1_, b2_);
  bracket(13.0f, x_, b2_, b3_);
}

void IterativeInverse::backward(Matrix dz, Matrix dm, Arena& arena) const {
  const Arena::Scope scope(arena);
  const Matrix dx = square(arena), d_b3 = square(arena), d_b2 = square(arena), dz_before = square(arena);
  for (int step = kSteps - 1; step >= 0; --step) {
    brackets_of(step);
    const ConstMatrix z = z_[step];
    matmul(z, Transpose::kYes, dz, Transpose::kNo, d_b3, Write::kOver, 0.25f);
    matmul(d_b3, Transpose::kNo, b2_, Transpose::kYes, dx, Write::kOver, -1.0f);
    matmul(x_, Transpose::kYes, d_b3, Transpose::kNo, d_b2, Write::kOver, -1.0f);
    matmul(d_b2, Transpose::kNo, b1_, Transpose::kYes, dx, Write::kAdd, -1.0f);
    matmul(x_, Transpose::kYes, d_b2, Transpose::kNo, dx, Write::kAdd);  // through 7 I - x, as -(-x^T d_b2)
    matmul(dz, Transpose::kNo, b3_, Transpose::kYes, dz_before, Write::kOver, 0.25f);
    matmul(m_, Transpose::kYes, dx, Transpose::kNo, dz_before, Write::kAdd);
    matmul(dx, Transpose::kNo, z, Transpose::kYes, dm, Write::kAdd);
    scale_rows(1.0f, nullptr, 0, dz_before, dz);
  }
  // The first Z is M^T / largest; columns that share the largest sum share its gradient.
  double along = 0.0;
  for (int64_t i = 0; i < m_.rows; ++i) {
    for (int64_t j = 0; j < m_.rows; ++j) along += static_cast<double>(dz.row(i)[j]) * z_[0].row(i)[j];
  }
  const auto sharing = static_cast<double>(std::count(column_sums_, column_sums_ + m_.rows, largest_));
  const auto of_largest = static_cast<float>(-along / largest_ / sharing);
  for (int64_t i = 0; i < m_.rows; ++i) {
    for (int64_t j = 0; j < m_.rows; ++j) {
      dm.row(i)[j] += dz.row(j)[i] / largest_ + (column_sums_[j] == largest_ ? of_largest : 0.0f);
    }
  }
}

}  // namespace lra
