// Poolings in vectors.
#include "lib/ops/pooling.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/ops/pooling_cpu.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// The order matters: these are read once a target.
#include "hwy/highway.h"
#include "lib/ops/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lra {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

void sum_forward(ConstMatrix x, float divisor, float* y) {
  for (int64_t i = 0; i < x.cols; ++i) y[i] = 0.0f;
  add_column_sums(x.rows, x.cols, y,
                  [&](auto d, int64_t row, int64_t column) HWY_ATTR { return hn::LoadU(d, x.row(row) + column); });
  for_each_lanes(x.cols, [&](auto d, int64_t i)
                             HWY_ATTR { hn::StoreU(hn::Div(hn::LoadU(d, y + i), hn::Set(d, divisor)), d, y + i); });
}

void sum_backward(const float* dy, float divisor, Matrix dx) {
  for (int64_t row = 0; row < dx.rows; ++row) {
    float* HWY_RESTRICT to = dx.row(row);
    for_each_lanes(dx.cols, [&](auto d, int64_t i) HWY_ATTR {
      hn::StoreU(hn::Div(hn::LoadU(d, dy + i), hn::Set(d, divisor)), d, to + i);
    });
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>

namespace lra {

HWY_EXPORT(sum_forward);
HWY_EXPORT(sum_backward);

void sum_pool_forward(ConstMatrix x, float divisor, float* y) { HWY_DYNAMIC_DISPATCH(sum_forward)(x, divisor, y); }
void sum_pool_backward(const float* dy, float divisor, Matrix dx) {
  HWY_DYNAMIC_DISPATCH(sum_backward)(dy, divisor, dx);
}

void first_pool_forward(ConstMatrix x, float* y) {
  if (x.rows == 0) {
    std::fill(y, y + x.cols, 0.0f);
  } else {
    std::copy(x.row(0), x.row(0) + x.cols, y);
  }
}

void first_pool_backward(const float* dy, Matrix dx) {
  for (int64_t row = 0; row < dx.rows; ++row) {
    if (row == 0) {
      std::copy(dy, dy + dx.cols, dx.row(row));
    } else {
      std::fill(dx.row(row), dx.row(row) + dx.cols, 0.0f);
    }
  }
}

}  // namespace lra
#endif  // HWY_ONCE
