// Mixture of softmaxes (Yang et al. 2018, an output layer; as attention our definition): P = Σ_c π_ic softmax(β_c x),
// π_i = softmax(W q_i), W (H, K, D) from 0, β (H, K) from 0.5 … 2. Backward: dx = Σ_c π_c β_c dz^c with softmax's
// dz^c = p^c (g - t^c), dβ_c = Σ π_c dz^c x, dπ_c = t^c. Context of a head: π (N, K).
// Statistics of a row: 1, then of each component max β_c x and π_c / Σ exp(β_c x - max).
#include <cmath>

#include "lib/attention/families.h"
#include "lib/attention/score_activation.h"
#include "lib/util/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/attention/mos.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h stands first.
#include <hwy/highway.h>

#include "lib/attention/row_loops-inl.h"
#include "lib/ops/vector_math-inl.h"

#ifndef LRA_ATTENTION_MOS_ONCE
#define LRA_ATTENTION_MOS_ONCE
namespace lra {
namespace {
constexpr int kMostComponents = 16;
}  // namespace
}  // namespace lra
#endif

HWY_BEFORE_NAMESPACE();
namespace lra {
namespace HWY_NAMESPACE {

// beta (K), pi (K), statistics (1 + 2 K).
void mos_row(int components, const float* beta, const float* pi, const uint8_t* kept, int64_t n, float* s,
             float* statistics) {
  const RowTag d;
  float min, max;
  ends_of(n, s, &min, &max);
  statistics[0] = 1.0f;
  for (int c = 0; c < components; ++c) {
    statistics[1 + 2 * c] = beta[c] * (beta[c] > 0.0f ? max : min);
    const RowVector b = hn::Set(d, beta[c]), m = hn::Set(d, statistics[1 + 2 * c]);
    RowVector sum = hn::Zero(d);
    for_each_vector(n, [&](auto access, int64_t j) HWY_ATTR {
      sum = hn::Add(sum, access.only(vector_exp_negative(d, hn::MulSub(b, access.load(s + j, 0.0f), m))));
    });
    statistics[2 + 2 * c] = pi[c] / sum_of(sum);
  }
  for_each_vector(kept, n, [&](auto access, int64_t j) HWY_ATTR {
    const RowVector x = access.load(s + j, 0.0f);
    RowVector p = hn::Zero(d);
    for (int c = 0; c < components; ++c) {
      const RowVector e = vector_exp_negative(d, hn::MulSub(hn::Set(d, beta[c]), x, hn::Set(d, statistics[1 + 2 * c])));
      p = hn::MulAdd(hn::Set(d, statistics[2 + 2 * c]), e, p);
    }
    access.store(access.keep(p, j), s + j);
  });
}

// d_beta (K) and d_pi (K), added to.
void mos_row_backward(int components, const float* beta, const float* pi, const uint8_t* kept, int64_t n,
                      const float* statistics, float* s, float* g, float* d_beta, float* d_pi) {
  const RowTag d;
  float t[kMostComponents];
  const auto weight = [&](RowVector x, int c) HWY_ATTR {  // π_c p^c
    const RowVector e = vector_exp_negative(d, hn::MulSub(hn::Set(d, beta[c]), x, hn::Set(d, statistics[1 + 2 * c])));
    return hn::Mul(hn::Set(d, statistics[2 + 2 * c]), e);
  };
  for (int c = 0; c < components; ++c) {
    RowVector sum = hn::Zero(d);
    for_each_vector(kept, n, [&](auto access, int64_t j) HWY_ATTR {
      const RowVector gradient = access.keep(access.load(g + j, 0.0f), j);
      sum = hn::MulAdd(weight(access.load(s + j, 0.0f), c), gradient, sum);
    });
    t[c] = pi[c] > 0.0f ? sum_of(sum) / pi[c] : 0.0f;
    d_pi[c] += t[c];
  }
  RowVector sums[kMostComponents];
  for (int c = 0; c < components; ++c) sums[c] = hn::Zero(d);
  for_each_vector(kept, n, [&](auto access, int64_t j) HWY_ATTR {
    const RowVector x = access.load(s + j, 0.0f), gradient = access.keep(access.load(g + j, 0.0f), j);
    RowVector p = hn::Zero(d), dx = hn::Zero(d);
    for (int c = 0; c < components; ++c) {
      const RowVector own = access.only(weight(x, c));
      const RowVector dz = hn::Mul(own, hn::Sub(gradient, hn::Set(d, t[c])));
      sums[c] = hn::MulAdd(dz, x, sums[c]);
      p = hn::Add(p, own);
      dx = hn::MulAdd(hn::Set(d, beta[c]), dz, dx);
    }
    access.store(access.keep(p, j), s + j);
    access.store(dx, g + j);
  });
  for (int c = 0; c < components; ++c) d_beta[c] += sum_of(sums[c]);
}

}  // namespace HWY_NAMESPACE
}  // namespace lra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lra {
namespace {

HWY_EXPORT(mos_row);
HWY_EXPORT(mos_row_backward);

class MixtureOfSoftmaxes final : public ScoreActivation {
 public:
  MixtureOfSoftmaxes(int components, int64_t head_dim) : components_(components), d_(head_dim) {}

