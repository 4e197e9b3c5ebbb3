// softmax(Q (E K)ᵀ / √D) (E V), E (H, rank, padded length) learned (arXiv 2006.04768).
#include <cmath>

#include "lib/device/low_rank.h"
#include "lib/device/row_sums.h"

namespace lra::device {
namespace {

// e (tokens, H*rank): the columns of E at the tokens' places.
void gather(Context c, const AttentionCall& call, int64_t length, Matrix e) {
  const float* all = call.parameters[0];
  const int32_t* places = call.batch.places;
  launch_each(c.device, e.rows * e.cols,
              [=] LRA_KERNEL(int64_t i) { e.data[i] = all[i % e.cols * length + places[i / e.cols]]; });
}

class Linformer final : public Attention {
 public:
  Linformer(const AttentionSpec& spec, const AttentionShape& shape)
      : heads_(shape.heads),
        d_(shape.head_dim),
        rank_(spec.integer("rank")),
        length_(shape.padded_length),
        scale_(1.0f / std::sqrt(static_cast<float>(d_))) {}

  bool linear() const override { return true; }
  int64_t saved_floats(int64_t) const override { return 0; }

  void forward(Context c, const AttentionCall& call, Matrix out, float*) const override {
    const Scratch::Scope scope(c.scratch);
    const Work work = reduced(c, call);
    products(call).expand(c, work.weights, work.values, out);
  }

  void backward(Context c, const AttentionCall& call, const float*, const AttentionSlopes& slopes) const override {
    const Scratch::Scope scope(c.scratch);
    const int64_t tokens = call.q.rows, marks = call.batch.sequences * heads_ * rank_ * d_;
    const Work work = reduced(c, call);
    const SequenceProducts of = products(call);
    float *d_keys = c.scratch.take<float>(marks), *d_values = c.scratch.take<float>(marks);
    const Matrix ds = c.scratch.matrix(tokens, heads_ * rank_);
    of.reduce(c, work.weights, slopes.d_out, d_values);
    of.meet(c, slopes.d_out, work.values, ds);
    weigh_rows_backward(c, tokens * heads_, rank_, work.weights.data, ds.data);
    of.expand(c, ds, work.keys, slopes.dq, scale_);
    of.reduce(c, ds, call.q, d_keys, scale_);
    of.expand(c, work.e, d_keys, slopes.dk);
    of.expand(c, work.e, d_values, slopes.dv);
    of.meet(c, call.k, d_keys, ds);  // now the gradient of e
    of.meet(c, call.v, d_values, ds, 1.0f, 1.0f);
    float* d_e = slopes.d_parameters[0];
    if (d_e != nullptr) {
      add_row_sums(c, call.batch.by_place, ds, length_, [=] LRA_KERNEL(int32_t place) { return d_e + place; });
    }
  }

 private:
  // As gather leaves it; E K and E V (sequences, H, rank, D); weights (tokens,
  // H*rank).
  struct Work {
    Matrix e, weights;
    float *keys, *values;
  };
  Work reduced(Context c, const AttentionCall& call) const {
    const int64_t tokens = call.q.rows, marks = call.batch.sequences * heads_ * rank_ * d_;
    const Work work = {c.scratch.matrix(tokens, heads_ * rank_), c.scratch.matrix(tokens, heads_ * rank_),
                       c.scratch.take<float>(marks), c.scratch.take<float>(marks)};
    gather(c, call, length_, work.e);
    const SequenceProducts of = products(call);
    of.reduce(c, work.e, call.k, work.keys);
    of.reduce(c, work.e, call.v, work.values);
    of.meet(c, call.q, work.keys, work.weights, scale_);
    weigh_rows(c, tokens * heads_, rank_, work.weights.data);
    return work;
  }
  SequenceProducts products(const AttentionCall& call) const { return {call, heads_, rank_, d_}; }

  int64_t heads_, d_, rank_, length_;
  float scale_;
};

}  // namespace

std::unique_ptr<Attention> make_linformer(const AttentionSpec& spec, const AttentionShape& shape) {
  return std::make_unique<Linformer>(spec, shape);
}

}  // namespace lra::device
