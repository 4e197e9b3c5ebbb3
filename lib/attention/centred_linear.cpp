#include "lib/attention/centred_linear.h"

#include <algorithm>
#include <cmath>

#include "lib/attention/form_choice.h"
#include "lib/attention/row_kernels.h"
#include "lib/ops/matmul.h"
#include "lib/util/check.h"

namespace lra {
namespace {

// (D), sum of rows times factor.
void sum_rows(ConstMatrix x, float factor, float* sum) {
  std::fill_n(sum, x.cols, 0.0f);
  for (int64_t i = 0; i < x.rows; ++i) {
    for (int64_t c = 0; c < x.cols; ++c) sum[c] += x.row(i)[c];
  }
  for (int64_t c = 0; c < x.cols; ++c) sum[c] *= factor;
}

void add_to_rows(const float* row, float factor, Matrix x) {
  for (int64_t i = 0; i < x.rows; ++i) {
    for (int64_t c = 0; c < x.cols; ++c) x.row(i)[c] += factor * row[c];
  }
}

// Of one head, computed again in the backward pass: two products more, and nothing to save.
struct Head {
  int64_t n, d;
  ConstMatrix q, k, v;
  Matrix keys;              // Kc (N, D)
  Matrix a;                 // A (D, D)
  float *value_sum, *mean;  // Σ v; v̄

  Head(const AttentionInput& in, int64_t head_dim, int index, Arena& arena)
      : n(in.q.rows),
        d(head_dim),
        q(in.q.col_block(index * d, d)),
        k(in.k.col_block(index * d, d)),
        v(in.v.col_block(index * d, d)),
        keys(arena.matrix(n, d)),
        a(arena.matrix(d, d)),
        value_sum(arena.floats(d)),
        mean(arena.floats(d)) {
    const float share = 1.0f / static_cast<float>(n);
    sum_rows(k, share, mean);
    scale_rows(1.0f, nullptr, 0, k, keys);
    add_to_rows(mean, -1.0f, keys);
    sum_rows(v, 1.0f, value_sum);
    for (int64_t c = 0; c < d; ++c) mean[c] = share * value_sum[c];
    matmul(keys, Transpose::kYes, v, Transpose::kNo, a, Write::kOver);
  }
};

// nap's rows: deviations and what divides by them.
struct Deviations {
  Matrix through;          // Q C (N, D)
  float *sd, *reciprocal;  // (N)

  Deviations(const Head& head, Arena& arena)
      : through(arena.matrix(head.n, head.d)), sd(arena.floats(head.n)), reciprocal(arena.floats(head.n)) {
    const Matrix covariance = arena.matrix(head.d, head.d);
    matmul(head.keys, Transpose::kYes, head.keys, Transpose::kNo, covariance, Write::kOver,
           1.0f / static_cast<float>(head.n));
    matmul(head.q, Transpose::kNo, covariance, Transpose::kNo, through, Write::kOver);
    dot_rows(head.q, through, sd);
    for (int64_t i = 0; i < head.n; ++i) {
      sd[i] = std::sqrt(std::max(sd[i], 0.0f));
      reciprocal[i] = 1.0f / (sd[i] + kNapEpsilon);
    }
  }
};

class CentredLinearKernel final : public AttentionKernel {
 public:
  CentredLinearKernel(CentredLinear family, const AttentionKernel& quadratic)
      : AttentionKernel(quadratic.shape(), quadratic.spec()), family_(family), parameters_(quadratic.parameters()) {}

  const std::vector<KernelParameter>& parameters() const override { return parameters_; }
  int64_t saved_floats(int64_t, float) const override { return 0; }

  void forward(const AttentionInput& in, Matrix out, float*, Arena& arena) const override {
    if (in.q.rows == 0) return;
    run_parts(in.fork, shape().heads, arena, [&](int64_t part, Arena& scratch) {
      const int index = static_cast<int>(part);
      const Head head(in, shape().head_dim, index, scratch);
      const Matrix o = out.col_block(index * head.d, head.d);
      matmul(head.q, Transpose::kNo, head.a, Transpose::kNo, o, Write::kOver, row_factor(in, index, head));
      if (nap()) scale_rows(1.0f, Deviations(head, scratch).reciprocal, 1, o, o);
      add_to_rows(constant(head), constant_factor(in, index), o);
    });
  }