  bool whole_rows() const override { return true; }
  int statistics() const override { return 1 + 2 * components_; }
  int64_t context_floats(int64_t tokens) const override { return tokens * components_; }

  void prepare(const AttentionInput& in, int head, float* pi) const override {
    for (int64_t i = 0; i < in.q.rows; ++i, pi += components_) {
      float max = -INFINITY, sum = 0.0f;
      for (int c = 0; c < components_; ++c) {
        const float* w = mixing(in, head, c);
        pi[c] = 0.0f;
        for (int64_t e = 0; e < d_; ++e) pi[c] += w[e] * in.q.row(i)[head * d_ + e];
        max = std::max(max, pi[c]);
      }
      for (int c = 0; c < components_; ++c) sum += pi[c] = std::exp(pi[c] - max);
      for (int c = 0; c < components_; ++c) pi[c] /= sum;
    }
  }
  void prepare_backward(const AttentionInput& in, int head, const float* pi, const float* d_pi,
                        const AttentionGradients& gradients) const override {
    for (int64_t i = 0; i < in.q.rows; ++i, pi += components_, d_pi += components_) {
      float t = 0.0f;
      for (int c = 0; c < components_; ++c) t += pi[c] * d_pi[c];
      for (int c = 0; c < components_; ++c) {
        const float du = pi[c] * (d_pi[c] - t);
        const float* w = mixing(in, head, c);
        for (int64_t e = 0; e < d_; ++e) {
          gradients.dq.row(i)[head * d_ + e] += du * w[e];
          if (gradients.d_parameters[0] != nullptr) {
            gradients.d_parameters[0][(head * components_ + c) * d_ + e] += du * in.q.row(i)[head * d_ + e];
          }
        }
      }
    }
  }
  void forward(const ScoreTile& tile, float* statistics, float*) const override {
    for (int64_t i = 0; i < tile.s.rows; ++i) {
      HWY_DYNAMIC_DISPATCH(mos_row)
      (components_, beta(tile), pi(tile, i), tile.row_kept(i), tile.columns(i), tile.s.row(i),
       statistics + i * this->statistics());
    }
  }
  void forward_end(const ScoreTile&, float*) const override {}
  void backward(const ScoreTile& tile, const float* statistics, const float*, Matrix g,
                const RowGradients& gradients) const override {
    for (int64_t i = 0; i < tile.s.rows; ++i) {
      HWY_DYNAMIC_DISPATCH(mos_row_backward)
      (components_, beta(tile), pi(tile, i), tile.row_kept(i), tile.columns(i), statistics + i * this->statistics(),
       tile.s.row(i), g.row(i), gradients.parameters[1] + tile.head * components_,
       gradients.context + (tile.query + i) * components_);
    }
  }
  // With w^c = π_c β_c p^c, W = Σ_c w^c: column k is e_k W_k - Σ_c w^c_k p^c.
  std::optional<double> jacobian_square(const ScoreTile& tile, int64_t i, const float*,
                                        const float* statistics) const override {
    const int64_t n = tile.keys(i);
    const float *x = tile.s.row(i), *b = beta(tile), *mix = pi(tile, i);
    const auto p = [&](int c, int64_t k) {  // π_c p^c
      return std::exp(static_cast<double>(b[c]) * x[k] - statistics[1 + 2 * c]) * statistics[2 + 2 * c];
    };
    double gram[kMostComponents][kMostComponents] = {};  // of π_c p^c
    for (int64_t k = 0; k < n; ++k) {
      for (int c = 0; c < components_; ++c) {
        for (int e = 0; e < components_; ++e) gram[c][e] += p(c, k) * p(e, k);
      }
    }
    double sum = 0.0;
    for (int64_t k = 0; k < n; ++k) {
      double own = 0.0, cross = 0.0;
      for (int c = 0; c < components_; ++c) {
        const double w = b[c] * p(c, k);
        own += w;
        cross += w * p(c, k) / mix[c];
        for (int e = 0; e < components_; ++e)
          sum += w * b[e] * p(e, k) * gram[c][e] / (static_cast<double>(mix[c]) * mix[e]);
      }
      sum += own * own - 2.0 * own * cross;
    }
    return sum;
  }

