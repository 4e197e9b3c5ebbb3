// The driver of score rows: products on either side of the family's kernels. Panels are functions of the batch's
// lengths alone, and the sums over them are made one panel after another: the same batch gives the same bits.
#include "lib/device/panels.h"

#include <algorithm>
#include <utility>

#include "lib/ops/dropout.h"

namespace lra::device {
namespace {

constexpr Transpose kNo = Transpose::kNo, kYes = Transpose::kYes;

class Panels final : public Attention {
 public:
  Panels(const AttentionShape& shape, std::unique_ptr<ScoreRows> rows, float score_scale, bool causal, PanelSizes sizes)
      : heads_(shape.heads),
        d_(shape.head_dim),
        rows_(std::move(rows)),
        scale_(score_scale),
        causal_(causal),
        sizes_(sizes) {}

  int64_t saved_floats(int64_t) const override { return 0; }

  void forward(Context c, const AttentionCall& call, Matrix out, float*) const override {
    const Scratch::Scope scope(c.scratch);
    const float* context = prepared(c, call);
    for_each_panel(c, call, false, [&](ScorePanel& panel) {
      panel.context = context;
      std::vector<Product> scores, outputs;
      for_each_block(call, panel, [&](const Block& b) {
        scores.push_back(b.scores(call.q, call.k, panel.s, scale_));
        outputs.push_back(b.by_rows(panel.s, kNo, call.v, out, 1.0f));
      });
      c.device.multiply(scores);
      rows_->forward(c.device, panel, call.parameters);
      c.device.multiply(outputs);
    });
  }

  void backward(Context c, const AttentionCall& call, const float*, const AttentionSlopes& slopes) const override {
    c.device.fill_zero(slopes.dk);
    c.device.fill_zero(slopes.dv);
    const Scratch::Scope scope(c.scratch);
    const float* context = prepared(c, call);
    const int64_t width = heads_ * rows_->context_width();
    float* d_context = c.scratch.take<float>(call.batch.tokens * width);
    c.device.fill_zero({d_context, call.batch.tokens, width});
    const int numbers = rows_->numbers();
    for_each_panel(c, call, true, [&](ScorePanel& panel) {
      panel.context = context, panel.d_context = d_context;
      if (numbers > 0) {
        panel.numbers = c.scratch.take<float>(panel.rows() * numbers);
        c.device.fill_zero({panel.numbers, panel.rows(), numbers});
      }
      std::vector<Product> again, queries, keys;
      for_each_block(call, panel, [&](const Block& b) {
        again.push_back(b.scores(call.q, call.k, panel.s, scale_));
        again.push_back(b.scores(slopes.d_out, call.v, panel.g, 1.0f));
        queries.push_back(b.by_rows(panel.g, kNo, call.k, slopes.dq, scale_));
        keys.push_back(b.by_rows(panel.s, kYes, slopes.d_out, slopes.dv, 1.0f));
        keys.push_back(b.by_rows(panel.g, kYes, call.q, slopes.dk, scale_));
      });
      c.device.multiply(again);
      rows_->backward(c.device, panel, call.parameters);
      queries.insert(queries.end(), keys.begin(), keys.end());
      c.device.multiply(queries);
      rows_->add_numbers(c, panel, slopes.d_parameters);
      rows_->after_backward(c, panel);
    });
    if (call.batch.tokens > 0) rows_->prepare_backward(c, call, context, d_context, slopes);
  }

 private:
  const float* prepared(Context c, const AttentionCall& call) const {
    float* context = c.scratch.take<float>(call.batch.tokens * heads_ * rows_->context_width());
    if (call.batch.tokens > 0) rows_->prepare(c, call, context);
    return context;
  }

  // The queries of one sequence in a panel, all heads.
  struct Block {
    int64_t heads, d;
    int64_t first_row, query, queries;  // of the sequence in the batch; of the block in the sequence
    int64_t keys;                       // that any of them has
    int64_t offset, padded, next;       // of its scores; of their rows; of their heads

