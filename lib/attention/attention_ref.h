// Plain reference of attention in double, one loop at a time, N x N matrices and all: the oracle of the tests. Each
// family has its own in its file, written as docs/attention.md says it, apart from the fast code; what they share is
// here.
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "lib/attention/attention.h"

namespace lra::ref {

struct AttentionProblem {
  AttentionShape shape;
  AttentionSpec spec;
  MatrixView<const double> q, k, v;             // (N, H*D)
  MatrixView<const double> x;                   // (N, E)
  std::vector<int32_t> places;                  // (N)
  std::vector<std::vector<double>> parameters;  // in the order of the kernel's
  bool training = true;
  // Factor of weight (head, query, key) by dropout: 0 or 1 / (1 - rate). Empty: no dropout.
  std::function<double(int, int64_t, int64_t)> dropout;
  // Where numbers come from that the backward pass takes for constants; null: from here. Central differences need it.
  const AttentionProblem* constants = nullptr;
  std::array<uint32_t, 2> dropout_key{};  // as those of AttentionInput
  int layer = 0;

  const AttentionProblem& for_constants() const { return constants == nullptr ? *this : *constants; }
  int64_t tokens() const { return q.rows; }
  // Keys of a query.
  int64_t keys(int64_t query) const { return spec.flag("causal") ? query + 1 : q.rows; }
  double dot(int head, int64_t query, int64_t key) const;  // q·k
};

using Row = std::vector<double>;
// (N, H*D)
using Reference = std::function<Row(const AttentionProblem&)>;

// Where a row stands.
struct RowPlace {
  const AttentionProblem& problem;
  int head;
  int64_t query;

  double parameter(int which) const { return problem.parameters[which][head]; }
};

// Weights of the keys 0 … x.size() - 1 from their scores x = q·k / sqrt(D).
using RowMap = std::function<Row(const RowPlace&, const Row& x)>;

Row softmax(const Row& x);
// O = dropout(P) V, rows of P by the map.
Reference rows(RowMap map);
// O = P V, P by the function: entries of row `query` for its keys. No dropout.
Reference weights(std::function<Row(const RowPlace&)> map);
// The same, P by the function: all rows of a head, each up to its last key.
Reference matrices(std::function<std::vector<Row>(const AttentionProblem&, int head)> map);

}  // namespace lra::ref
