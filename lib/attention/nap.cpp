// Normalised attention: P_j = γ (x_j - mean x) / (sd + 1e-3) + b, x = q·k without 1 / sqrt(D), sd the population
// deviation, γ and b learnt a head (Richter & Wattenhofer 2020, "Normalized Attention Without Probability Cage", arXiv
// 2005.09561); the heads' outputs together go through LayerNorm and GELU. Statistics of a row: 1, mean, 1 / (sd +
// 1e-3), sd. The linear form: centred_linear.h.
#include <cmath>

#include "lib/attention/centred_linear.h"
#include "lib/attention/centred_rows.h"
#include "lib/attention/families.h"
#include "lib/attention/score_activation.h"
#include "lib/ops/activations.h"
#include "lib/ops/layer_norm.h"

namespace lra {
namespace {

class Nap final : public ScoreActivation {
 public:
  bool whole_rows() const override { return true; }
  double score_scale(int64_t) const override { return 1.0; }
  int statistics() const override { return 4; }
  void forward(const ScoreTile& tile, float* statistics, float*) const override {
    for (int64_t i = 0; i < tile.s.rows; ++i, statistics += 4) {
      const int64_t n = tile.columns(i);
      float* s = tile.s.row(i);
      const float mean = row_mean(n, s);
      const float sd = std::sqrt(row_squares(n, s, mean) / static_cast<float>(n));
      statistics[0] = 1.0f;
      statistics[1] = mean;
      statistics[2] = 1.0f / (sd + kNapEpsilon);
      statistics[3] = sd;
      weigh(tile, i, statistics);
    }
  }
  void forward_end(const ScoreTile&, float*) const override {}
  // dx = γ [(g - mean g) r - c r² Σ g c / (n sd)], c = x - mean, r = 1 / (sd + 1e-3).
  void backward(const ScoreTile& tile, const float* statistics, const float*, Matrix gradients,
                const RowGradients& sums) const override {
    for (int64_t i = 0; i < tile.s.rows; ++i, statistics += 4) {
      const auto n = static_cast<float>(tile.columns(i));
      float *s = tile.s.row(i), *g = gradients.row(i);
      const float mean = statistics[1], r = statistics[2], sd = statistics[3], gain = tile.parameters[0][tile.head];
      const auto [sum, along] = row_sums(tile.row_kept(i), tile.columns(i), s, mean, g);
      const float share = sd > 0.0f ? gain * r * r * along / (n * sd) : 0.0f;
      row_pull_back(tile.row_kept(i), tile.columns(i), s, mean, gain * r, sum / n, share, g);
      sums.parameters[0][tile.head] += along * r;
      sums.parameters[1][tile.head] += sum;
      weigh(tile, i, statistics);
    }
  }
  // γ² (n - 1 - 2 ρ + ρ²) / (sd + 1e-3)², ρ = sd / (sd + 1e-3).
  std::optional<double> jacobian_square(const ScoreTile& tile, int64_t i, const float*,
                                        const float* statistics) const override {
    const double n = static_cast<double>(tile.keys(i)), r = statistics[2], ratio = statistics[3] * r;
    const double gain = tile.parameters[0][tile.head];
    return gain * gain * r * r * (n - 1.0 - 2.0 * ratio + ratio * ratio);
  }

 private:
  static void weigh(const ScoreTile& tile, int64_t i, const float* statistics) {
    row_affine(tile.row_kept(i), tile.columns(i), statistics[1], tile.parameters[0][tile.head] * statistics[2],
               tile.parameters[1][tile.head], tile.s.row(i));
  }
};

// LayerNorm and exact GELU of a token's outputs of all heads together.
class NormGelu final : public OutputMap {
 public:
  explicit NormGelu(const AttentionShape& shape) : width_(shape.heads * shape.head_dim) {}
  static constexpr float kEpsilon = 1e-5f;