    Matrix part(float* base) const { return {base + offset, queries, keys, padded}; }
    // scores (queries, keys) = alpha a bᵀ, a rows of queries and b rows of keys.
    Product scores(ConstMatrix a, ConstMatrix b, float* base, float alpha) const {
      Product p = product(a.row_block(first_row + query, queries).col_block(0, d), kNo,
                          b.row_block(first_row, keys).col_block(0, d), kYes, part(base), alpha);
      p.count = heads, p.a_next = d, p.b_next = d, p.c_next = next;
      return p;
    }
    // kNo: to (queries, D) = alpha S from (keys, D); kYes: to (keys, D) += alpha Sᵀ from (queries, D).
    Product by_rows(float* base, Transpose transpose, ConstMatrix from, Matrix to, float alpha) const {
      const auto of_queries = [&](auto m) { return m.row_block(first_row + query, queries).col_block(0, d); };
      const auto of_keys = [&](auto m) { return m.row_block(first_row, keys).col_block(0, d); };
      Product p = transpose == kNo ? product(part(base), kNo, of_keys(from), kNo, of_queries(to), alpha)
                                   : product(part(base), kYes, of_queries(from), kNo, of_keys(to), alpha, 1.0f);
      p.count = heads, p.a_next = next, p.b_next = d, p.c_next = d;
      return p;
    }
  };

  template <class Use>
  void for_each_block(const AttentionCall& call, const ScorePanel& panel, const Use& use) const {
    const RaggedBatch& batch = call.batch;
    for (int64_t i = panel.begin; i < panel.begin + panel.count; ++i) {
      const int64_t n = batch.length[i], queries = std::min(panel.queries, n - panel.first_query);
      if (queries <= 0) continue;
      const int64_t padded = batch.padded_first[i + 1] - batch.padded_first[i];
      use(Block{.heads = heads_,
                .d = d_,
                .first_row = batch.first[i],
                .query = panel.first_query,
                .queries = queries,
                .keys = causal_ ? panel.first_query + queries : n,
                .offset = (batch.padded_first[i] - batch.padded_first[panel.begin]) * heads_ * panel.queries,
                .padded = padded,
                .next = panel.queries * padded});
    }
  }

  // Sequences are taken together as long as their scores have room, then cut into blocks of queries.
  template <class Use>
  void for_each_panel(Context c, const AttentionCall& call, bool backward, const Use& use) const {
    const RaggedBatch& batch = call.batch;
    const auto& padded = batch.padded_first;
    for (int64_t begin = 0; begin < batch.sequences;) {
      const int64_t queries = std::min(sizes_.queries, batch.longest);
      int64_t end = begin + 1, longest = batch.length[begin];
      while (end < batch.sequences && (padded[end + 1] - padded[begin]) * heads_ * queries <= sizes_.floats) {
        longest = std::max(longest, batch.length[end++]);
      }
      const Scratch::Scope scope(c.scratch);
      ScorePanel panel{.sequence_first = batch.sequence_first,
                       .padded_first = batch.device_padded_first,
                       .example = batch.example,
                       .begin = begin,
                       .count = end - begin,
                       .queries = queries,
                       .longest = longest,
                       .heads = heads_,
                       .causal = causal_,
                       .training = call.training,
                       .dropout_key = {call.dropout_key[0], call.dropout_key[1]},
                       .dropout_site = lra::dropout_site(DropoutSite::kAttention, call.layer),
                       .dropout = call.dropout};
      const int64_t floats = (padded[end] - padded[begin]) * heads_ * queries;
      panel.s = c.scratch.take<float>(floats);
      if (backward) panel.g = c.scratch.take<float>(floats);
      panel.scratch = c.scratch.take<float>(floats * rows_->row_scratch());
      for (panel.first_query = 0; panel.first_query < longest; panel.first_query += queries) {
        const Scratch::Scope of_panel(c.scratch);
        use(panel);
      }
      begin = end;
    }
  }

  int64_t heads_, d_;
  std::unique_ptr<ScoreRows> rows_;
  float scale_;
  bool causal_;
  PanelSizes sizes_;
};

}  // namespace

std::unique_ptr<Attention> make_panels(const AttentionShape& shape, std::unique_ptr<ScoreRows> rows, float score_scale,
                                       bool causal, PanelSizes sizes) {
  return std::make_unique<Panels>(shape, std::move(rows), score_scale, causal, sizes);
}

}  // namespace lra::device
