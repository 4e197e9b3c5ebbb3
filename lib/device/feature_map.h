// Kernelised attention on a whole ragged batch, in time and memory linear in the number of tokens; formulas:
// lib/attention/feature_map.h. Features of queries and keys are matrices over the tokens of some neighbouring
// sequences, sums over keys batched products; all of it is made again in the backward pass. Causal sequences go chunk
// by chunk.
#pragma once

#include <memory>

#include "lib/device/attention.h"
#include "lib/device/families.h"

namespace lra::device {

// Neighbouring sequences of the batch that are computed together.
struct SequenceGroup {
  int64_t begin = 0, count = 0;   // sequences
  int64_t first = 0, tokens = 0;  // rows of the batch
};

// Their queries or keys, all heads.
struct FeatureRows {
  const AttentionCall& call;
  const SequenceGroup& group;
  bool keys;             // psi is asked for, else phi
  ConstMatrix x;         // (tokens, H*D)
  const float* context;  // (sequences, H, context_width), as prepare left it
};

// What the sum over a row's keys is divided by, as a function of z = sum_j phi_i·psi_j.
struct Denominator {
  enum class Form { kPlus, kAtLeast, kAwayFromZero, kNotZero, kLength } form;
  float number = 0.0f;    // kPlus: added to z; kAtLeast, kAwayFromZero: the least it may be
  LengthFactor length{};  // kLength: one over this, whatever z
};

class FeatureMap {
 public:
  virtual ~FeatureMap() = default;
  virtual int64_t features() const = 0;  // F
  virtual Denominator denominator() const = 0;

  // Numbers of a sequence and head, constants in the backward pass: context (sequences, H, width), overwritten.
  virtual int64_t context_width() const { return 0; }
  virtual void prepare(Context c, const AttentionCall& call, const SequenceGroup& group, float* context) const {}

  // phi (tokens, H*F), overwritten.
  virtual void forward(Context c, const FeatureRows& rows, Matrix phi) const = 0;
  // dx (tokens, H*D), overwritten, from phi as forward left it and its gradient, which may be used as scratch;
  // d_parameters are added to.
  virtual void backward(Context c, const FeatureRows& rows, ConstMatrix phi, Matrix d_phi, Matrix dx,
                        std::span<float* const> d_parameters) const = 0;
};

// floats: room of one matrix of features, unless a single sequence needs more.
std::unique_ptr<Attention> make_feature_map(const AttentionShape& shape, std::unique_ptr<FeatureMap> map, bool causal,
                                            int64_t floats = int64_t{1} << 25);

// The maps. Formulas: docs/attention.md and the family's file in lib/attention.
std::unique_ptr<FeatureMap> elu_features(const AttentionShape& shape, Denominator denominator);
std::unique_ptr<FeatureMap> cosformer_features(const AttentionShape& shape);
// Of polynomial's power 1 or 2, scores scaled by 1 / sqrt(D); learnt: times parameter 0 (H).
std::unique_ptr<FeatureMap> power_features(const AttentionShape& shape, int power, LengthFactor factor, bool learnt);
std::unique_ptr<FeatureMap> lln_features(const AttentionShape& shape);
std::unique_ptr<FeatureMap> favor_features(const AttentionSpec& spec, const AttentionShape& shape);
std::unique_ptr<FeatureMap> rfa_features(const AttentionSpec& spec, const AttentionShape& shape);
std::unique_ptr<FeatureMap> hrf_features(const AttentionSpec& spec, const AttentionShape& shape);
std::unique_ptr<FeatureMap> rmfa_features(const AttentionSpec& spec, const AttentionShape& shape);

// Product of every head's block of columns, `a_width` and so on wide, with one matrix b a head, b_next floats apart (0:
// the same): C_h = alpha A_h op(b_h) + beta C_h.
Product by_head(int64_t heads, ConstMatrix a, int64_t a_width, ConstMatrix b, Transpose tb, int64_t b_next, Matrix c,
                int64_t c_width, float alpha = 1.0f, float beta = 0.0f);

}  // namespace lra::device
