#include "lib/attention/row_kernels.h"

#include <algorithm>

#include "lib/util/check.h"
#include "lib/util/phases.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/attention/row_kernels.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h stands first.
#include <hwy/highway.h>

#include "lib/attention/row_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lra {
namespace HWY_NAMESPACE {

void scale_rows(float factor, const float* factors, int64_t step, ConstMatrix x, Matrix y) {
  for (int64_t i = 0; i < x.rows; ++i) {
    const RowVector f = hn::Set(RowTag(), factors == nullptr ? factor : factor * factors[i * step]);
    const float* from = x.row(i);
    float* to = y.row(i);
    for_each_vector(x.cols, [&](auto access, int64_t j)
                                HWY_ATTR { access.store(hn::Mul(f, access.load(from + j, 0.0f)), to + j); });
    for (int64_t j = x.cols; j < y.cols; ++j) to[j] = 0.0f;
  }
}

void add_rows(int64_t n, const float* x, float* y) {
  for_each_vector(n, [&](auto access, int64_t j) HWY_ATTR {
    access.store(hn::Add(access.load(y + j, 0.0f), access.load(x + j, 0.0f)), y + j);
  });
}

void dot_rows(ConstMatrix x, ConstMatrix y, float* dots) {
  for (int64_t i = 0; i < x.rows; ++i) {
    const float* a = x.row(i);
    const float* b = y.row(i);
    RowVector sum = hn::Zero(RowTag());
    for_each_vector(x.cols, [&](auto access, int64_t j) HWY_ATTR {
      sum = hn::MulAdd(access.load(a + j, 0.0f), access.load(b + j, 0.0f), sum);
    });
    dots[i] = hn::GetLane(hn::SumOfLanes(RowTag(), sum));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace lra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lra {

HWY_EXPORT(scale_rows);
HWY_EXPORT(add_rows);
HWY_EXPORT(dot_rows);

void scale_rows(float factor, const float* factors, int64_t step, ConstMatrix x, Matrix y) {
  check(x.rows == y.rows && x.cols <= y.cols, "rows ({}, {}) scaled into ({}, {})", x.rows, x.cols, y.rows, y.cols);
  const PhaseScope phase(Phase::kPacking);
  HWY_DYNAMIC_DISPATCH(scale_rows)(factor, factors, step, x, y);
}

void add_rows(ConstMatrix x, Matrix y, Write write) {
  check(x.rows == y.rows && x.cols == y.cols && x.stride == x.cols && y.stride == y.cols,
        "rows ({}, {}) added to ({}, {})", x.rows, x.cols, y.rows, y.cols);
  const PhaseScope phase(Phase::kPacking);
  if (write == Write::kOver) {
    std::copy_n(x.data, x.rows * x.cols, y.data);
  } else {
    HWY_DYNAMIC_DISPATCH(add_rows)(x.rows * x.cols, x.data, y.data);
  }
}

void dot_rows(ConstMatrix x, ConstMatrix y, float* dots) {
  check(x.rows == y.rows && x.cols == y.cols, "dot products of rows ({}, {}) and ({}, {})", x.rows, x.cols, y.rows,
        y.cols);
  const PhaseScope phase(Phase::kPacking);
  HWY_DYNAMIC_DISPATCH(dot_rows)(x, y, dots);
}

}  // namespace lra
#endif
