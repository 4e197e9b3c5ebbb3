#include "lib/attention/feature_rows.h"

#include <cmath>

#include "lib/util/phases.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/attention/feature_rows.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h stands first.
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "lib/attention/row_loops-inl.h"
#include "lib/ops/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lra {
namespace HWY_NAMESPACE {

void exp_rows(const ExpRows& form, ConstMatrix x, Matrix y) {
  const RowTag d;
  const RowVector scale = hn::Set(d, form.scale), offset = hn::Set(d, form.offset), factor = hn::Set(d, form.factor);
  for (int64_t i = 0; i < x.rows; ++i) {
    const RowVector shift = hn::Set(d, form.shifts == nullptr ? 0.0f : form.shifts[i * form.step]);
    const float* from = x.row(i);
    float* to = y.row(i);
    for_each_vector(x.cols, [&](auto access, int64_t j) HWY_ATTR {
      const RowVector e = vector_exp(d, hn::MulSub(scale, access.load(from + j, 0.0f), shift));
      access.store(hn::Mul(factor, hn::Add(e, offset)), to + j);
    });
  }
}

void wave_rows(float factor, ConstMatrix x, Matrix sines, Matrix cosines) {
  const RowTag d;
  const RowVector f = hn::Set(d, factor);
  for (int64_t i = 0; i < x.rows; ++i) {
    const float* from = x.row(i);
    float *sine = sines.row(i), *cosine = cosines.row(i);
    for_each_vector(x.cols, [&](auto access, int64_t j) HWY_ATTR {
      const RowVector value = access.load(from + j, 0.0f);
      access.store(hn::Mul(f, hn::Sin(d, value)), sine + j);
      access.store(hn::Mul(f, hn::Cos(d, value)), cosine + j);
    });
  }
}

void elu_rows(ConstMatrix x, Matrix y) {
  const RowTag d;
  const RowVector one = hn::Set(d, 1.0f), zero = hn::Zero(d);
  for (int64_t i = 0; i < x.rows; ++i) {
    const float* from = x.row(i);
    float* to = y.row(i);
    for_each_vector(x.cols, [&](auto access, int64_t j) HWY_ATTR {
      const RowVector value = access.load(from + j, 0.0f);
      const RowVector e = vector_exp(d, hn::Min(value, zero));
      access.store(hn::IfThenElse(hn::Gt(value, zero), hn::Add(value, one), e), to + j);
    });
  }
}

void max_rows(ConstMatrix x, float* maxima) {
  const RowTag d;
  for (int64_t i = 0; i < x.rows; ++i) {
    const float* row = x.row(i);
    RowVector top = hn::Set(d, -INFINITY);
    for_each_vector(x.cols,
                    [&](auto access, int64_t j) HWY_ATTR { top = hn::Max(top, access.load(row + j, -INFINITY)); });
    maxima[i] = hn::GetLane(hn::MaxOfLanes(d, top));
  }
}

void softmax_rows(Matrix x) {
  const RowTag d;
  for (int64_t i = 0; i < x.rows; ++i) {
    float* row = x.row(i);
    float top;
    HWY_NAMESPACE::max_rows(ConstMatrix(row, 1, x.cols), &top);
    RowVector sum = hn::Zero(d);
    for_each_vector(x.cols, [&](auto access, int64_t j) HWY_ATTR {
      const RowVector e = vector_exp_negative(d, hn::Sub(access.load(row + j, -INFINITY), hn::Set(d, top)));
      sum = hn::Add(sum, e);
      access.store(e, row + j);
    });
    const RowVector factor = hn::Set(d, 1.0f / sum_of(sum));
    for_each_vector(x.cols, [&](auto access, int64_t j)
                                HWY_ATTR { access.store(hn::Mul(factor, access.load(row + j, 0.0f)), row + j); });
  }
}

void softmax_rows_backward(ConstMatrix p, ConstMatrix dp, Matrix dx) {
  const RowTag d;
  for (int64_t i = 0; i < p.rows; ++i) {
    const float *weights = p.row(i), *gradients = dp.row(i);
    float* to = dx.row(i);
    RowVector sum = hn::Zero(d);
    for_each_vector(p.cols, [&](auto access, int64_t j) HWY_ATTR {
      sum = hn::MulAdd(access.load(weights + j, 0.0f), access.load(gradients + j, 0.0f), sum);
    });
    const RowVector mean = hn::Set(d, sum_of(sum));
    for_each_vector(p.cols, [&](auto access, int64_t j) HWY_ATTR {
      const RowVector difference = hn::Sub(access.load(gradients + j, 0.0f), mean);
      access.store(hn::Mul(access.load(weights + j, 0.0f), difference), to + j);
    });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace lra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lra {

HWY_EXPORT(exp_rows);
HWY_EXPORT(wave_rows);
HWY_EXPORT(elu_rows);
HWY_EXPORT(max_rows);
HWY_EXPORT(softmax_rows);
HWY_EXPORT(softmax_rows_backward);

void exp_rows(const ExpRows& form, ConstMatrix x, Matrix y) {
  const PhaseScope phase(Phase::kWeights);
  HWY_DYNAMIC_DISPATCH(exp_rows)(form, x, y);
}

void wave_rows(float factor, ConstMatrix x, Matrix sines, Matrix cosines) {
  const PhaseScope phase(Phase::kWeights);
  HWY_DYNAMIC_DISPATCH(wave_rows)(factor, x, sines, cosines);
}

void elu_rows(ConstMatrix x, Matrix y) {
  const PhaseScope phase(Phase::kWeights);
  HWY_DYNAMIC_DISPATCH(elu_rows)(x, y);
}

void max_rows(ConstMatrix x, float* maxima) {
  const PhaseScope phase(Phase::kWeights);
  HWY_DYNAMIC_DISPATCH(max_rows)(x, maxima);
}

void softmax_rows(Matrix x) {
  const PhaseScope phase(Phase::kWeights);
  HWY_DYNAMIC_DISPATCH(softmax_rows)(x);
}

void softmax_rows_backward(ConstMatrix p, ConstMatrix dp, Matrix dx) {
  const PhaseScope phase(Phase::kWeights);
  HWY_DYNAMIC_DISPATCH(softmax_rows_backward)(p, dp, dx);
}

}  // namespace lra
#endif
