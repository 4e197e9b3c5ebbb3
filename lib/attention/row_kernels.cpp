#include "lib/attention/row_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/attention/row_kernels.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h stands first.
#include <hwy/highway.h>

#include "lib/attention/row_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lra {
namespace HWY_NAMESPACE {

void mask_row(const uint8_t* bits, int64_t n, float* x) {
  const RowTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t j = 0;
  if (lanes >= 8) {
    for (; j + lanes <= n; j += lanes) {
      const auto mask = hn::LoadMaskBits(d, bits + j / 8);
      hn::StoreU(hn::IfThenElseZero(mask, hn::LoadU(d, x + j)), d, x + j);
    }
  }
  for (; j < n; ++j) {
    if ((bits[j / 8] >> (j % 8) & 1) == 0) x[j] = 0.0f;
  }
}

float dot_row(const float* x, const float* y, int64_t n) {
  RowVector sum = hn::Zero(RowTag());
  for_each_vector(n, [&](auto access, int64_t j)
                         HWY_ATTR { sum = hn::MulAdd(access.load(x + j, 0.0f), access.load(y + j, 0.0f), sum); });
  return hn::GetLane(hn::SumOfLanes(RowTag(), sum));
}

void scale_row(float factor, const float* x, int64_t n, float* y) {
  const RowVector f = hn::Set(RowTag(), factor);
  for_each_vector(n,
                  [&](auto access, int64_t j) HWY_ATTR { access.store(hn::Mul(f, access.load(x + j, 0.0f)), y + j); });
}

}  // namespace HWY_NAMESPACE
}  // namespace lra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lra {

HWY_EXPORT(mask_row);
HWY_EXPORT(dot_row);
HWY_EXPORT(scale_row);

void mask_row(const uint8_t* bits, int64_t n, float* x) { HWY_DYNAMIC_DISPATCH(mask_row)(bits, n, x); }
float dot_row(const float* x, const float* y, int64_t n) { return HWY_DYNAMIC_DISPATCH(dot_row)(x, y, n); }
void scale_row(float factor, const float* x, int64_t n, float* y) { HWY_DYNAMIC_DISPATCH(scale_row)(factor, x, n, y); }

}  // namespace lra
#endif
