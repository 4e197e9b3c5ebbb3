// Plain reference of attention, one loop at a time, N x N matrices and all: the oracle of the tests. Formulas of each
// family are written as the specification in docs/attention.md says them, apart from the fast code.
#pragma once

#include <functional>
#include <vector>

#include "lib/attention/attention.h"

namespace lra::ref {

template <class T>
struct AttentionProblem {
  AttentionShape shape;
  AttentionSpec spec;
  MatrixView<const T> q, k, v;             // (N, H*D)
  std::vector<std::vector<T>> parameters;  // in the order of the kernel's
  // Factor of weight (head, query, key) by dropout: 0 or 1 / (1 - rate). Empty: no dropout.
  std::function<T(int, int64_t, int64_t)> dropout;
};

template <class T>
struct AttentionGradientsRef {
  std::vector<T> dq, dk, dv;  // (N, H*D)
  std::vector<std::vector<T>> d_parameters;
};

// Weights of one row of scores, and the gradient of the scores (and of the parameters, added to) from that of the
// weights.
template <class T>
std::vector<T> row_weights(const AttentionProblem<T>& problem, int head, const std::vector<T>& x);
template <class T>
std::vector<T> row_backward(const AttentionProblem<T>& problem, int head, const std::vector<T>& x,
                            const std::vector<T>& d_weights, std::vector<std::vector<T>>& d_parameters);

template <class T>
std::vector<T> attention_forward(const AttentionProblem<T>& problem);  // (N, H*D)
template <class T>
AttentionGradientsRef<T> attention_backward(const AttentionProblem<T>& problem, MatrixView<const T> d_out);

}  // namespace lra::ref