  std::vector<KernelParameter> parameters() const override {
    return {{"norm.weight", {width_}, start_constant(1.0)}, {"norm.bias", {width_}, start_constant(0.0)}};
  }
  void forward(const AttentionInput& in, ConstMatrix y, Matrix out) const override {
    std::vector<float> statistics(2 * y.rows);
    layer_norm_forward(y, in.parameters[0], in.parameters[1], kEpsilon, out, statistics.data(),
                       statistics.data() + y.rows);
    gelu_forward(Gelu::kExact, out, out);
  }
  void backward(const AttentionInput& in, ConstMatrix y, ConstMatrix d_out, Matrix dy, Matrix,
                std::span<float* const> d_parameters) const override {
    std::vector<float> statistics(2 * y.rows), normed(y.rows * width_), d_normed(y.rows * width_), unused(2 * width_);
    const Matrix norm(normed.data(), y.rows, width_), d_norm(d_normed.data(), y.rows, width_);
    layer_norm_forward(y, in.parameters[0], in.parameters[1], kEpsilon, norm, statistics.data(),
                       statistics.data() + y.rows);
    gelu_backward(Gelu::kExact, norm, d_out, d_norm);
    for (int64_t i = 0; i < dy.rows; ++i) std::fill_n(dy.row(i), width_, 0.0f);
    layer_norm_backward(y, in.parameters[0], statistics.data(), statistics.data() + y.rows, d_norm, dy,
                        d_parameters[0] != nullptr ? d_parameters[0] : unused.data(),
                        d_parameters[1] != nullptr ? d_parameters[1] : unused.data() + width_);
  }

 private:
  int64_t width_;
};

void norm_gelu_reference(const ref::AttentionProblem& problem, ref::Row& out) {
  const int64_t width = problem.shape.heads * problem.shape.head_dim;
  for (int64_t i = 0; i < problem.tokens(); ++i) {
    double* o = out.data() + i * width;
    double mean = 0.0, squares = 0.0;
    for (int64_t c = 0; c < width; ++c) mean += o[c] / static_cast<double>(width);
    for (int64_t c = 0; c < width; ++c) squares += (o[c] - mean) * (o[c] - mean) / static_cast<double>(width);
    for (int64_t c = 0; c < width; ++c) {
      const double y = problem.parameters[2][c] * (o[c] - mean) / std::sqrt(squares + 1e-5) + problem.parameters[3][c];
      o[c] = 0.5 * y * (1.0 + std::erf(y / std::sqrt(2.0)));
    }
  }
}

}  // namespace

std::vector<AttentionFamily> nap_families() {
  return {{.name = "nap",
           .options = {centred_form_option()},
           .idea = "γ (x − mean)/(sd + 1e-3) + b, x = q·k; outputs through LayerNorm and GELU",
           .source = "arXiv 2005.09561",
           .kind = "row-wise",
           .cost = "6f, or O(N D²)",
           .linear = "exact",
           .ours = "the source's other changes of the block are not made",
           .causal = true,
           .make =
               [](const AttentionSpec& spec, const AttentionShape& shape) {
                 std::vector<KernelParameter> parameters = {{"gain", {shape.heads}, start_constant(1.0)},
                                                            {"bias", {shape.heads}, start_constant(0.0)}};
                 return choose_centred_form(
                     CentredLinear::kNap, [&] { return make_tiled(spec, shape, std::make_unique<Nap>(), parameters); });
               },
           .finish = [](const AttentionSpec&, const AttentionShape& shape) -> std::unique_ptr<OutputMap> {
             return std::make_unique<NormGelu>(shape);
           },
           .reference = ref::rows([](const ref::RowPlace& row, const ref::Row& x) {
             const double n = static_cast<double>(x.size()), scale = std::sqrt(row.problem.shape.head_dim);
             double mean = 0.0, squares = 0.0;
             for (const double value : x) mean += scale * value / n;
             for (const double value : x) squares += (scale * value - mean) * (scale * value - mean) / n;
             ref::Row p(x.size());
             for (size_t j = 0; j < x.size(); ++j) {
               p[j] = row.parameter(0) * (scale * x[j] - mean) / (std::sqrt(squares) + 1e-3) + row.parameter(1);
             }
             return p;
           }),
           .finish_reference = norm_gelu_reference,
           .examples = {"nap", "nap:form=linear", "nap:form=quadratic", "nap:causal=1", "nap:form=linear,causal=1",
                        "nap:form=quadratic,causal=1", "nap+xsa"}}};
}

}  // namespace lra
