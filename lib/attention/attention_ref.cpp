#include "lib/attention/attention_ref.h"

#include <algorithm>
#include <cmath>

namespace lra::ref {
namespace {

Row mix(const AttentionProblem& problem, const std::function<Row(const RowPlace&)>& map, bool dropout) {
  const int64_t n = problem.tokens(), d = problem.shape.head_dim, width = problem.shape.heads * d;
  Row out(n * width, 0.0);
  for (int head = 0; head < problem.shape.heads; ++head) {
    for (int64_t i = 0; i < n; ++i) {
      const Row p = map({problem, head, i});
      for (int64_t j = 0; j < std::ssize(p); ++j) {
        const double weight = p[j] * (dropout && problem.dropout ? problem.dropout(head, i, j) : 1.0);
        for (int64_t c = head * d; c < (head + 1) * d; ++c) out[i * width + c] += weight * problem.v.row(j)[c];
      }
    }
  }
  return out;
}

}  // namespace

double AttentionProblem::dot(int head, int64_t query, int64_t key) const {
  const int d = shape.head_dim;
  double sum = 0.0;
  for (int c = head * d; c < (head + 1) * d; ++c) sum += q.row(query)[c] * k.row(key)[c];
  return sum;
}

Row softmax(const Row& x) {
  const double max = *std::max_element(x.begin(), x.end());
  Row p(x.size());
  double sum = 0.0;
  for (size_t j = 0; j < x.size(); ++j) sum += p[j] = std::exp(x[j] - max);
  for (double& value : p) value /= sum;
  return p;
}

Reference rows(RowMap map) {
  return [map = std::move(map)](const AttentionProblem& problem) {
    const double scale = 1.0 / std::sqrt(static_cast<double>(problem.shape.head_dim));
    const auto row = [&](const RowPlace& place) {
      Row x(problem.keys(place.query));
      for (int64_t j = 0; j < std::ssize(x); ++j) x[j] = scale * problem.dot(place.head, place.query, j);
      return map(place, x);
    };
    return mix(problem, row, true);
  };
}

Reference weights(std::function<Row(const RowPlace&)> map) {
  return [map = std::move(map)](const AttentionProblem& problem) { return mix(problem, map, false); };
}

Reference matrices(std::function<std::vector<Row>(const AttentionProblem&, int)> map) {
  return [map = std::move(map)](const AttentionProblem& problem) {
    int head = -1;
    std::vector<Row> weights;
    return mix(
        problem,
        [&](const RowPlace& place) {
          if (place.head != head) weights = map(problem, head = place.head);
          return weights[place.query];
        },
        false);
  };
}

}  // namespace lra::ref