  void backward(const AttentionInput& in, ConstMatrix, const float*, const AttentionGradients& gradients,
                Arena& arena) const override {
    if (in.q.rows == 0) return;
    run_parts(in.fork, shape().heads, arena, [&](int64_t part, Arena& scratch) {
      const int index = static_cast<int>(part);
      const Head head(in, shape().head_dim, index, scratch);
      const int64_t n = head.n, d = head.d;
      const Matrix dq = gradients.dq.col_block(index * d, d), dk = gradients.dk.col_block(index * d, d),
                   dv = gradients.dv.col_block(index * d, d);
      const ConstMatrix d_out = gradients.d_out.col_block(index * d, d);
      // dO times what stands before qᵀ A; of nap nap_rows puts it in.
      const Matrix scaled = scratch.matrix(n, d), d_a = scratch.matrix(d, d);
      float* d_sum = scratch.floats(d);
      sum_rows(d_out, 1.0f, d_sum);
      scale_rows(nap() ? 1.0f : row_factor(in, index, head), nullptr, 0, d_out, scaled);
      matmul(scaled, Transpose::kNo, head.a, Transpose::kYes, dq, Write::kOver);
      const Matrix d_covariance = scratch.matrix(d, d);
      if (nap()) {
        nap_rows(in, index, head, scaled, dq, d_covariance, gradients, scratch);
        for (int64_t c = 0; c < d; ++c) {
          if (gradients.d_parameters[1] != nullptr) gradients.d_parameters[1][index] += d_sum[c] * head.value_sum[c];
        }
      }
      matmul(head.q, Transpose::kYes, scaled, Transpose::kNo, d_a, Write::kOver);
      matmul(head.keys, Transpose::kNo, d_a, Transpose::kNo, dv, Write::kOver);
      add_to_rows(d_sum, nap() ? constant_factor(in, index) : 1.0f / static_cast<float>(n), dv);
      // dk = (V - v̄) dAᵀ [+ Kc dC / n · 2]: the centring of keys takes the mean away.
      const Matrix values = scratch.matrix(n, d);
      scale_rows(1.0f, nullptr, 0, head.v, values);
      add_to_rows(head.mean, -1.0f, values);
      matmul(values, Transpose::kNo, d_a, Transpose::kYes, dk, Write::kOver);
      if (nap()) {
        matmul(head.keys, Transpose::kNo, d_covariance, Transpose::kNo, dk, Write::kAdd, 2.0f / static_cast<float>(n));
      }
    });
  }

  // Forward N D² multiply-adds twice (nap: four times), backward 7 (12) of them.
  double flops(int64_t tokens, bool training, float) const override {
    const double products = nap() ? (training ? 16.0 : 4.0) : (training ? 9.0 : 2.0);
    return 2.0 * products * static_cast<double>(tokens) * shape().head_dim * shape().head_dim * shape().heads;
  }
  std::string form(bool, float) const override { return "linear"; }
  bool dropout_applies() const override { return false; }
  bool has_weights() const override { return false; }
  void visit_weights(const AttentionInput&, Arena&, const std::function<void(const WeightRow&)>&) const override {}

 private:
  bool nap() const { return family_ == CentredLinear::kNap; }
  float row_factor(const AttentionInput& in, int index, const Head& head) const {
    if (nap()) return in.parameters[0][index];
    return 1.0f / (static_cast<float>(head.n) * std::sqrt(static_cast<float>(head.d)));
  }
  const float* constant(const Head& head) const { return nap() ? head.value_sum : head.mean; }
  float constant_factor(const AttentionInput& in, int index) const { return nap() ? in.parameters[1][index] : 1.0f; }

  // scaled: dO -> γ r_i dO. dq: rows A dO_i -> dL/dq. d_covariance: Σ dsd / (2 sd) q qᵀ. The gradient of γ.
  void nap_rows(const AttentionInput& in, int index, const Head& head, Matrix scaled, Matrix dq, Matrix d_covariance,
                const AttentionGradients& gradients, Arena& arena) const {
    const Deviations rows(head, arena);
    const float gain = in.parameters[0][index];
    float* along = arena.floats(head.n);  // q·A dO
    dot_rows(head.q, dq, along);
    const Matrix weighted = arena.matrix(head.n, head.d);
    double d_gain = 0.0;
    for (int64_t i = 0; i < head.n; ++i) {
      const float r = rows.reciprocal[i];
      const float share = rows.sd[i] > 0.0f ? -gain * along[i] * r * r / rows.sd[i] : 0.0f;  // dL/dsd / sd
      d_gain += along[i] * r;
      for (int64_t c = 0; c < head.d; ++c) {
        scaled.row(i)[c] *= gain * r;
        dq.row(i)[c] = gain * r * dq.row(i)[c] + share * rows.through.row(i)[c];
        weighted.row(i)[c] = 0.5f * share * head.q.row(i)[c];
      }
    }
    matmul(head.q, Transpose::kYes, weighted, Transpose::kNo, d_covariance, Write::kOver);
    if (gradients.d_parameters[0] != nullptr) gradients.d_parameters[0][index] += static_cast<float>(d_gain);
  }

  CentredLinear family_;
  std::vector<KernelParameter> parameters_;
};

}  // namespace

AttentionOption centred_form_option() {
  return {"form",
          AttentionOption::Kind::kChoice,
          "auto",
          {"auto", "quadratic", "linear"},
          "linear: in linear time, no dropout; auto: where exact and cheaper"};
}

std::unique_ptr<AttentionKernel> choose_centred_form(CentredLinear family, const QuadraticMaker& make_quadratic) {
  std::unique_ptr<AttentionKernel> quadratic = make_quadratic();
  const std::string& form = quadratic->spec().get("form");
  if (form == "quadratic") return quadratic;
  std::unique_ptr<AttentionKernel> linear;
  if (quadratic->spec().flag("causal")) {
    linear = make_centred_causal(family, *quadratic);
  } else {
    linear = std::make_unique<CentredLinearKernel>(family, *quadratic);
  }
  linear = with_weights_of(make_quadratic(), std::move(linear));
  if (form == "linear") return linear;
  return choose_form(std::move(quadratic), std::move(linear));
}

}  // namespace lra
