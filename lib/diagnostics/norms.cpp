#include "lib/diagnostics/norms.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lib/diagnostics/norm_sums.h"
#include "lib/diagnostics/row_statistics.h"

namespace lra {
namespace {

bool untouched(double sum) { return sum == 0.0 && std::signbit(sum); }

double ratio(double a, double b) { return b > 0.0 ? a / b : kUndefined; }

}  // namespace

void MatrixSums::add(const WeightRow& row) {
  const RowStatistics p = row_statistics(row.weights);
  ++rows;
  entries += std::ssize(row.weights);
  square_sum += p.square_sum;
  jacobian_square += row.jacobian_square.value_or(kUndefined);
  if (!row.scores.empty()) {
    const double largest = largest_magnitude(row.scores);
    max_score = std::isnan(max_score) ? largest : std::max(max_score, largest);
  }
  if (p.absolute_sum > 0.0) {
    entropy += p.entropy;
    ++entropy_rows;
    if (p.largest > 0.99 * p.absolute_sum) ++saturated;
  }
  negative += p.negative;
}

ExampleSums::ExampleSums(int sequences, int layers, int heads)
    : sequences_(sequences),
      layers_(static_cast<size_t>(layers)),
      heads_(static_cast<size_t>(heads)),
      matrices_(static_cast<size_t>(sequences) * layers_ * heads_),
      gradient_squares_(matrices_.size(), kUntouched) {}

void ExampleSums::attention(const AttentionKernel& kernel, const AttentionInput& in, Arena& arena) {
  if (!kernel.has_weights()) return;
  const size_t first = index(static_cast<int>(in.example), in.layer, 0);
  for (size_t head = 0; head < heads_; ++head) matrices_[first + head].tokens = in.q.rows;
  kernel.visit_weights(in, arena,
                       [&](const WeightRow& row) { matrices_[first + static_cast<size_t>(row.head)].add(row); });
}

double* ExampleSums::score_gradient_squares(const AttentionInput& in) {
  return &gradient_squares_[index(static_cast<int>(in.example), in.layer, 0)];
}

AttentionNorms summarise_norms(std::span<const ExampleSums> examples, int layer, int head) {
  std::vector<double> frobenius;
  double per_root = 0.0, jacobian = 0.0, gradient = 0.0, max_score = 0.0, entropy = 0.0;
  int64_t rows = 0, entries = 0, entropy_rows = 0, saturated = 0, negative = 0;
  for (const ExampleSums& example : examples) {
    for (int sequence = 0; sequence < example.sequences(); ++sequence) {
      const size_t i = example.index(sequence, layer, head);
      const MatrixSums& sums = example.matrix(i);
      if (sums.tokens == 0) continue;
      frobenius.push_back(std::sqrt(sums.square_sum));
      per_root += frobenius.back() / std::sqrt(static_cast<double>(sums.tokens));
      jacobian += std::sqrt(sums.jacobian_square);
      const double square = example.score_gradient_square(i);
      gradient += untouched(square) ? kUndefined : std::sqrt(square);
      // Of a kernel without scores all are NaN.
      if (!(max_score >= sums.max_score)) max_score = sums.max_score;
      entropy += sums.entropy;
      entropy_rows += sums.entropy_rows;
      rows += sums.rows, entries += sums.entries;
      saturated += sums.saturated, negative += sums.negative;
    }
  }
  const auto count = static_cast<double>(frobenius.size());
  AttentionNorms norms;
  norms.layer = layer, norms.head = head;
  norms.matrices = std::ssize(frobenius);
  norms.frobenius_mean = ratio(std::accumulate(frobenius.begin(), frobenius.end(), 0.0), count);
  double spread = 0.0;
  for (const double norm : frobenius) spread += (norm - norms.frobenius_mean) * (norm - norms.frobenius_mean);
  norms.frobenius_std = std::sqrt(ratio(spread, count - 1.0));
  norms.frobenius_per_sqrt_n = ratio(per_root, count);
  norms.jacobian = ratio(jacobian, count);
  norms.score_gradient = ratio(gradient, count);
  norms.max_score = frobenius.empty() ? kUndefined : max_score;
  norms.entropy = ratio(entropy, static_cast<double>(entropy_rows));
  norms.saturated_share = ratio(static_cast<double>(saturated), static_cast<double>(rows));
  norms.negative_share = ratio(static_cast<double>(negative), static_cast<double>(entries));
  return norms;
}

std::vector<AttentionNorms> measure_norms(const Classifier& model, std::span<const Example> examples,
                                          const Fork* fork) {
  const ModelConfig& config = model.config();
  std::vector<ExampleSums> sums(examples.size());
  Arena own;
  run_parts(fork, std::ssize(examples), own, [&](int64_t i, Arena& arena) {
    ExampleSums& example = sums[static_cast<size_t>(i)];
    example = ExampleSums(config.pair ? 2 : 1, config.layers, config.heads);
    const int64_t size = model.layout().size();
    const std::span<float> gradients(arena.floats(size), static_cast<size_t>(size));
    std::fill(gradients.begin(), gradients.end(), 0.0f);
    model.differentiate(examples[static_cast<size_t>(i)], gradients, arena, &example);
  });
  std::vector<AttentionNorms> norms;
  for (int layer = 0; layer < config.layers; ++layer) {
    for (int head = 0; head < config.heads; ++head) norms.push_back(summarise_norms(sums, layer, head));
  }
  return norms;
}

Json norms_to_json(const AttentionNorms& n, int64_t step) {
  const auto number = [](double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); };
  return {{"step", step},
          {"layer", n.layer},
          {"head", n.head},
          {"frobenius_mean", number(n.frobenius_mean)},
          {"frobenius_std", number(n.frobenius_std)},
          {"frobenius_per_sqrt_n", number(n.frobenius_per_sqrt_n)},
          {"jacobian", number(n.jacobian)},
          {"jacobian_exact", std::isfinite(n.jacobian) ? Json(true) : Json(nullptr)},
          {"score_gradient", number(n.score_gradient)},
          {"max_score", number(n.max_score)},
          {"entropy", number(n.entropy)},
          {"saturated_share", number(n.saturated_share)},
          {"negative_share", number(n.negative_share)}};
}

}  // namespace lra
