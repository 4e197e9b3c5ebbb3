// Periodic alternatives of softmax (Wang et al. 2021, "Escaping the Gradient Vanishing: Periodic Alternatives of
// Softmax in Attention Mechanism", arXiv 2108.07153): P_j = a(x_j) / Z, Z = Σ a(x), a being sin x (sin-max), 1 + sin ωx
// (sin-max-const), cos x, sin² x, sin²(x + π/4), (1 + sin x) / (2 - 2 sin x) (siren-max; its denominator is at least
// 2e-3); and sin-softmax = softmax(sin x). Ours: |Z| is at least 1e-3 n, sign kept, without gradient where it was less.
// `norm-` standardises the row first, x -> (x - mean) / sqrt(var + 1e-5), var with divisor n - 1.
// Backward: dx_j = a'(x_j) / Z (g_j - t). Statistics of a row: 1 / Z (while gathered: Σ a), whether Z carries gradient;
// of `norm-` two more.
#include <cmath>
#include <numbers>

#include "lib/attention/families.h"
#include "lib/attention/online_softmax.h"
#include "lib/attention/score_maps.h"
#include "lib/util/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/attention/periodic.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h stands first.
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "lib/attention/elementwise-inl.h"
#include "lib/attention/online_softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lra {
namespace HWY_NAMESPACE {

template <Wave kWave>
struct WaveRow {
  RowVector omega;  // sin-max-const

