// Forgetting attention (Lin et al. 2025, "Forgetting Transformer: Softmax Attention with a Forget Gate", arXiv
// 2503.02130): P = softmax(x_j + D_ij), f_t = σ(w·h_t + b) of the layer input h, c_i = Σ_{t<=i} log f_t.
// `fox`: causal, D_ij = c_i - c_j. `fox-bi` is our definition for both directions: D_ij = -|c_i - c_j|.
// b starts so that head h forgets over T_h tokens, T_h geometric from 16 to the padded length.
// Backward: softmax's; dD = dx, through c to the gate. Context of a head: c (N).
#include <cmath>

#include "lib/attention/families.h"
#include "lib/attention/online_softmax.h"
#include "lib/attention/tiled_kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/attention/fox.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h stands first.
#include <hwy/highway.h>

#include "lib/attention/online_softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lra {
namespace HWY_NAMESPACE {

template <bool kBoth>
struct ForgetRow {
  static constexpr bool kFree = false;
  RowVector own;      // c_i
  const float* keys;  // c_j of the tile's keys
  float* d_keys;      // null in the forward pass
  int64_t columns;
  RowVector d_own;

  HWY_INLINE RowVector load(const float* p, int64_t j) const {
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(RowTag()));
    return columns - j >= lanes ? WholeVector<false>{{nullptr}}.load(p + j, 0.0f)
                                : PartVector<false>{{nullptr}, columns - j}.load(p + j, 0.0f);
  }
  HWY_INLINE void add(RowVector v, float* p, int64_t j) const {
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(RowTag()));
    if (columns - j >= lanes) {
      hn::StoreU(hn::Add(hn::LoadU(RowTag(), p + j), v), RowTag(), p + j);
    } else {
      const PartVector<false> part{{nullptr}, columns - j};
      part.store(hn::Add(part.load(p + j, 0.0f), v), p + j);
    }
  }
  HWY_INLINE RowVector value(RowVector x, int64_t j) const {
    const RowVector difference = hn::Sub(own, load(keys, j));
    return kBoth ? hn::Sub(x, hn::Abs(difference)) : hn::Add(x, difference);
  }
  // dD_ij = dz_j goes to c_i and, with the other sign, to c_j.
  HWY_INLINE RowVector pull_back(RowVector, RowVector dz, int64_t j) {
    RowVector to_own = dz;
    if constexpr (kBoth) {
      const RowVector difference = hn::Sub(own, load(keys, j)), zero = hn::Zero(RowTag());
      to_own = hn::IfThenElse(hn::Gt(difference, zero), hn::Neg(dz), hn::IfThenElseZero(hn::Lt(difference, zero), dz));
    }
    d_own = hn::Add(d_own, to_own);
    add(hn::Neg(to_own), d_keys, j);
    return dz;
  }
};

template <bool kBoth>
ForgetRow<kBoth> forget_row(const ScoreTile& tile, int64_t i, float* d_context) {
  return {hn::Set(RowTag(), tile.context[tile.query + i]), tile.context + tile.key,
          d_context == nullptr ? nullptr : d_context + tile.key, tile.columns(i), hn::Zero(RowTag())};
}

template <bool kBoth>
void forward_of(const ScoreTile& tile, float* statistics, float* earlier) {
  online_softmax_forward(tile, statistics, earlier,
                         [&](int64_t i) HWY_ATTR { return forget_row<kBoth>(tile, i, nullptr); });
}
template <bool kBoth>
void backward_of(const ScoreTile& tile, const float* statistics, const float* row_dots, Matrix g, float* d_context) {
  online_softmax_backward(
      tile, statistics, row_dots, g, [&](int64_t i) HWY_ATTR { return forget_row<kBoth>(tile, i, d_context); },
      [&](int64_t i, const ForgetRow<kBoth>& row, float) HWY_ATTR { d_context[tile.query + i] += sum_of(row.d_own); });
}

void fox_forward(bool both, const ScoreTile& tile, float* statistics, float* earlier) {
  both ? forward_of<true>(tile, statistics, earlier) : forward_of<false>(tile, statistics, earlier);
}
void fox_backward(bool both, const ScoreTile& tile, const float* statistics, const float* row_dots, Matrix g,
                  float* d_context) {
  both ? backward_of<true>(tile, statistics, row_dots, g, d_context)
       : backward_of<false>(tile, statistics, row_dots, g, d_context);
}

}  // namespace HWY_NAMESPACE
}  // namespace lra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lra {
namespace {

HWY_EXPORT(fox_forward);
HWY_EXPORT(fox_backward);

double log_sigmoid(double x) { return std::min(x, 0.0) - std::log1p(std::exp(-std::abs(x))); }

class Fox final : public OnlineSoftmax {
 public:
  explicit Fox(bool both) : both_(both) {}

