// Linear layers: products by lib/ops/matmul.h, sums of the bias gradient in vectors.
#include "lib/ops/linear.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/ops/linear_cpu.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// The order matters: these are read once a target.
#include "hwy/highway.h"
#include "lib/ops/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lra {
namespace HWY_NAMESPACE {
namespace {

void add_bias_gradient(ConstMatrix dy, float* d_bias) {
  namespace hn = hwy::HWY_NAMESPACE;
  add_column_sums(dy.rows, dy.cols, d_bias,
                  [&](auto d, int64_t row, int64_t column) HWY_ATTR { return hn::LoadU(d, dy.row(row) + column); });
}

void fill_rows(const float* bias, Matrix y) {
  namespace hn = hwy::HWY_NAMESPACE;
  for (int64_t row = 0; row < y.rows; ++row) {
    float* HWY_RESTRICT to = y.row(row);
    for_each_lanes(y.cols, [&](auto d, int64_t i) HWY_ATTR { hn::StoreU(hn::LoadU(d, bias + i), d, to + i); });
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lra {

HWY_EXPORT(add_bias_gradient);
HWY_EXPORT(fill_rows);

// Adding to rows that hold the bias costs less than a second pass over the result.
void linear_forward(ConstMatrix x, ConstMatrix weight, const float* bias, Matrix y) {
  if (bias != nullptr) HWY_DYNAMIC_DISPATCH(fill_rows)(bias, y);
  matmul(x, Transpose::kNo, weight, Transpose::kYes, y, bias == nullptr ? Write::kOver : Write::kAdd);
}

void linear_backward(ConstMatrix x, ConstMatrix weight, ConstMatrix dy, Matrix dx, Matrix d_weight, float* d_bias,
                     Write dx_write) {
  if (!dx.empty()) matmul(dy, Transpose::kNo, weight, Transpose::kNo, dx, dx_write);
  matmul(dy, Transpose::kYes, x, Transpose::kNo, d_weight, Write::kAdd);
  if (d_bias != nullptr) add_bias_gradient(dy, d_bias);
}

void add_bias_gradient(ConstMatrix dy, float* d_bias) { HWY_DYNAMIC_DISPATCH(add_bias_gradient)(dy, d_bias); }

}  // namespace lra
#endif  // HWY_ONCE
