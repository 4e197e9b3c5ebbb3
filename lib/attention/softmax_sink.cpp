// Softmax with a key that takes weight and gives nothing: P_j = e^x_j / (e^b + Σ e^x), b = 0 (`softmax1`: Miller 2023,
// "Attention is off by one"; Kaul et al. 2024, arXiv 2410.17174) or learnt a head (`softmax-sink`). It is softmax over
// one more key of score b and value 0. Backward as softmax; db = -p_b Σ p g.
#include <cmath>

#include "lib/attention/families.h"
#include "lib/attention/online_softmax.h"

namespace lra {
namespace {

class SoftmaxSink final : public OnlineSoftmax {
 public:
  explicit SoftmaxSink(bool learnt) : learnt_(learnt) {}

  // The sink is the first key that a row meets.
  void forward_begin(const ScoreTile& rows, float* statistics) const override {
    for (int64_t i = 0; i < rows.s.rows; ++i) statistics[2 * i] = 1.0f, statistics[2 * i + 1] = sink(rows);
  }
  void forward(const ScoreTile& tile, float* statistics, float* earlier) const override {
    softmax_rows_forward(tile, statistics, earlier);
  }
  void backward(const ScoreTile& tile, const float* statistics, const float* row_dots, Matrix g,
                const RowGradients& gradients) const override {
    softmax_rows_backward(tile, statistics, row_dots, g);
    if (!learnt_ || tile.key > 0) return;  // once a row
    for (int64_t i = 0; i < tile.s.rows; ++i) {
      const float weight = std::exp(sink(tile) - statistics[2 * i + 1]) * statistics[2 * i];
      gradients.parameters[0][tile.head] -= weight * row_dots[i];
    }
  }
  std::optional<double> jacobian_square(const ScoreTile& tile, int64_t i, const float* p, const float*) const override {
    return ratio_jacobian_square(
        p, tile.keys(i), [&](int64_t k) { return p[k]; }, false);
  }

 private:
  float sink(const ScoreTile& tile) const { return learnt_ ? tile.parameters[0][tile.head] : 0.0f; }

  bool learnt_;
};

AttentionFamily family(bool learnt) {
  const std::string name = learnt ? "softmax-sink" : "softmax1";
  return {.name = name,
          .idea = learnt ? "e^x / (e^b + Σ e^x), b learnt a head" : "e^x / (1 + Σ e^x)",
          .source = learnt ? "arXiv 2410.17174" : "Miller 2023; arXiv 2410.17174",
          .kind = "row-wise",
          .cost = "4f + 1E",
          .causal = true,
          .make =
              [learnt](const AttentionSpec& spec, const AttentionShape& shape) {
                std::vector<KernelParameter> parameters;
                if (learnt) parameters.push_back({"sink", {shape.heads}, start_constant(0.0)});
                return make_tiled(spec, shape, std::make_unique<SoftmaxSink>(learnt), std::move(parameters));
              },
          .reference = ref::rows([learnt](const ref::RowPlace& row, const ref::Row& x) {
            ref::Row longer = x;
            longer.push_back(learnt ? row.parameter(0) : 0.0);
            ref::Row p = ref::softmax(longer);
            p.pop_back();
            return p;
          }),
          .examples = {name, name + ":causal=1"}};
}

}  // namespace

std::vector<AttentionFamily> softmax_sink_families() { return {family(false), family(true)}; }

}  // namespace lra
