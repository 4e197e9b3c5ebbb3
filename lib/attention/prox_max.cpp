// Structured projections (Niculae & Blondel 2017, "A Regularized Framework for Sparse and Structured Neural Attention",
// arXiv 1705.07704): sparsemax of a proximal map of the row.
// `fusedmax`: prox of λ Σ |x_{j+1} - x_j| along the keys, by Condat's direct algorithm (2013, IEEE SPL 20).
// `oscarmax`: prox of OSCAR, weights β (n - i) on the i-th largest |x|, by sorting and pooling adjacent violators.
// Both make groups of entries with one value (of one magnitude). Backward: sparsemax's, then the mean over each group.
// One row after another on one thread, in double. Statistics of a row: 1, τ.
#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "lib/attention/entmax.h"
#include "lib/attention/families.h"
#include "lib/attention/score_activation.h"
#include "lib/attention/total_variation.h"
#include "lib/util/check.h"

namespace lra {
namespace {

// What a proximal map makes of a row: values, and of each entry its group (-1: held at 0) and its sign in it.
struct Groups {
  std::vector<double> y;
  std::vector<int32_t> group;
  std::vector<int8_t> sign;
  int32_t count = 0;

  explicit Groups(int64_t n) : y(n), group(n, -1), sign(n, 1) {}
};

Groups total_variation_groups(const float* x, int64_t n, double weight) {
  Groups out(n);
  total_variation(x, n, weight, [&](int64_t first, int64_t last, double value) {
    for (int64_t j = first; j <= last; ++j) out.y[j] = value, out.group[j] = out.count;
    ++out.count;
  });
  return out;
}

// Bits of |x|, which order as |x| does, NaN last.
uint32_t magnitude(float x) { return std::bit_cast<uint32_t>(std::abs(x)); }

// Entries in falling order of |x|, equal ones in their own.
std::vector<int64_t> falling_magnitudes(const float* x, int64_t n) {
  std::vector<uint64_t> keys(n);
  for (int64_t j = 0; j < n; ++j) {
    keys[j] = static_cast<uint64_t>(~magnitude(x[j])) << 32 | static_cast<uint32_t>(j);
  }
  std::ranges::sort(keys);
  std::vector<int64_t> order(n);
  for (int64_t i = 0; i < n; ++i) order[i] = static_cast<uint32_t>(keys[i]);
  return order;
}

Groups oscar(const float* x, int64_t n, double beta) {
  Groups out(n);
  // The first of the blocks below has the greatest mean of all first m numbers, at most max |x| - beta (n - 1) / 2 (at
  // m = n): at the lengths of the tasks this mostly says that all is held at 0.
  uint32_t most = 0;
  for (int64_t j = 0; j < n; ++j) most = std::max(most, magnitude(x[j]));
  if (std::bit_cast<float>(most) <= beta * static_cast<double>(n - 1) / 2.0) return out;
  const std::vector<int64_t> order = falling_magnitudes(x, n);
  struct Block {
    double sum;
    int64_t length;
    double mean() const { return sum / static_cast<double>(length); }
  };
  std::vector<Block> blocks;  // means fall
  for (int64_t i = 0; i < n; ++i) {
    blocks.push_back({std::abs(x[order[i]]) - beta * static_cast<double>(n - 1 - i), 1});
    while (blocks.size() > 1 && blocks.back().mean() >= blocks[blocks.size() - 2].mean()) {
      const Block last = blocks.back();
      blocks.pop_back();
      blocks.back().sum += last.sum, blocks.back().length += last.length;
    }
  }
  int64_t at = 0;
  for (const Block& block : blocks) {
    for (const int64_t end = at + block.length; at < end; ++at) {
      const int64_t j = order[at];
      out.sign[j] = static_cast<int8_t>((x[j] > 0.0f) - (x[j] < 0.0f));
      out.y[j] = out.sign[j] * std::max(block.mean(), 0.0);
      out.group[j] = block.sum > 0.0 ? out.count : -1;
    }
    ++out.count;
  }
  return out;
}

class ProxMax final : public ScoreActivation {
 public:
  using Prox = Groups (*)(const float* x, int64_t n, double weight);
  ProxMax(Prox prox, double weight) : prox_(prox), weight_(weight) {}

  bool whole_rows() const override { return true; }
  int statistics() const override { return 2; }
  void forward(const ScoreTile& tile, float* statistics, float*) const override {
    std::vector<float> scratch(tile.s.cols + kEntmaxSlack);
    for (int64_t i = 0; i < tile.s.rows; ++i) {
      const int64_t n = tile.columns(i);
      float* s = tile.s.row(i);
      const Groups groups = prox_(s, n, weight_);
      std::copy_n(groups.y.begin(), n, s);
      entmax_row(2.0f, tile.row_kept(i), n, s, scratch.data(), statistics + 2 * i);
    }
  }
  void forward_end(const ScoreTile&, float*) const override {}
  void backward(const ScoreTile& tile, const float* statistics, const float*, Matrix gradients,
                const RowGradients&) const override {
    for (int64_t i = 0; i < tile.s.rows; ++i) {
      const int64_t n = tile.columns(i);
      float *s = tile.s.row(i), *g = gradients.row(i);
      const Groups groups = prox_(s, n, weight_);
      std::copy_n(groups.y.begin(), n, s);
      entmax_row_backward(2.0f, false, tile.row_kept(i), n, statistics + 2 * i, s, g);
      std::vector<double> sum(groups.count), size(groups.count);
      for (int64_t j = 0; j < n; ++j) {
        if (groups.group[j] < 0) continue;
        sum[groups.group[j]] += groups.sign[j] * static_cast<double>(g[j]);
        size[groups.group[j]] += 1.0;
      }
      for (int64_t j = 0; j < n; ++j) {
        const int32_t group = groups.group[j];
        g[j] = group < 0 ? 0.0f : static_cast<float>(groups.sign[j] * sum[group] / size[group]);
      }
    }
  }
  // Of a group of m entries of which a lie in the support, σ the sum of their signs, k the size of the support: the sum
  // of (a - σ² / k) / m.
  std::optional<double> jacobian_square(const ScoreTile& tile, int64_t i, const float* p, const float*) const override {
    const int64_t n = tile.keys(i);
    const Groups groups = prox_(tile.s.row(i), n, weight_);
    std::vector<double> size(groups.count), inside(groups.count), signs(groups.count);
    double support = 0.0, sum = 0.0;
    for (int64_t j = 0; j < n; ++j) {
      support += p[j] > 0.0f ? 1.0 : 0.0;
      if (groups.group[j] < 0) continue;
      size[groups.group[j]] += 1.0;
      if (p[j] > 0.0f) inside[groups.group[j]] += 1.0, signs[groups.group[j]] += groups.sign[j];
    }
    for (int32_t g = 0; g < groups.count; ++g) {
      if (size[g] > 0.0) sum += (inside[g] - signs[g] * signs[g] / support) / size[g];
    }
    return sum;
  }

