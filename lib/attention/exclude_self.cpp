#include "lib/attention/exclude_self.h"

#include <algorithm>

namespace lra {
namespace {

constexpr float kSmallestSquare = 1e-8f;

float dot(const float* a, const float* b, int64_t n) {
  float sum = 0.0f;
  for (int64_t c = 0; c < n; ++c) sum += a[c] * b[c];
  return sum;
}

class ExcludeSelf final : public OutputMap {
 public:
  explicit ExcludeSelf(const AttentionShape& shape) : heads_(shape.heads), d_(shape.head_dim) {}

  void forward(const AttentionInput& in, ConstMatrix y, Matrix out) const override {
    for_each(y.rows, [&](int64_t i, int64_t at) {
      const float* v = in.v.row(i) + at;
      const float* from = y.row(i) + at;
      const float tau = dot(from, v, d_) / std::max(dot(v, v, d_), kSmallestSquare);
      for (int64_t c = 0; c < d_; ++c) out.row(i)[at + c] = from[c] - tau * v[c];
    });
  }
  // tau = y·v / |v|², upsilon = dz·v / |v|²: dy = dz - upsilon v, dv = -(tau dz + upsilon y - 2 tau upsilon v).
  void backward(const AttentionInput& in, ConstMatrix y, ConstMatrix d_out, Matrix dy, Matrix dv,
                std::span<float* const>) const override {
    for_each(y.rows, [&](int64_t i, int64_t at) {
      const float *v = in.v.row(i) + at, *from = y.row(i) + at, *dz = d_out.row(i) + at;
      const float square = dot(v, v, d_), divisor = std::max(square, kSmallestSquare);
      const float tau = dot(from, v, d_) / divisor, upsilon = dot(dz, v, d_) / divisor;
      const float through_square = square >= kSmallestSquare ? 2.0f * tau * upsilon : 0.0f;
      for (int64_t c = 0; c < d_; ++c) {
        dy.row(i)[at + c] = dz[c] - upsilon * v[c];
        dv.row(i)[at + c] -= tau * dz[c] + upsilon * from[c] - through_square * v[c];
      }
    });
  }

 private:
  // body(token, first column) of each head.
  template <class Body>
  void for_each(int64_t tokens, const Body& body) const {
    for (int64_t i = 0; i < tokens; ++i) {
      for (int64_t head = 0; head < heads_; ++head) body(i, head * d_);
    }
  }

  int64_t heads_, d_;
};

}  // namespace

std::unique_ptr<OutputMap> exclude_self(const AttentionShape& shape) { return std::make_unique<ExcludeSelf>(shape); }

namespace ref {

void exclude_self(const AttentionProblem& problem, Row& out) {
  const int64_t d = problem.shape.head_dim, width = d * problem.shape.heads;
  for (int64_t i = 0; i < problem.tokens(); ++i) {
    for (int64_t at = 0; at < width; at += d) {
      const double* v = problem.v.row(i) + at;
      double* y = out.data() + i * width + at;
      double along = 0.0, square = 0.0;
      for (int64_t c = 0; c < d; ++c) along += y[c] * v[c], square += v[c] * v[c];
      for (int64_t c = 0; c < d; ++c) y[c] -= along / std::max(square, 1e-8) * v[c];
    }
  }
}

}  // namespace ref
}  // namespace lra
