// Attention in one kernel a pass, for softmax and families whose weights depend on one score each: scores never leave a
// team's fast memory. Operands of all products are rounded to bfloat16, sums are float32 (--precision bfloat16).
// Softmax keeps its running maximum and sum (Milakov and Gimelshein 2018, arXiv 1805.02867; Dao et al. 2022,
// 2205.14135); the backward pass makes scores again, once for keys and values and once for queries, so that no sum
// needs an order.
#pragma once

#include <memory>

#include "lib/device/attention.h"
#include "lib/device/families.h"

namespace lra::device {

// Wider heads do not fit into the fast memory of one multiprocessor.
constexpr int64_t kWidestFusedHead = 64;

std::unique_ptr<Attention> fused_softmax(const AttentionShape& shape, bool causal);
std::unique_ptr<Attention> fused_polynomial(const AttentionShape& shape, bool causal, int power, LengthFactor factor);
// bias: kNone or kLength.
std::unique_ptr<Attention> fused_sigmoid(const AttentionShape& shape, bool causal, SigmoidBias bias,
                                         LengthFactor factor);
std::unique_ptr<Attention> fused_relu(const AttentionShape& shape, bool causal, bool square, LengthFactor factor);

}  // namespace lra::device