 private:
  Prox prox_;
  double weight_;
};

// argmin of the total variation problem by its dual, projected gradient steps: slow, apart from the code above.
ref::Row total_variation_reference(const ref::Row& x, double weight) {
  const size_t n = x.size();
  std::vector<double> u(n + 1, 0.0);  // y_j = x_j + u_{j+1} - u_j, |u| <= weight, u_0 = u_n = 0
  // Coordinate descent: each u_j in turn to its best value; linear convergence, so many sweeps.
  for (int sweep = 0; sweep < 20000; ++sweep) {
    double moved = 0.0;
    for (size_t j = 1; j < n; ++j) {
      const double best = std::clamp((x[j] + u[j + 1] - x[j - 1] + u[j - 1]) / 2.0, -weight, weight);
      moved = std::max(moved, std::abs(best - u[j]));
      u[j] = best;
    }
    if (moved < 1e-14) break;
  }
  ref::Row y(n);
  for (size_t j = 0; j < n; ++j) y[j] = x[j] + u[j + 1] - u[j];
  return y;
}

// Prox of OSCAR through the definition of its minimum over all ways to cut the sorted row into groups is exponential;
// this is the min-max formula of isotonic regression instead: value i is max over b >= i of min over a <= i of the mean
// of a … b, for a falling fit.
ref::Row oscar_reference(const ref::Row& x, double beta) {
  const int64_t n = std::ssize(x);
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return std::abs(x[a]) > std::abs(x[b]); });
  std::vector<double> sums(n + 1, 0.0);
  for (int64_t i = 0; i < n; ++i) {
    sums[i + 1] = sums[i] + std::abs(x[order[i]]) - beta * static_cast<double>(n - 1 - i);
  }
  ref::Row y(n);
  for (int64_t i = 0; i < n; ++i) {
    double value = INFINITY;
    for (int64_t a = 0; a <= i; ++a) {
      double best = -INFINITY;
      for (int64_t b = i; b < n; ++b) best = std::max(best, (sums[b + 1] - sums[a]) / static_cast<double>(b + 1 - a));
      value = std::min(value, best);
    }
    const double sign = x[order[i]] > 0.0 ? 1.0 : x[order[i]] < 0.0 ? -1.0 : 0.0;
    y[order[i]] = sign * std::max(value, 0.0);
  }
  return y;
}

AttentionFamily family(const std::string& name, const std::string& key, const std::string& help, ProxMax::Prox prox,
                       ref::Row (*reference)(const ref::Row&, double)) {
  return {.name = name,
          .options = {{key, AttentionOption::Kind::kReal, "0.1", {}, help}},
          .source = "arXiv 1705.07704",
          .kind = "row-wise",
          .causal = true,
          .validate =
              [name, key](const AttentionSpec& spec) {
                if (spec.real(key) < 0.0) {
                  throw UsageError("attention {}: {}={} must not be negative", name, key, spec.get(key));
                }
              },
          .make =
              [key, prox](const AttentionSpec& spec, const AttentionShape& shape) {
                return make_tiled(spec, shape, std::make_unique<ProxMax>(prox, spec.real(key)));
              },
          .reference = ref::rows([key, reference](const ref::RowPlace& row, const ref::Row& x) {
            return ref::entmax(reference(x, row.problem.spec.real(key)), 2.0);
          }),
          .examples = {name, name + ":causal=1"},
          .slow_reference = true};
}

}  // namespace

std::vector<AttentionFamily> prox_max_families() {
  AttentionFamily fusedmax =
      family("fusedmax", "lambda", "weight of |x_{j+1} − x_j|", total_variation_groups, total_variation_reference);
  fusedmax.idea = "sparsemax(prox of λ Σ |x_{j+1} − x_j|)";
  fusedmax.cost = "O(n) a row, one entry after another";
  fusedmax.examples.emplace_back("fusedmax:lambda=0.5");
  AttentionFamily oscarmax = family("oscarmax", "beta", "weight of the pairs", oscar, oscar_reference);
  oscarmax.idea = "sparsemax(prox of OSCAR)";
  oscarmax.cost = "O(n log n) a row, one entry after another";
  oscarmax.ours = "β 0.1; its weights grow with n: at 1,000 keys and more nearly all is 0";
  oscarmax.examples.emplace_back("oscarmax:beta=0.01");
  return {fusedmax, oscarmax};
}

}  // namespace lra
