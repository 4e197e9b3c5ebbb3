// Kernelised attention in time and memory linear in the number of tokens: with features phi of queries and psi of keys,
// F numbers each,
//   o_i = sum_j (phi_i·psi_j) v_j / D_i,  z_i = sum_j phi_i·psi_j,  D_i a function of z_i and the number of keys
// (Katharopoulos et al. 2020, arXiv 2006.16236). A column of ones beside V carries z through the same products:
//   A = sum_j psi_j [v_j, 1]^T  (F, D + 1).
// Features of a chunk of tokens live in cache and are made again in the backward pass; chunks have a fixed size and are
// summed in their order. Causal rows take A of the chunks before theirs, and a small masked product inside their own.
// P does not exist, so that attention dropout cannot apply. A family supplies what is below, the driver all else.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "lib/attention/attention.h"
#include "lib/attention/attention_ref.h"

namespace lra {

// Some queries or keys of one head.
struct FeatureRows {
  const AttentionInput& in;
  int head;
  bool keys;             // psi is asked for, else phi
  int64_t first;         // token of row 0
  ConstMatrix x;         // (count, D)
  const float* context;  // of the head, as prepare left it
};

class FeatureMap {
 public:
  virtual ~FeatureMap() = default;
  virtual std::vector<KernelParameter> parameters() const { return {}; }
  virtual int64_t features() const = 0;  // F
  // Of the products that make the features of one token, 2 a multiply-add, and of prepare a token.
  virtual double feature_flops() const { return 0.0; }
  virtual double prepare_flops() const { return 0.0; }

  // Numbers of a head that depend on the whole sequence. They are constants in the backward pass.
  virtual int64_t context_floats() const { return 0; }
  virtual void prepare(const AttentionInput& in, int head, float* context, Arena& arena) const {}

  // phi (count, F), overwritten.
  virtual void forward(const FeatureRows& rows, Matrix phi, Arena& arena) const = 0;
  // dx (count, D), overwritten, from phi as forward left it and its gradient, which may be used as scratch. Heads run
  // side by side: of d_parameters, added to, a head touches what is its own.
  virtual void backward(const FeatureRows& rows, ConstMatrix phi, Matrix d_phi, Matrix dx,
                        std::span<float* const> d_parameters, Arena& arena) const = 0;

  struct Denominator {
    float value, slope;  // D, dD/dz
  };
  virtual Denominator denominator(float z, int64_t keys) const = 0;
};

// The kernel of a map, causal where the spec has the option on.
std::unique_ptr<AttentionKernel> make_feature_map(const AttentionSpec& spec, const AttentionShape& shape,
                                                  std::unique_ptr<FeatureMap> map);

// z, its magnitude kept at `floor` at least with its sign (0 counts as positive); constant where it was raised.
FeatureMap::Denominator away_from_zero(float z, float floor);

namespace ref {

struct KernelisedAttention {
  // Features of every token of a head: psi of its keys, or phi of its queries.
  std::function<std::vector<Row>(const AttentionProblem&, int head, bool keys)> features;
  std::function<double(const AttentionProblem&, double z, int64_t keys)> denominator;
};

// P of a head, rows up to their last key.
std::vector<Row> kernelised_weights(const KernelisedAttention& attention, const AttentionProblem& problem, int head);
// O = P V.
Reference kernelised(KernelisedAttention attention);
double away_from_zero(double z, double floor);

}  // namespace ref
}  // namespace lra