  int64_t context_floats(int64_t tokens) const override { return tokens; }
  // In double: differences of sums over thousands of tokens count.
  void prepare(const AttentionInput& in, int head, float* c) const override {
    double sum = 0.0;
    for (int64_t t = 0; t < in.x.rows; ++t) {
      sum += log_sigmoid(logit(in, head, t));
      c[t] = static_cast<float>(sum);
    }
  }
  void prepare_backward(const AttentionInput& in, int head, const float*, const float* dc,
                        const AttentionGradients& gradients) const override {
    const float* w = in.parameters[0] + head * in.x.cols;
    float* dw = gradients.d_parameters[0] == nullptr ? nullptr : gradients.d_parameters[0] + head * in.x.cols;
    double d_log = 0.0;  // dlog f_t = Σ_{m>=t} dc_m
    for (int64_t t = in.x.rows - 1; t >= 0; --t) {
      d_log += dc[t];
      const auto d_logit = static_cast<float>(d_log / (1.0 + std::exp(logit(in, head, t))));
      for (int64_t e = 0; e < in.x.cols; ++e) {
        if (dw != nullptr) dw[e] += d_logit * in.x.row(t)[e];
        gradients.dx.row(t)[e] += d_logit * w[e];
      }
      if (gradients.d_parameters[1] != nullptr) gradients.d_parameters[1][head] += d_logit;
    }
  }
  void forward(const ScoreTile& tile, float* statistics, float* earlier) const override {
    HWY_DYNAMIC_DISPATCH(fox_forward)(both_, tile, statistics, earlier);
  }
  void backward(const ScoreTile& tile, const float* statistics, const float* row_dots, Matrix g,
                const RowGradients& gradients) const override {
    HWY_DYNAMIC_DISPATCH(fox_backward)(both_, tile, statistics, row_dots, g, gradients.context);
  }
  std::optional<double> jacobian_square(const ScoreTile& tile, int64_t i, const float* p, const float*) const override {
    return ratio_jacobian_square(p, tile.keys(i), [&](int64_t k) { return p[k]; });
  }

 private:
  static double logit(const AttentionInput& in, int head, int64_t t) {
    const float *w = in.parameters[0] + head * in.x.cols, *h = in.x.row(t);
    float sum = 0.0f;
    for (int64_t e = 0; e < in.x.cols; ++e) sum += w[e] * h[e];
    return static_cast<double>(sum) + in.parameters[1][head];
  }

  bool both_;
};

// b of head h: f = exp(-1 / T_h).
void start_spans(int heads, int padded_length, std::span<float> bias) {
  const double longest = std::max(16, padded_length);
  for (int head = 0; head < heads; ++head) {
    const double share = heads > 1 ? static_cast<double>(head) / (heads - 1) : 0.0;
    const double span = 16.0 * std::pow(longest / 16.0, share);
    bias[head] = static_cast<float>(-std::log(std::expm1(1.0 / span)));
  }
}

AttentionFamily family(bool both) {
  return {.name = both ? "fox-bi" : "fox",
          .idea = both ? "softmax(x_ij − |c_i − c_j|), c sums of log forget gates"
                       : "softmax(x_ij + c_i − c_j) over j ≤ i, c sums of log forget gates",
          .source = "arXiv 2503.02130",
          .kind = "row-wise",
          .cost = "6f + 1E",
          .ours = both ? "all: the source is causal; start of the bias" : "start of the bias; always causal",
          .make = [both](const AttentionSpec& spec, const AttentionShape& shape) -> std::unique_ptr<AttentionKernel> {
            std::vector<KernelParameter> parameters = {
                {"forget.weight", {shape.heads, shape.dim}, start_normal(0.02)},
                {"forget.bias", {shape.heads}, [shape](Random&, std::span<float> bias) {
                   start_spans(shape.heads, shape.padded_length, bias);
                 }}};
            return std::make_unique<TiledKernel>(shape, spec, std::move(parameters), std::make_unique<Fox>(both),
                                                 !both);
          },
          .reference =
              [both](const ref::AttentionProblem& problem) {
                const int64_t n = problem.tokens(), dim = problem.shape.dim;
                std::vector<double> c(problem.shape.heads * n);
                for (int head = 0; head < problem.shape.heads; ++head) {
                  double sum = 0.0;
                  for (int64_t t = 0; t < n; ++t) {
                    double logit = problem.parameters[1][head];
                    for (int64_t e = 0; e < dim; ++e) {
                      logit += problem.parameters[0][head * dim + e] * problem.x.row(t)[e];
                    }
                    c[head * n + t] = sum += log_sigmoid(logit);
                  }
                }
                return ref::rows([&](const ref::RowPlace& row, const ref::Row& x) {
                  const double* at = c.data() + row.head * n;
                  ref::Row z(both ? n : row.query + 1);
                  for (int64_t j = 0; j < std::ssize(z); ++j) {
                    const double difference = at[row.query] - at[j];
                    z[j] = x[j] + (both ? -std::abs(difference) : difference);
                  }
                  return ref::softmax(z);
                })(problem);
              },
          .examples = {both ? "fox-bi" : "fox"}};
}

}  // namespace

std::vector<AttentionFamily> fox_families() { return {family(false), family(true)}; }

}  // namespace lra
#endif
