#include "lib/attention/attention_ref.h"

#include <algorithm>
#include <cmath>

#include "lib/attention/families.h"
#include "lib/util/check.h"

namespace lra::ref {
namespace {

template <class T>
std::vector<T> softmax(const std::vector<T>& x) {
  const T max = *std::max_element(x.begin(), x.end());
  std::vector<T> p(x.size());
  T sum = 0;
  for (size_t j = 0; j < x.size(); ++j) sum += p[j] = std::exp(x[j] - max);
  for (T& value : p) value /= sum;
  return p;
}

template <class T>
T polynomial_scale(const AttentionProblem<T>& problem, size_t keys) {
  const std::string& scale = problem.spec.get("scale");
  const double n = problem.spec.get("length") == "max" ? problem.shape.padded_length : static_cast<double>(keys);
  if (scale == "sqrt") return static_cast<T>(std::sqrt(n));
  if (scale == "n") return static_cast<T>(n);
  if (scale == "moment") {
    const int power = static_cast<int>(problem.spec.integer("power"));
    return static_cast<T>(std::sqrt(n * polynomial_moment(power, problem.shape.head_dim)));
  }
  return static_cast<T>(problem.spec.real("scale"));
}

template <class T>
std::vector<T> scores(const AttentionProblem<T>& problem, int head, int64_t query) {
  const int d = problem.shape.head_dim;
  std::vector<T> x(problem.k.rows);
  for (int64_t j = 0; j < problem.k.rows; ++j) {
    T sum = 0;
    for (int c = head * d; c < (head + 1) * d; ++c) sum += problem.q.row(query)[c] * problem.k.row(j)[c];
    x[j] = sum / std::sqrt(static_cast<T>(d));
  }
  return x;
}

}  // namespace

template <class T>
std::vector<T> row_weights(const AttentionProblem<T>& problem, int head, const std::vector<T>& x) {
  if (problem.spec.name == "softmax") return softmax(x);
  check(problem.spec.name == "polynomial", "no reference of attention '{}'", problem.spec.name);
  const int power = static_cast<int>(problem.spec.integer("power"));
  const T gain = problem.spec.flag("gain") ? problem.parameters[0][head] : T(1);
  const T c = polynomial_scale(problem, x.size());
  std::vector<T> p(x.size());
  for (size_t j = 0; j < x.size(); ++j) p[j] = gain * std::pow(x[j], T(power)) / c;
  return p;
}

template <class T>
std::vector<T> row_backward(const AttentionProblem<T>& problem, int head, const std::vector<T>& x,
                            const std::vector<T>& d_weights, std::vector<std::vector<T>>& d_parameters) {
  std::vector<T> dx(x.size());
  if (problem.spec.name == "softmax") {
    const std::vector<T> p = softmax(x);
    T t = 0;
    for (size_t j = 0; j < x.size(); ++j) t += p[j] * d_weights[j];
    for (size_t j = 0; j < x.size(); ++j) dx[j] = p[j] * (d_weights[j] - t);
    return dx;
  }
  check(problem.spec.name == "polynomial", "no reference of attention '{}'", problem.spec.name);
  const int power = static_cast<int>(problem.spec.integer("power"));
  const T gain = problem.spec.flag("gain") ? problem.parameters[0][head] : T(1);
  const T c = polynomial_scale(problem, x.size());
  for (size_t j = 0; j < x.size(); ++j) {
    dx[j] = gain * T(power) * std::pow(x[j], T(power - 1)) / c * d_weights[j];
    if (problem.spec.flag("gain")) d_parameters[0][head] += std::pow(x[j], T(power)) / c * d_weights[j];
  }
  return dx;
}

template <class T>
std::vector<T> attention_forward(const AttentionProblem<T>& problem) {
  const int64_t n = problem.q.rows, d = problem.shape.head_dim, width = problem.shape.heads * d;
  std::vector<T> out(n * width, T(0));
  for (int head = 0; head < problem.shape.heads; ++head) {
    for (int64_t i = 0; i < n; ++i) {
      const std::vector<T> p = row_weights(problem, head, scores(problem, head, i));
      for (int64_t j = 0; j < n; ++j) {
        const T weight = p[j] * (problem.dropout ? problem.dropout(head, i, j) : T(1));
        for (int64_t c = head * d; c < (head + 1) * d; ++c) out[i * width + c] += weight * problem.v.row(j)[c];
      }
    }
  }
  return out;
}

template <class T>
AttentionGradientsRef<T> attention_backward(const AttentionProblem<T>& problem, MatrixView<const T> d_out) {
  const int64_t n = problem.q.rows, d = problem.shape.head_dim, width = problem.shape.heads * d;
  AttentionGradientsRef<T> result{std::vector<T>(n * width), std::vector<T>(n * width), std::vector<T>(n * width), {}};
  for (const auto& parameter : problem.parameters) result.d_parameters.emplace_back(parameter.size());
  const T score_scale = 1 / std::sqrt(static_cast<T>(d));
  for (int head = 0; head < problem.shape.heads; ++head) {
    for (int64_t i = 0; i < n; ++i) {
      const std::vector<T> x = scores(problem, head, i);
      const std::vector<T> p = row_weights(problem, head, x);
      std::vector<T> d_weights(n);
      for (int64_t j = 0; j < n; ++j) {
        const T kept = problem.dropout ? problem.dropout(head, i, j) : T(1);
        T sum = 0;
        for (int64_t c = head * d; c < (head + 1) * d; ++c) {
          sum += d_out.row(i)[c] * problem.v.row(j)[c];
          result.dv[j * width + c] += kept * p[j] * d_out.row(i)[c];
        }
        d_weights[j] = kept * sum;
      }
      const std::vector<T> dx = row_backward(problem, head, x, d_weights, result.d_parameters);
      for (int64_t j = 0; j < n; ++j) {
        for (int64_t c = head * d; c < (head + 1) * d; ++c) {
          result.dq[i * width + c] += score_scale * dx[j] * problem.k.row(j)[c];
          result.dk[j * width + c] += score_scale * dx[j] * problem.q.row(i)[c];
        }
      }
    }
  }
  return result;
}

template std::vector<float> row_weights(const AttentionProblem<float>&, int, const std::vector<float>&);
template std::vector<double> row_weights(const AttentionProblem<double>&, int, const std::vector<double>&);
template std::vector<float> row_backward(const AttentionProblem<float>&, int, const std::vector<float>&,
                                         const std::vector<float>&, std::vector<std::vector<float>>&);
template std::vector<double> row_backward(const AttentionProblem<double>&, int, const std::vector<double>&,
                                          const std::vector<double>&, std::vector<std::vector<double>>&);
template std::vector<float> attention_forward(const AttentionProblem<float>&);
template std::vector<double> attention_forward(const AttentionProblem<double>&);
template AttentionGradientsRef<float> attention_backward(const AttentionProblem<float>&, MatrixView<const float>);
template AttentionGradientsRef<double> attention_backward(const AttentionProblem<double>&, MatrixView<const double>);

}  // namespace lra::ref