 private:
  const float* mixing(const AttentionInput& in, int head, int c) const {
    return in.parameters[0] + (head * components_ + c) * d_;
  }
  const float* beta(const ScoreTile& tile) const { return tile.parameters[1] + tile.head * components_; }
  const float* pi(const ScoreTile& tile, int64_t i) const { return tile.context + (tile.query + i) * components_; }

  int components_;
  int64_t d_;
};

}  // namespace

std::vector<AttentionFamily> mos_families() {
  return {{.name = "mos",
           .options = {{"components", AttentionOption::Kind::kInteger, "4", {}, "K, 1 to 16"}},
           .idea = "Σ_c π_c softmax(β_c x), π = softmax(W q)",
           .source = "arXiv 1711.03953",
           .kind = "row-wise",
           .cost = "K (6f + 2E)",
           .ours = "all: the source is an output layer",
           .causal = true,
           .plain_scores = [](const AttentionSpec&) { return false; },
           .validate =
               [](const AttentionSpec& spec) {
                 const int64_t components = spec.integer("components");
                 if (components < 1 || components > kMostComponents) {
                   throw UsageError("attention mos: components={} must be 1 to {}", spec.get("components"),
                                    kMostComponents);
                 }
               },
           .make =
               [](const AttentionSpec& spec, const AttentionShape& shape) {
                 const auto components = static_cast<int>(spec.integer("components"));
                 std::vector<KernelParameter> parameters = {
                     {"mix_weight", {shape.heads, components, shape.head_dim}, start_constant(0.0)},
                     {"beta", {shape.heads, components}, [components](Random&, std::span<float> beta) {
                        for (size_t i = 0; i < beta.size(); ++i) {
                          const auto c = static_cast<float>(i % components);
                          beta[i] = components > 1 ? 0.5f + 1.5f * c / static_cast<float>(components - 1) : 0.5f;
                        }
                      }}};
                 return make_tiled(spec, shape, std::make_unique<MixtureOfSoftmaxes>(components, shape.head_dim),
                                   std::move(parameters));
               },
           .reference = ref::rows([](const ref::RowPlace& row, const ref::Row& x) {
             const int64_t components = row.problem.spec.integer("components"), d = row.problem.shape.head_dim;
             ref::Row u(components, 0.0), p(x.size(), 0.0);
             for (int64_t c = 0; c < components; ++c) {
               for (int64_t e = 0; e < d; ++e) {
                 u[c] += row.problem.parameters[0][(row.head * components + c) * d + e] *
                         row.problem.q.row(row.query)[row.head * d + e];
               }
             }
             const ref::Row pi = ref::softmax(u);
             for (int64_t c = 0; c < components; ++c) {
               ref::Row z = x;
               for (double& value : z) value *= row.problem.parameters[1][row.head * components + c];
               z = ref::softmax(z);
               for (size_t j = 0; j < x.size(); ++j) p[j] += pi[c] * z[j];
             }
             return p;
           }),
           .examples = {"mos", "mos:components=2,causal=1"}}};
}

}  // namespace lra
#endif
