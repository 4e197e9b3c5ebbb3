// Scalable softmax: softmax((s log n + b) x), s and b learnt a head (Nakanishi 2025, "Scalable-Softmax Is Superior for
// Attention", arXiv 2501.19399). s starts at 1 / log of the padded length, where it is softmax at full length.
#include <cmath>

#include "lib/attention/families.h"
#include "lib/attention/online_softmax.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/attention/ssmax.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h stands first.
#include <hwy/highway.h>

#include "lib/attention/online_softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lra {
namespace HWY_NAMESPACE {

struct ScaledRow {
  static constexpr bool kFree = false;
  RowVector factor, sum;  // sum of dz x

  explicit HWY_INLINE ScaledRow(float f) : factor(hn::Set(RowTag(), f)), sum(hn::Zero(RowTag())) {}
  HWY_INLINE RowVector value(RowVector x, int64_t) const { return hn::Mul(factor, x); }
  HWY_INLINE RowVector pull_back(RowVector x, RowVector dz, int64_t) {
    sum = hn::MulAdd(dz, x, sum);
    return hn::Mul(factor, dz);
  }
};

// factors (rows): z = factor x.
void ssmax_forward(const ScoreTile& tile, const float* factors, float* statistics, float* earlier) {
  online_softmax_forward(tile, statistics, earlier, [&](int64_t i) HWY_ATTR { return ScaledRow(factors[i]); });
}
// d_factors (rows), overwritten.
void ssmax_backward(const ScoreTile& tile, const float* factors, const float* statistics, const float* row_dots,
                    Matrix g, float* d_factors) {
  online_softmax_backward(
      tile, statistics, row_dots, g, [&](int64_t i) HWY_ATTR { return ScaledRow(factors[i]); },
      [&](int64_t i, const ScaledRow& row, float) HWY_ATTR { d_factors[i] = sum_of(row.sum); });
}

}  // namespace HWY_NAMESPACE
}  // namespace lra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "lib/attention/tile_matmul.h"

namespace lra {
namespace {

HWY_EXPORT(ssmax_forward);
HWY_EXPORT(ssmax_backward);

class Ssmax final : public OnlineSoftmax {
 public:
  explicit Ssmax(bool bias) : bias_(bias) {}

  void forward(const ScoreTile& tile, float* statistics, float* earlier) const override {
    float factors[kMostTileRows];
    for (int64_t i = 0; i < tile.s.rows; ++i) factors[i] = factor(tile, i);
    HWY_DYNAMIC_DISPATCH(ssmax_forward)(tile, factors, statistics, earlier);
  }
  void backward(const ScoreTile& tile, const float* statistics, const float* row_dots, Matrix g,
                const RowGradients& gradients) const override {
    float factors[kMostTileRows], d_factors[kMostTileRows];
    for (int64_t i = 0; i < tile.s.rows; ++i) factors[i] = factor(tile, i);
    HWY_DYNAMIC_DISPATCH(ssmax_backward)(tile, factors, statistics, row_dots, g, d_factors);
    for (int64_t i = 0; i < tile.s.rows; ++i) {
      gradients.parameters[0][tile.head] += log_keys(tile, i) * d_factors[i];
      if (bias_) gradients.parameters[1][tile.head] += d_factors[i];
    }
  }
  std::optional<double> jacobian_square(const ScoreTile& tile, int64_t i, const float* p, const float*) const override {
    const double slope = factor(tile, i);
    return ratio_jacobian_square(p, tile.keys(i), [&](int64_t k) { return slope * p[k]; });
  }

 private:
  static float log_keys(const ScoreTile& tile, int64_t i) { return std::log(static_cast<float>(tile.keys(i))); }
  float factor(const ScoreTile& tile, int64_t i) const {
    return tile.parameters[0][tile.head] * log_keys(tile, i) + (bias_ ? tile.parameters[1][tile.head] : 0.0f);
  }

  bool bias_;
};

}  // namespace

std::vector<AttentionFamily> ssmax_families() {
  return {{.name = "ssmax",
           .options = {{"bias", AttentionOption::Kind::kFlag, "0", {}, "learn a bias a head too, from 0"}},
           .idea = "softmax((s log n + b) x), s learnt a head",
           .source = "arXiv 2501.19399",
           .kind = "row-wise",
           .cost = "5f + 1E",
           .ours = "s starts at 1 / log of the padded length",
           .causal = true,
           .make =
               [](const AttentionSpec& spec, const AttentionShape& shape) {
                 const double start = 1.0 / std::log(static_cast<double>(shape.padded_length));
                 std::vector<KernelParameter> parameters = {{"scale", {shape.heads}, start_constant(start)}};
                 if (spec.flag("bias")) parameters.push_back({"bias", {shape.heads}, start_constant(0.0)});
                 return make_tiled(spec, shape, std::make_unique<Ssmax>(spec.flag("bias")), std::move(parameters));
               },
           .reference = ref::rows([](const ref::RowPlace& row, const ref::Row& x) {
             const double bias = row.problem.spec.flag("bias") ? row.parameter(1) : 0.0;
             const double factor = row.parameter(0) * std::log(static_cast<double>(x.size())) + bias;
             ref::Row z = x;
             for (double& value : z) value *= factor;
             return ref::softmax(z);
           }),
           .examples = {"ssmax", "ssmax:bias=1", "ssmax:bias=1,causal=1"}}};
}

}  // namespace lra
#endif