  HWY_INLINE RowVector value(RowVector x) const {
    const RowTag d;
    const RowVector one = hn::Set(d, 1.0f), half = hn::Set(d, 0.5f);
    if constexpr (kWave == Wave::kSin) return hn::Sin(d, x);
    if constexpr (kWave == Wave::kSinConst) return hn::Add(one, hn::Sin(d, hn::Mul(omega, x)));
    if constexpr (kWave == Wave::kCos) return hn::Cos(d, x);
    if constexpr (kWave == Wave::kSin2) {
      const RowVector s = hn::Sin(d, x);
      return hn::Mul(s, s);
    }
    if constexpr (kWave == Wave::kSin2Shift) return hn::MulAdd(half, hn::Sin(d, hn::Add(x, x)), half);
    const RowVector s = hn::Sin(d, x), less = hn::Max(hn::Sub(one, s), hn::Set(d, kSirenFloor));
    return hn::Div(hn::Add(one, s), hn::Add(less, less));
  }
  HWY_INLINE RowVector slope(RowVector x, RowVector) const {
    const RowTag d;
    const RowVector one = hn::Set(d, 1.0f);
    if constexpr (kWave == Wave::kSin) return hn::Cos(d, x);
    if constexpr (kWave == Wave::kSinConst) return hn::Mul(omega, hn::Cos(d, hn::Mul(omega, x)));
    if constexpr (kWave == Wave::kCos) return hn::Neg(hn::Sin(d, x));
    if constexpr (kWave == Wave::kSin2) return hn::Sin(d, hn::Add(x, x));
    if constexpr (kWave == Wave::kSin2Shift) return hn::Cos(d, hn::Add(x, x));
    const RowVector less = hn::Sub(one, hn::Sin(d, x)), floor = hn::Set(d, kSirenFloor);
    const RowVector divisor = hn::IfThenElse(hn::Lt(less, floor), hn::Add(floor, floor), hn::Mul(less, less));
    return hn::Div(hn::Cos(d, x), divisor);
  }
};

template <Wave kWave>
void forward_of(float omega, const ScoreTile& tile, float* statistics, int64_t width) {
  elementwise_forward(
      tile, [&](int64_t) HWY_ATTR { return WaveRow<kWave>{hn::Set(RowTag(), omega)}; },
      [&](int64_t i, float sum) { statistics[i * width] += sum; });
}
template <Wave kWave>
void backward_of(float omega, const ScoreTile& tile, const float* statistics, int64_t width, const float* row_dots,
                 Matrix g) {
  elementwise_backward(
      tile, g, [&](int64_t) HWY_ATTR { return WaveRow<kWave>{hn::Set(RowTag(), omega)}; },
      [&](int64_t i) { return statistics[i * width] * statistics[i * width + 1] * row_dots[i]; }, NoSum());
}

// width: statistics of a row.
void wave_forward(Wave wave, float omega, const ScoreTile& tile, float* statistics, int64_t width) {
  switch (wave) {
    case Wave::kSin: return forward_of<Wave::kSin>(omega, tile, statistics, width);
    case Wave::kSinConst: return forward_of<Wave::kSinConst>(omega, tile, statistics, width);
    case Wave::kCos: return forward_of<Wave::kCos>(omega, tile, statistics, width);
    case Wave::kSin2: return forward_of<Wave::kSin2>(omega, tile, statistics, width);
    case Wave::kSin2Shift: return forward_of<Wave::kSin2Shift>(omega, tile, statistics, width);
    case Wave::kSiren: return forward_of<Wave::kSiren>(omega, tile, statistics, width);
  }
}
void wave_backward(Wave wave, float omega, const ScoreTile& tile, const float* statistics, int64_t width,
                   const float* row_dots, Matrix g) {
  switch (wave) {
    case Wave::kSin: return backward_of<Wave::kSin>(omega, tile, statistics, width, row_dots, g);
    case Wave::kSinConst: return backward_of<Wave::kSinConst>(omega, tile, statistics, width, row_dots, g);
    case Wave::kCos: return backward_of<Wave::kCos>(omega, tile, statistics, width, row_dots, g);
    case Wave::kSin2: return backward_of<Wave::kSin2>(omega, tile, statistics, width, row_dots, g);
    case Wave::kSin2Shift: return backward_of<Wave::kSin2Shift>(omega, tile, statistics, width, row_dots, g);
    case Wave::kSiren: return backward_of<Wave::kSiren>(omega, tile, statistics, width, row_dots, g);
  }
}

struct SinRow {
  static constexpr bool kFree = false;
  HWY_INLINE RowVector value(RowVector x, int64_t) const { return hn::Sin(RowTag(), x); }
  HWY_INLINE RowVector pull_back(RowVector x, RowVector dz, int64_t) const { return hn::Mul(hn::Cos(RowTag(), x), dz); }
};

void sin_softmax_forward(const ScoreTile& tile, float* statistics, float* earlier) {
  online_softmax_forward(tile, statistics, earlier, [](int64_t) HWY_ATTR { return SinRow(); });
}
void sin_softmax_backward(const ScoreTile& tile, const float* statistics, const float* row_dots, Matrix g) {
  online_softmax_backward(
      tile, statistics, row_dots, g, [](int64_t) HWY_ATTR { return SinRow(); }, NoRowEnd());
}

// x (n) -> (x - mean) r, r = (Σ (x - mean)² / max(n - 1, 1) + 1e-5)^(-1/2). Returns r.
float standardise(int64_t n, float* x) {
  const RowTag d;
  RowVector sum = hn::Zero(d), squares = hn::Zero(d);
  for_each_vector(n, [&](auto access, int64_t j) HWY_ATTR { sum = hn::Add(sum, access.load(x + j, 0.0f)); });
  const RowVector mean = hn::Set(d, sum_of(sum) / static_cast<float>(n));
  for_each_vector(n, [&](auto access, int64_t j) HWY_ATTR {
    const RowVector c = access.only(hn::Sub(access.load(x + j, 0.0f), mean));
    squares = hn::MulAdd(c, c, squares);
  });
  const float r = 1.0f / std::sqrt(sum_of(squares) / static_cast<float>(std::max<int64_t>(n - 1, 1)) + 1e-5f);
  const RowVector scale = hn::Set(d, r);
  for_each_vector(n, [&](auto access, int64_t j)
                         HWY_ATTR { access.store(hn::Mul(hn::Sub(access.load(x + j, 0.0f), mean), scale), x + j); });
  return r;
}

// g: gradient of standardised entries y -> of x: r (g - mean g) - y r Σ g y / (n - 1).
void standardise_backward(int64_t n, const float* y, float r, float* g) {
  const RowTag d;
  RowVector sum = hn::Zero(d), along = hn::Zero(d);
  for_each_vector(n, [&](auto access, int64_t j) HWY_ATTR {
    const RowVector v = access.load(g + j, 0.0f);
    sum = hn::Add(sum, v);
    along = hn::MulAdd(v, access.load(y + j, 0.0f), along);
  });
  const RowVector mean = hn::Set(d, sum_of(sum) / static_cast<float>(n)), scale = hn::Set(d, r);
  const RowVector share = hn::Set(d, sum_of(along) / static_cast<float>(std::max<int64_t>(n - 1, 1)));
  for_each_vector(n, [&](auto access, int64_t j) HWY_ATTR {
    const RowVector centred = hn::Sub(access.load(g + j, 0.0f), mean);
    access.store(hn::Mul(scale, hn::NegMulAdd(share, access.load(y + j, 0.0f), centred)), g + j);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace lra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lra {
namespace {

HWY_EXPORT(wave_forward);
HWY_EXPORT(wave_backward);
HWY_EXPORT(sin_softmax_forward);
HWY_EXPORT(sin_softmax_backward);
HWY_EXPORT(standardise);
HWY_EXPORT(standardise_backward);

// One of the above before `norm-`, with what its Jacobian is made of: ∂p_j/∂x_k = w_k ([j = k] - m p_j), m 1 or 0.
class Periodic : public ScoreActivation {
 public:
  virtual double jacobian_slope(const float* p, float x, int64_t k, const float* statistics) const = 0;
  virtual double jacobian_mean(const float* statistics) const = 0;

  std::optional<double> jacobian_square(const ScoreTile& tile, int64_t i, const float* p,
                                        const float* statistics) const override {
    const float* x = tile.s.row(i);
    const auto w = [&](int64_t k) { return jacobian_slope(p, x[k], k, statistics); };
    if (jacobian_mean(statistics) == 1.0) return ratio_jacobian_square(p, tile.keys(i), w);
    double sum = 0.0;
    for (int64_t k = 0; k < tile.keys(i); ++k) sum += w(k) * w(k);
    return sum;
  }
};

class WaveRatio final : public Periodic {
 public:
  explicit WaveRatio(WaveMap<double> wave) : wave_(wave) {}

  int statistics() const override { return 2; }
  void forward_begin(const ScoreTile& rows, float* statistics) const override {
    std::fill_n(statistics, 2 * rows.s.rows, 0.0f);
  }
  void forward(const ScoreTile& tile, float* statistics, float*) const override {
    HWY_DYNAMIC_DISPATCH(wave_forward)(wave_.wave, static_cast<float>(wave_.omega), tile, statistics, 2);
  }
  void forward_end(const ScoreTile& rows, float* statistics) const override {
    for (int64_t i = 0; i < rows.s.rows; ++i, statistics += 2) {
      const float z = statistics[0], floor = 1e-3f * static_cast<float>(rows.keys(i));
      const bool small = std::abs(z) < floor;
      statistics[0] = 1.0f / (small ? std::copysign(floor, z < 0.0f ? -1.0f : 1.0f) : z);
      statistics[1] = small ? 0.0f : 1.0f;
    }
  }
  void backward(const ScoreTile& tile, const float* statistics, const float* row_dots, Matrix g,
                const RowGradients&) const override {
    HWY_DYNAMIC_DISPATCH(wave_backward)(wave_.wave, static_cast<float>(wave_.omega), tile, statistics, 2, row_dots, g);
  }
  double jacobian_slope(const float*, float x, int64_t, const float* statistics) const override {
    return wave_.slope(x) * statistics[0];
  }
  double jacobian_mean(const float* statistics) const override { return statistics[1]; }

 private:
  WaveMap<double> wave_;
};

class SinSoftmax final : public Periodic {
 public:
  int statistics() const override { return 2; }
  void forward_begin(const ScoreTile& rows, float* statistics) const override {
    online_softmax_begin(rows, statistics);
  }
  void forward(const ScoreTile& tile, float* statistics, float* earlier) const override {
    HWY_DYNAMIC_DISPATCH(sin_softmax_forward)(tile, statistics, earlier);
  }
  void forward_end(const ScoreTile& rows, float* statistics) const override { online_softmax_end(rows, statistics); }
  void backward(const ScoreTile& tile, const float* statistics, const float* row_dots, Matrix g,
                const RowGradients&) const override {
    HWY_DYNAMIC_DISPATCH(sin_softmax_backward)(tile, statistics, row_dots, g);
  }
  double jacobian_slope(const float* p, float x, int64_t k, const float*) const override {
    return std::cos(static_cast<double>(x)) * p[k];
  }
  double jacobian_mean(const float*) const override { return 1.0; }
};

// The `norm-` forms, row by row. Statistics of a row: those of the activation, r.
class Standardised final : public ScoreActivation {
 public:
  explicit Standardised(std::unique_ptr<Periodic> inner) : inner_(std::move(inner)) {}

  bool whole_rows() const override { return true; }
  int statistics() const override { return inner_->statistics() + 1; }
  void forward(const ScoreTile& tile, float* statistics, float*) const override {
    for (int64_t i = 0; i < tile.s.rows; ++i, statistics += inner_->statistics() + 1) {
      const ScoreTile row = tile.row(i);
      statistics[inner_->statistics()] = HWY_DYNAMIC_DISPATCH(standardise)(tile.columns(i), row.s.data);
      float earlier = 1.0f;
      inner_->forward_begin(row, statistics);
      inner_->forward(row, statistics, &earlier);
      inner_->forward_end(row, statistics);
    }
  }
  void forward_end(const ScoreTile&, float*) const override {}
  void backward(const ScoreTile& tile, const float* statistics, const float* row_dots, Matrix gradients,
                const RowGradients& sums) const override {
    std::vector<float> y(tile.s.cols);
    for (int64_t i = 0; i < tile.s.rows; ++i, statistics += inner_->statistics() + 1) {
      const ScoreTile row = tile.row(i);
      const int64_t n = tile.columns(i);
      const float r = HWY_DYNAMIC_DISPATCH(standardise)(n, row.s.data);
      std::copy_n(row.s.data, n, y.data());
      inner_->backward(row, statistics, row_dots + i, gradients.row_block(i, 1), sums);
      HWY_DYNAMIC_DISPATCH(standardise_backward)(n, y.data(), r, gradients.row(i));
    }
  }
  // J = A B with A = diag(w) - m p wᵀ of the activation and B = r (I - 11ᵀ / n) - r y yᵀ / (n - 1) of the
  // standardisation, y its result. Column k is r w_k e_k - v_k, v_k in the span of p, A 1 and A y.
  std::optional<double> jacobian_square(const ScoreTile& tile, int64_t i, const float* p,
                                        const float* statistics) const override {
    const int64_t n = tile.keys(i);
    std::vector<float> y(tile.s.row(i), tile.s.row(i) + n);
    const double r = HWY_DYNAMIC_DISPATCH(standardise)(n, y.data());
    const double m = inner_->jacobian_mean(statistics), rest = static_cast<double>(std::max<int64_t>(n - 1, 1));
    std::vector<double> w(n);
    double sum_w = 0.0, sum_wy = 0.0;
    for (int64_t k = 0; k < n; ++k) {
      w[k] = inner_->jacobian_slope(p, y[k], k, statistics);
      sum_w += w[k];
      sum_wy += w[k] * y[k];
    }
    const auto of_one = [&](int64_t j) { return w[j] - m * p[j] * sum_w; };        // A 1
    const auto of_y = [&](int64_t j) { return w[j] * y[j] - m * p[j] * sum_wy; };  // A y
    double gram[3][3] = {};
    for (int64_t j = 0; j < n; ++j) {
      const double basis[3] = {p[j], of_one(j), of_y(j)};
      for (int a = 0; a < 3; ++a) {
        for (int b = 0; b < 3; ++b) gram[a][b] += basis[a] * basis[b];
      }
    }
    double sum = 0.0;
    for (int64_t k = 0; k < n; ++k) {
      const double c[3] = {r * m * w[k], r / static_cast<double>(n), r * y[k] / rest};
      const double own = r * w[k], at_k = c[0] * p[k] + c[1] * of_one(k) + c[2] * of_y(k);
      sum += own * own - 2.0 * own * at_k;
      for (int a = 0; a < 3; ++a) {
        for (int b = 0; b < 3; ++b) sum += c[a] * c[b] * gram[a][b];
      }
    }
    return sum;
  }

 private:
  std::unique_ptr<Periodic> inner_;
};

struct Name {
  const char* name;
  Wave wave;
  const char* idea;
};
constexpr Name kNames[] = {{"sin-max", Wave::kSin, "sin x / Σ sin x"},
                           {"sin-max-const", Wave::kSinConst, "(1 + sin ωx) / Σ"},
                           {"cos-max", Wave::kCos, "cos x / Σ cos x"},
                           {"sin2-max", Wave::kSin2, "sin² x / Σ"},
                           {"sin2-max-shift", Wave::kSin2Shift, "sin²(x + π/4) / Σ"},
                           {"siren-max", Wave::kSiren, "a / Σ a, a = (1 + sin x) / (2 − 2 sin x)"}};

ref::Row standardised(ref::Row x) {
  const double n = static_cast<double>(x.size());
  double mean = 0.0, squares = 0.0;
  for (const double value : x) mean += value / n;
  for (const double value : x) squares += (value - mean) * (value - mean);
  for (double& value : x) value = (value - mean) / std::sqrt(squares / std::max(n - 1.0, 1.0) + 1e-5);
  return x;
}

AttentionFamily family(const std::string& name, bool normed,
                       const std::function<std::unique_ptr<Periodic>(const AttentionSpec&)>& make,
                       const std::function<ref::Row(const AttentionSpec&, const ref::Row&)>& weights,
                       const std::string& idea) {
  const std::string full = (normed ? "norm-" : "") + name;
  return {.name = full,
          .idea = normed ? name + " of the standardised row" : idea,
          .source = "arXiv 2108.07153",
          .kind = "row-wise",
          .cost = name == "sin-softmax" ? "4f + 2E" : "3f + 1E",
          .ours = name == "sin-softmax" ? "" : "|Σ| at least 1e-3 n",
          .causal = true,
          .make = [normed, make](const AttentionSpec& spec,
                                 const AttentionShape& shape) -> std::unique_ptr<AttentionKernel> {
            if (!normed) return make_tiled(spec, shape, make(spec));
            return make_tiled(spec, shape, std::make_unique<Standardised>(make(spec)));
          },
          .reference = ref::rows([normed, weights](const ref::RowPlace& row, const ref::Row& x) {
            return weights(row.problem.spec, normed ? standardised(x) : x);
          }),
          .examples = {full, full + ":causal=1"}};
}

WaveMap<double> wave_of(const AttentionSpec& spec, Wave wave) {
  return {wave, wave == Wave::kSinConst ? spec.real("omega") : 1.0};
}

}  // namespace

std::vector<AttentionFamily> periodic_families() {
  std::vector<AttentionFamily> all;
  for (const bool normed : {false, true}) {
    for (const auto& [name, wave, idea] : kNames) {
      all.push_back(family(
          name, normed,
          [wave = wave](const AttentionSpec& spec) { return std::make_unique<WaveRatio>(wave_of(spec, wave)); },
          [wave = wave](const AttentionSpec& spec, const ref::Row& x) {
            ref::Row p(x.size());
            double z = 0.0;
            for (size_t j = 0; j < x.size(); ++j) z += p[j] = wave_of(spec, wave).value(x[j]);
            const double floor = 1e-3 * static_cast<double>(x.size());
            if (std::abs(z) < floor) z = z < 0.0 ? -floor : floor;
            for (double& value : p) value /= z;
            return p;
          },
          idea));
      if (wave != Wave::kSinConst) continue;
      all.back().options = {{"omega", AttentionOption::Kind::kReal, "1", {}, "ω"}};
      all.back().examples.push_back(all.back().name + ":omega=10");
    }
    all.push_back(family(
        "sin-softmax", normed, [](const AttentionSpec&) { return std::make_unique<SinSoftmax>(); },
        [](const AttentionSpec&, ref::Row x) {
          for (double& value : x) value = std::sin(value);
          return ref::softmax(x);
        },
        "softmax(sin x)"));
  }
  return all;
}

}  // namespace lra
#endif
