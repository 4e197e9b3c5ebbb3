// Layer normalisation in vectors. The mean is taken first and the variance around it second, both from the cache
// nearest to the core: the one-pass form E[x^2] - E[x]^2 loses digits to cancellation.
#include "lib/ops/layer_norm.h"

#ifndef LRA_OPS_LAYER_NORM_ARGUMENTS_  // this file is read once a target
#define LRA_OPS_LAYER_NORM_ARGUMENTS_
namespace lra {

struct LayerNormForwardCall {
  ConstMatrix x;
  const float* weight;
  const float* bias;
  float epsilon;
  Matrix y;
  float* mean;
  float* rstd;
};

struct LayerNormBackwardCall {
  ConstMatrix x;
  const float* weight;
  const float* mean;
  const float* rstd;
  ConstMatrix dy;
  Matrix dx;
  float* d_weight;
  float* d_bias;
};

}  // namespace lra
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/ops/layer_norm_cpu.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// The order matters: these are read once a target.
#include <cmath>

#include "hwy/highway.h"
#include "lib/ops/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lra {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Sum over i < count of term(d, i).
template <class Term>
HWY_INLINE float sum_row(int64_t count, Term term) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto s0 = hn::Zero(d), s1 = hn::Zero(d);
  int64_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    s0 = hn::Add(s0, term(d, i));
    s1 = hn::Add(s1, term(d, i + lanes));
  }
  for (; i + lanes <= count; i += lanes) s0 = hn::Add(s0, term(d, i));
  float sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(s0, s1)));
  for (; i < count; ++i) sum += hn::GetLane(term(one, i));
  return sum;
}

void forward(const LayerNormForwardCall& norm) {
  const int64_t cols = norm.x.cols;
  const float over_cols = 1.0f / static_cast<float>(cols);
  for (int64_t row = 0; row < norm.x.rows; ++row) {
    const float* x = norm.x.row(row);
    float* y = norm.y.row(row);
    const float mean = over_cols * sum_row(cols, [&](auto d, int64_t i) HWY_ATTR { return hn::LoadU(d, x + i); });
    const float variance = over_cols * sum_row(cols, [&](auto d, int64_t i) HWY_ATTR {
                             const auto away = hn::Sub(hn::LoadU(d, x + i), hn::Set(d, mean));
                             return hn::Mul(away, away);
                           });
    const float rstd = 1.0f / std::sqrt(variance + norm.epsilon);
    norm.mean[row] = mean;
    norm.rstd[row] = rstd;
    for_each_lanes(cols, [&](auto d, int64_t i) HWY_ATTR {
      const auto unit = hn::Mul(hn::Sub(hn::LoadU(d, x + i), hn::Set(d, mean)), hn::Set(d, rstd));
      hn::StoreU(hn::MulAdd(unit, hn::LoadU(d, norm.weight + i), hn::LoadU(d, norm.bias + i)), d, y + i);
    });
  }
}

// With unit = (x - mean) rstd and u = weight dy: dx = rstd (u - mean_E(u) - unit mean_E(u unit)).
void backward(const LayerNormBackwardCall& g) {
  const int64_t cols = g.x.cols;
  const float over_cols = 1.0f / static_cast<float>(cols);
  // Rows at a time: the second walk over them finds them in the nearest cache.
  constexpr int64_t kRows = 32;
  for (int64_t first = 0; first < g.x.rows; first += kRows) {
    const int64_t count = first + kRows < g.x.rows ? kRows : g.x.rows - first;
    for (int64_t row = first; row < first + count; ++row) {
      const float* x = g.x.row(row);
      const float* dy = g.dy.row(row);
      float* dx = g.dx.row(row);
      const float mean = g.mean[row], rstd = g.rstd[row];
      const float u_mean = over_cols * sum_row(cols, [&](auto d, int64_t i) HWY_ATTR {
                             return hn::Mul(hn::LoadU(d, g.weight + i), hn::LoadU(d, dy + i));
                           });
      const float u_unit_mean = over_cols * rstd * sum_row(cols, [&](auto d, int64_t i) HWY_ATTR {
                                  const auto u = hn::Mul(hn::LoadU(d, g.weight + i), hn::LoadU(d, dy + i));
                                  return hn::Mul(u, hn::Sub(hn::LoadU(d, x + i), hn::Set(d, mean)));
                                });
      for_each_lanes(cols, [&](auto d, int64_t i) HWY_ATTR {
        const auto unit = hn::Mul(hn::Sub(hn::LoadU(d, x + i), hn::Set(d, mean)), hn::Set(d, rstd));
        auto v = hn::MulSub(hn::LoadU(d, g.weight + i), hn::LoadU(d, dy + i), hn::Set(d, u_mean));
        v = hn::NegMulAdd(unit, hn::Set(d, u_unit_mean), v);
        hn::StoreU(hn::MulAdd(v, hn::Set(d, rstd), hn::LoadU(d, dx + i)), d, dx + i);
      });
    }
    add_column_sums(count, cols, g.d_bias,
                    [&](auto d, int64_t row, int64_t i) HWY_ATTR { return hn::LoadU(d, g.dy.row(first + row) + i); });
    add_column_sums(count, cols, g.d_weight, [&](auto d, int64_t row, int64_t i) HWY_ATTR {
      const auto away = hn::Sub(hn::LoadU(d, g.x.row(first + row) + i), hn::Set(d, g.mean[first + row]));
      return hn::Mul(hn::Mul(away, hn::Set(d, g.rstd[first + row])), hn::LoadU(d, g.dy.row(first + row) + i));
    });
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lra {

HWY_EXPORT(forward);
HWY_EXPORT(backward);

void layer_norm_forward(ConstMatrix x, const float* weight, const float* bias, float epsilon, Matrix y, float* mean,
                        float* rstd) {
  HWY_DYNAMIC_DISPATCH(forward)({x, weight, bias, epsilon, y, mean, rstd});
}

void layer_norm_backward(ConstMatrix x, const float* weight, const float* mean, const float* rstd, ConstMatrix dy,
                         Matrix dx, float* d_weight, float* d_bias) {
  HWY_DYNAMIC_DISPATCH(backward)({x, weight, mean, rstd, dy, dx, d_weight, d_bias});
}

}  // namespace lra
#endif  // HWY_ONCE
