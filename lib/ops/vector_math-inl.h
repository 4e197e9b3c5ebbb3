// Vector exponentials (Highway, compiled once a target): range reduction by Cody & Waite (1980), x = n ln 2 + r with
// |r| <= ln 2 / 2, and a minimax polynomial of e^r fitted for this file. Included from inside foreach_target files,
// after hwy/highway.h; the functions lie in lra::HWY_NAMESPACE. Errors are those tests/lib/ops/vector_math_test.cpp
// measures.
#if defined(LRA_OPS_VECTOR_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LRA_OPS_VECTOR_MATH_INL_H_
#undef LRA_OPS_VECTOR_MATH_INL_H_
#else
#define LRA_OPS_VECTOR_MATH_INL_H_
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace lra {
namespace HWY_NAMESPACE {

// Below this argument both exponentials are 0; e^-86.9 = 1.82e-38 lies just above the smallest normal number, so that
// slow denormal numbers never come up.
constexpr float kExpUnderflow = -86.9f;

// e^x for any x, at most 1.5 ulp off (1.1 measured); exactly 1 at 0, 0 below kExpUnderflow, infinity above 88.7228,
// NaN of NaN.
template <class D, class V = hwy::HWY_NAMESPACE::VFromD<D>>
HWY_INLINE V vector_exp(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::RebindToSigned<D> di;
  // Adding 1.5 * 2^23 rounds to an integer that then stands in the low bits; the 126 is the exponent's bias, less one
  // so that n = 128 still has a power of two: the result is doubled at the end.
  const V magic = hn::Set(d, 12582912.0f + 126.0f);
  const V shifted = hn::Min(hn::MulAdd(x, hn::Set(d, 1.44269504f), magic), hn::Set(d, 12582912.0f + 126.0f + 128.0f));
  const V n = hn::Sub(shifted, magic);
  V r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), x);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), r);
  V p = hn::MulAdd(r, hn::Set(d, 1.3814539415819167e-3f), hn::Set(d, 8.36874544620514e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 4.166838899254799e-2f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.1666652113199234f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.4999999403953552f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
  const V half_power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, shifted)));  // 2^(n-1)
  const V y = hn::Mul(hn::Add(p, p), half_power);
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, kExpUnderflow)), y);
}

// e^x for x <= 0 (a little above 0 is harmless), about a third cheaper: relative error below 2e-7 + 2e-8 |x| (without
// fused multiply-add 2e-7 + 8e-8 |x|); exactly 1 at 0, 0 below kExpUnderflow and at -infinity, NaN of NaN. For softmax.
template <class D, class V = hwy::HWY_NAMESPACE::VFromD<D>>
HWY_INLINE V vector_exp_negative(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::RebindToSigned<D> di;
  const V log2_e = hn::Set(d, 1.44269504f);
  const V magic = hn::Set(d, 12582912.0f + 127.0f);
  const V shifted = hn::MulAdd(x, log2_e, magic);
  const V n = hn::Sub(shifted, magic);
  const V f = hn::MulSub(x, log2_e, n);  // 2^f from here on, |f| <= 1/2
  V p = hn::MulAdd(f, hn::Set(d, 1.3264591107144952e-3f), hn::Set(d, 9.671619161963463e-3f));
  p = hn::MulAdd(p, f, hn::Set(d, 5.55073507130146e-2f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.24022240936756134f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.6931470036506653f));
  p = hn::MulAdd(p, f, hn::Set(d, 1.0f));
  const V power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, shifted)));  // 2^n
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, kExpUnderflow)), hn::Mul(p, power));
}

}  // namespace HWY_NAMESPACE
}  // namespace lra
HWY_AFTER_NAMESPACE();

#endif  // LRA_OPS_VECTOR_MATH_INL_H_
