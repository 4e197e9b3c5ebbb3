// Kernels of fox and fox-bi (arXiv 2503.02130): softmax(x_ij + c_i - c_j) over j <= i, or softmax(x_ij - |c_i - c_j|),
// c the sums of log forget gates.
#include "lib/device/forget.h"
#include "lib/device/score_rows.h"
#include "lib/device/softmax_row.h"

namespace lra::device {
namespace {

// dD_ij / dc_i; that by c_j is its negative.
LRA_KERNEL float side(int64_t i, int64_t j, bool both) { return j < i ? 1.0f : j > i && both ? -1.0f : 0.0f; }

struct Forget {
  static constexpr int kNumbers = 0;
  bool both;

  Forget bound(std::span<const float* const>) const { return *this; }
  struct Row {
    const float* c;  // of the row's sequence and head
    int64_t heads;
    float own;
    bool both;

    LRA_KERNEL float z(int64_t j, float x) const {
      const float difference = own - c[j * heads];
      return x + (both ? -std::abs(difference) : difference);
    }
  };
  LRA_KERNEL Row at(const ScoreRow& row) const {
    const float* c = row.context + row.first * row.heads + row.head;
    return {c, row.heads, c[row.query * row.heads], both};
  }
  LRA_KERNEL void forward(const Team& team, const ScoreRow& row, float* s) const {
    const Row r = at(row);
    const SoftmaxRow p = SoftmaxRow::of(team, row.n, [=](int64_t j) { return r.z(j, s[j]); });
    team.for_each(row.n, [=](int64_t j) { s[j] = p.weight(r.z(j, s[j])); });
  }
  LRA_KERNEL void backward(const Team& team, const ScoreRow& row, float* s, float* g, float*) const {
    const Row r = at(row);
    const SoftmaxRow p = SoftmaxRow::of(team, row.n, [=](int64_t j) { return r.z(j, s[j]); });
    const float t = team.sum(row.n, [=](int64_t j) { return p.weight(r.z(j, s[j])) * g[j]; });
    team.for_each(row.n, [=](int64_t j) {
      s[j] = p.weight(r.z(j, s[j]));
      g[j] = s[j] * (g[j] - t);
    });
    const bool two = both;
    const float sum = team.sum(row.n, [=](int64_t j) { return side(row.query, j, two) * g[j]; });
    team.for_each(1, [=](int64_t) { row.d_context[(row.first + row.query) * row.heads + row.head] += sum; });
  }
};

LRA_KERNEL double log_sigmoid(double x) { return (x < 0.0 ? x : 0.0) - std::log1p(std::exp(-std::abs(x))); }

}  // namespace

std::unique_ptr<ScoreRows> forget_maps(bool both) { return mapped_rows(Forget{both}); }

void add_forget_columns(Context c, const ScorePanel& panel, bool both) {
  const int64_t heads = panel.heads;
  launch(c.device, panel.count * heads, 256, [=] LRA_KERNEL(Team & team) {
    const int64_t head = team.block() % heads;
    const ScoreRow row = score_row(panel, team.block() * panel.queries);  // the first of the sequence and head
    const int64_t rows = std::min(panel.queries, row.tokens - panel.first_query);
    team.for_each(row.tokens, [=](int64_t j) {
      float sum = 0.0f;
      for (int64_t i = 0; i < rows; ++i) sum += side(panel.first_query + i, j, both) * row.g[i * row.padded + j];
      row.d_context[(row.first + j) * heads + head] -= sum;
    });
  });
}

void forget_sums(Context c, const RaggedBatch& batch, int64_t heads, const float* logits, float* sums) {
  const int64_t* first = batch.sequence_first;
  launch(c.device, batch.sequences * heads, kWarp, [=] LRA_KERNEL(Team & team) {
    const int64_t s = team.block() / heads, head = team.block() % heads;
    team.for_each(1, [=](int64_t) {
      double sum = 0.0;  // differences of sums over thousands of tokens count
      for (int64_t t = first[s]; t < first[s + 1]; ++t) {
        sum += log_sigmoid(static_cast<double>(logits[t * heads + head]));
        sums[t * heads + head] = static_cast<float>(sum);
      }
    });
  });
}

void forget_sums_backward(Context c, const RaggedBatch& batch, int64_t heads, const float* logits, const float* d_sums,
                          float* d_logits) {
  const int64_t* first = batch.sequence_first;
  launch(c.device, batch.sequences * heads, kWarp, [=] LRA_KERNEL(Team & team) {
    const int64_t s = team.block() / heads, head = team.block() % heads;
    team.for_each(1, [=](int64_t) {
      double sum = 0.0;  // dlog f_t = Σ_{m >= t} dc_m
      for (int64_t t = first[s + 1] - 1; t >= first[s]; --t) {
        sum += static_cast<double>(d_sums[t * heads + head]);
        d_logits[t * heads + head] =
            static_cast<float>(sum / (1.0 + std::exp(static_cast<double>(logits[t * heads + head]))));
      }
    });
  });
}

}  // namespace lra::device
