// GELU and ReLU in vectors.
//
// Exact GELU is x phi(x), Phi the normal distribution function. (phi(x) - 1/2) / x is a smooth function of x^2, and so
// is (gelu'(x) - 1/2) / x: each is a minimax polynomial fitted for this file (Lawson's iteration on Chebyshev nodes,
// weighted by x), in v = 2 (x / bound)^2 - 1 so that its coefficients stay small. Beyond the bound Phi and gelu' are 0
// or 1. This takes neither an exponential nor a division. As in PyTorch, gelu(-infinity) is NaN (infinity times 0).
#include "lib/ops/activations.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/ops/activations_cpu.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// The order matters: these are read once a target.
#include "hwy/highway.h"
#include "lib/ops/loops-inl.h"
#include "lib/ops/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lra {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// 1/2 + x poly(2 (x / bound)^2 - 1) inside the bound, 0 below and 1 above; NaN stays.
template <class D, class V, size_t kTerms>
HWY_INLINE V step(D d, V x, float bound, const float (&coefficients)[kTerms]) {
  const V v = hn::MulSub(hn::Mul(x, x), hn::Set(d, 2.0f / (bound * bound)), hn::Set(d, 1.0f));
  V p = hn::Set(d, coefficients[kTerms - 1]);
  for (size_t i = kTerms - 1; i-- > 0;) p = hn::MulAdd(p, v, hn::Set(d, coefficients[i]));
  V y = hn::MulAdd(x, p, hn::Set(d, 0.5f));
  y = hn::IfThenElse(hn::Gt(x, hn::Set(d, bound)), hn::Set(d, 1.0f), y);
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -bound)), y);
}

// phi(x): gelu errs by less than 2.1e-7 max(1, |x|).
template <class D, class V>
HWY_INLINE V normal_distribution(D d, V x) {
  static constexpr float kCoefficients[] = {0.13465936481952667f,   -0.06712663918733597f,  0.04964417219161987f,
                                            -0.03976908326148987f,  0.03206014260649681f,   -0.02498944103717804f,
                                            0.018347982317209244f,  -0.012981044128537178f, 0.009018351323902607f,
                                            -0.00506018940359354f,  0.001925269141793251f,  -0.001388391712680459f,
                                            0.0014344564406201243f, -0.0005368764977902174f};
  return step(d, x, 5.25f, kCoefficients);
}

// gelu'(x) = phi(x) + x phi(x), absolute error below 3e-7.
template <class D, class V>
HWY_INLINE V gelu_slope(D d, V x) {
  static constexpr float kCoefficients[] = {0.1252799928188324f,    -0.06359219551086426f,   0.050951484590768814f,
                                            -0.04968829080462456f,  0.05495069548487663f,    -0.06298994272947311f,
                                            0.0702090933918953f,    -0.07345765829086304f,   0.06706766784191132f,
                                            -0.05207914113998413f,  0.044329844415187836f,   -0.04161030799150467f,
                                            0.022243691608309746f,  -0.0019061814527958632f, 0.004394500982016325f,
                                            -0.009370514191687107f, 0.003762891748920083f};
  return step(d, x, 5.65f, kCoefficients);
}

// (1 + tanh s) / 2 = 1 / (1 + e^-2s), s = sqrt(2 / pi) (x + 0.044715 x^3).
constexpr float kTwiceSqrtTwoOverPi = 1.5957691216057308f;
constexpr float kCubic = 0.044715f;

template <class D, class V>
HWY_INLINE V exp_of_minus_twice_s(D d, V x) {
  const V scaled = hn::Mul(x, hn::Set(d, kTwiceSqrtTwoOverPi));
  const V cubic = hn::Mul(hn::Mul(x, x), hn::Set(d, kCubic));
  return vector_exp(d, hn::Neg(hn::MulAdd(scaled, cubic, scaled)));
}

template <class D, class V>
HWY_INLINE V tanh_gate(D d, V x) {
  return hn::Div(hn::Set(d, 1.0f), hn::Add(hn::Set(d, 1.0f), exp_of_minus_twice_s(d, x)));
}

