// AdamW in vectors. Factors are computed in double and rounded once, the order of operations is that of
// torch.optim.AdamW's single-tensor form, so that parameters agree with it to float rounding.
#include "lib/ops/adamw.h"

#ifndef LRA_OPS_ADAMW_FACTORS_  // this file is read once a target
#define LRA_OPS_ADAMW_FACTORS_
namespace lra {

struct AdamWFactors {
  float keep;          // 1 - learning rate * weight decay
  float gain1;         // 1 - beta1
  float beta2, gain2;  // 1 - beta2
  float correction2;   // sqrt(1 - beta2^step)
  float epsilon;
  float step_size;  // learning rate / (1 - beta1^step)
};

}  // namespace lra
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/ops/adamw_cpu.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// The order matters: these are read once a target.
#include "hwy/highway.h"
#include "lib/ops/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lra {
namespace HWY_NAMESPACE {
namespace {

void update(const AdamWFactors& f, std::span<float> parameters, std::span<const float> gradients, std::span<float> m,
            std::span<float> v) {
  namespace hn = hwy::HWY_NAMESPACE;
  float* HWY_RESTRICT p_data = parameters.data();
  float* HWY_RESTRICT m_data = m.data();
  float* HWY_RESTRICT v_data = v.data();
  const float* HWY_RESTRICT g_data = gradients.data();
  for_each_lanes(static_cast<int64_t>(parameters.size()), [&](auto d, int64_t i) HWY_ATTR {
    const auto g = hn::LoadU(d, g_data + i);
    auto p = hn::Mul(hn::LoadU(d, p_data + i), hn::Set(d, f.keep));
    auto first = hn::LoadU(d, m_data + i);
    first = hn::MulAdd(hn::Sub(g, first), hn::Set(d, f.gain1), first);
    auto second = hn::Mul(hn::LoadU(d, v_data + i), hn::Set(d, f.beta2));
    second = hn::MulAdd(hn::Mul(g, hn::Set(d, f.gain2)), g, second);
    const auto root = hn::Div(hn::Sqrt(second), hn::Set(d, f.correction2));
    const auto change = hn::Div(hn::Mul(first, hn::Set(d, f.step_size)), hn::Add(root, hn::Set(d, f.epsilon)));
    p = hn::Sub(p, change);
    hn::StoreU(p, d, p_data + i);
    hn::StoreU(first, d, m_data + i);
    hn::StoreU(second, d, v_data + i);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <cmath>

#include "lib/util/check.h"

namespace lra {

HWY_EXPORT(update);

void adamw_update(const AdamWSettings& settings, int64_t step, std::span<float> parameters,
                  std::span<const float> gradients, std::span<float> m, std::span<float> v) {
  check(step >= 1, "AdamW steps count from 1, not {}", step);
  check(gradients.size() == parameters.size() && m.size() == parameters.size() && v.size() == parameters.size(),
        "AdamW of {} parameters with {} gradients, {} and {} moments", parameters.size(), gradients.size(), m.size(),
        v.size());
  const double t = static_cast<double>(step);
  HWY_DYNAMIC_DISPATCH(update)
  ({.keep = static_cast<float>(1.0 - settings.learning_rate * settings.weight_decay),
    .gain1 = static_cast<float>(1.0 - settings.beta1),
    .beta2 = static_cast<float>(settings.beta2),
    .gain2 = static_cast<float>(1.0 - settings.beta2),
    .correction2 = static_cast<float>(std::sqrt(1.0 - std::pow(settings.beta2, t))),
    .epsilon = static_cast<float>(settings.epsilon),
    .step_size = static_cast<float>(settings.learning_rate / (1.0 - std::pow(settings.beta1, t)))},
   parameters, gradients, m, v);
}

double l2_norm(std::span<const float> x) {
  constexpr size_t kLanes = 16;  // independent sums, added up in order at the end
  double sums[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= x.size(); i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const double value = x[i + lane];
      sums[lane] += value * value;
    }
  }
  double sum = 0.0;
  for (; i < x.size(); ++i) sum += static_cast<double>(x[i]) * x[i];
  for (const double lane : sums) sum += lane;
  return std::sqrt(sum);
}

}  // namespace lra
#endif  // HWY_ONCE
