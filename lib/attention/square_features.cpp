#include "lib/attention/square_features.h"

#include "lib/attention/tile_matmul.h"
#include "lib/util/check.h"
#include "lib/util/phases.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/attention/square_features.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h stands first.
#include <hwy/highway.h>

#include "lib/attention/row_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lra {
namespace HWY_NAMESPACE {

// Calls body(x, column) for each vector of tokens; number i of these tokens lies at x + i * panel.
template <class Body>
HWY_INLINE void for_each_token_vector(const float* panels, int64_t panel, int64_t d, int64_t columns,
                                      const Body& body) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(RowTag()));
  for (int64_t first = 0; first < columns; first += panel, panels += panel * d) {
    for (int64_t t = 0; t < panel; t += lanes) body(panels + t, first + t);
  }
}

void square_features(const float* panels, int64_t panel, int64_t d, Matrix features) {
  const RowTag tag;
  for_each_token_vector(panels, panel, d, features.cols, [&](const float* x, int64_t column) HWY_ATTR {
    float* to = features.data + column;
    for (int64_t i = 0; i < d; ++i) {
      const RowVector xi = hn::LoadU(tag, x + i * panel);
      for (int64_t j = i; j < d; ++j, to += features.stride) {
        hn::StoreU(hn::Mul(xi, hn::LoadU(tag, x + j * panel)), tag, to);
      }
    }
  });
}

// d(x_i x_j) = x_j dx_i + x_i dx_j.
void square_features_backward(const float* panels, int64_t panel, ConstMatrix d_features, Matrix dx) {
  const RowTag tag;
  const int64_t d = dx.rows;
  for_each_token_vector(panels, panel, d, dx.cols, [&](const float* x, int64_t column) HWY_ATTR {
    const float* g = d_features.data + column;
    for (int64_t j = 0; j < d; ++j) hn::StoreU(hn::Zero(tag), tag, dx.row(j) + column);
    for (int64_t i = 0; i < d; ++i) {
      const RowVector xi = hn::LoadU(tag, x + i * panel);
      RowVector sum = hn::Zero(tag);
      for (int64_t j = i; j < d; ++j, g += d_features.stride) {
        const RowVector gradient = hn::LoadU(tag, g);
        float* dxj = dx.row(j) + column;
        sum = hn::MulAdd(gradient, hn::LoadU(tag, x + j * panel), sum);
        hn::StoreU(hn::MulAdd(gradient, xi, hn::LoadU(tag, dxj)), tag, dxj);
      }
      float* dxi = dx.row(i) + column;
      hn::StoreU(hn::Add(hn::LoadU(tag, dxi), sum), tag, dxi);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace lra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lra {

HWY_EXPORT(square_features);
HWY_EXPORT(square_features_backward);

void square_feature_weights(int64_t d, float* weights) {
  for (int64_t i = 0; i < d; ++i) {
    for (int64_t j = i; j < d; ++j) *weights++ = i == j ? 1.0f : 2.0f;
  }
}

void square_features(const float* panels, int64_t d, Matrix features) {
  check(features.rows == square_feature_count(d) && features.cols == padded_columns(features.cols),
        "square features of width {} into ({}, {})", d, features.rows, features.cols);
  const PhaseScope phase(Phase::kWeights);
  HWY_DYNAMIC_DISPATCH(square_features)(panels, padded_columns(1), d, features);
}

void square_features_backward(const float* panels, ConstMatrix d_features, Matrix dx) {
  check(d_features.rows == square_feature_count(dx.rows) && dx.cols == padded_columns(dx.cols) &&
            d_features.cols == dx.cols,
        "gradient of square features ({}, {}) into ({}, {})", d_features.rows, d_features.cols, dx.rows, dx.cols);
  const PhaseScope phase(Phase::kWeights);
  HWY_DYNAMIC_DISPATCH(square_features_backward)(panels, padded_columns(1), d_features, dx);
}

}  // namespace lra
#endif