// gate + x gate' with gate' = 2 s' gate (1 - gate) and 1 - gate = gate e^-2s, which does not cancel.
template <class D, class V>
HWY_INLINE V tanh_slope(D d, V x) {
  const V exp = exp_of_minus_twice_s(d, x);
  const V gate = hn::Div(hn::Set(d, 1.0f), hn::Add(hn::Set(d, 1.0f), exp));
  const V square = hn::Mul(x, x);
  const V factor = hn::Set(d, kTwiceSqrtTwoOverPi), three = hn::Set(d, 3.0f * kCubic * kTwiceSqrtTwoOverPi);
  const V gate_slope = hn::Mul(hn::Mul(gate, hn::Mul(gate, exp)), hn::MulAdd(square, three, factor));
  // From 9 on the term is below 1e-26, and its factors soon overflow.
  return hn::Add(gate, hn::IfThenZeroElse(hn::Gt(square, hn::Set(d, 81.0f)), hn::Mul(x, gate_slope)));
}

template <class Function>
HWY_INLINE void map(ConstMatrix x, Matrix y, Function f) {
  for_each_run(x.rows, x.cols, x.stride == x.cols && y.stride == x.cols, [&](int64_t row, int64_t count) HWY_ATTR {
    const float* from = x.row(row);
    float* to = y.row(row);
    for_each_lanes(count, [&](auto d, int64_t i) HWY_ATTR { hn::StoreU(f(d, hn::LoadU(d, from + i)), d, to + i); });
  });
}

// dx = f(x) dy.
template <class Function>
HWY_INLINE void map_gradient(ConstMatrix x, ConstMatrix dy, Matrix dx, Function f) {
  const bool gapless = x.stride == x.cols && dy.stride == x.cols && dx.stride == x.cols;
  for_each_run(x.rows, x.cols, gapless, [&](int64_t row, int64_t count) HWY_ATTR {
    const float* at = x.row(row);
    const float* from = dy.row(row);
    float* to = dx.row(row);
    for_each_lanes(count, [&](auto d, int64_t i)
                              HWY_ATTR { hn::StoreU(f(d, hn::LoadU(d, at + i), hn::LoadU(d, from + i)), d, to + i); });
  });
}

void gelu_forward(Gelu form, ConstMatrix x, Matrix y) {
  if (form == Gelu::kExact) {
    map(x, y, [](auto d, auto v) HWY_ATTR { return hn::Mul(v, normal_distribution(d, v)); });
  } else {
    map(x, y, [](auto d, auto v) HWY_ATTR { return hn::Mul(v, tanh_gate(d, v)); });
  }
}

void gelu_backward(Gelu form, ConstMatrix x, ConstMatrix dy, Matrix dx) {
  if (form == Gelu::kExact) {
    map_gradient(x, dy, dx, [](auto d, auto v, auto g) HWY_ATTR { return hn::Mul(g, gelu_slope(d, v)); });
  } else {
    map_gradient(x, dy, dx, [](auto d, auto v, auto g) HWY_ATTR { return hn::Mul(g, tanh_slope(d, v)); });
  }
}

// Written so that a NaN, which compares as false, passes.
void relu_forward(ConstMatrix x, Matrix y) {
  map(x, y, [](auto d, auto v) HWY_ATTR { return hn::IfThenZeroElse(hn::Le(v, hn::Zero(d)), v); });
}

void relu_backward(ConstMatrix x, ConstMatrix dy, Matrix dx) {
  map_gradient(x, dy, dx,
               [](auto d, auto v, auto g) HWY_ATTR { return hn::IfThenZeroElse(hn::Le(v, hn::Zero(d)), g); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lra {

HWY_EXPORT(gelu_forward);
HWY_EXPORT(gelu_backward);
HWY_EXPORT(relu_forward);
HWY_EXPORT(relu_backward);

void gelu_forward(Gelu form, ConstMatrix x, Matrix y) { HWY_DYNAMIC_DISPATCH(gelu_forward)(form, x, y); }
void gelu_backward(Gelu form, ConstMatrix x, ConstMatrix dy, Matrix dx) {
  HWY_DYNAMIC_DISPATCH(gelu_backward)(form, x, dy, dx);
}
void relu_forward(ConstMatrix x, Matrix y) { HWY_DYNAMIC_DISPATCH(relu_forward)(x, y); }
void relu_backward(ConstMatrix x, ConstMatrix dy, Matrix dx) { HWY_DYNAMIC_DISPATCH(relu_backward)(x, dy, dx); }

}  // namespace lra
#endif  // HWY_ONCE
