// Layer normalisation (Ba et al. 2016), biases, and sums of columns.
#include <cmath>

#include "lib/device/ops.h"
#include "lib/device/team.h"

namespace lra::device {
namespace {

constexpr int64_t kChunk = 64;  // rows

// The rows of sums of x's chunks of rows, one row a chunk.
ConstMatrix chunk_sums(Context c, ConstMatrix x) {
  const Matrix sums = c.scratch.matrix((x.rows + kChunk - 1) / kChunk, x.cols);
  launch(c.device, sums.rows, threads_for(x.cols), [=] LRA_KERNEL(Team & team) {
    const int64_t first = team.block() * kChunk, end = std::min(first + kChunk, x.rows);
    team.for_each(x.cols, [=](int64_t j) {
      float sum = 0.0f;
      for (int64_t i = first; i < end; ++i) sum += x.data[i * x.stride + j];
      sums.data[team.block() * sums.stride + j] = sum;
    });
  });
  return sums;
}

}  // namespace

void add_column_sums(Context c, ConstMatrix x, float* out) {
  if (x.rows == 0) return;
  const Scratch::Scope scope(c.scratch);
  while (x.rows > 1) x = chunk_sums(c, x);
  launch_each(c.device, x.cols, [=] LRA_KERNEL(int64_t j) { out[j] += x.data[j]; });
}

void layer_norm_forward(Context c, ConstMatrix x, const float* weight, const float* bias, float epsilon, Matrix y,
                        float* mean, float* rstd) {
  const int64_t width = x.cols;
  launch(c.device, x.rows, threads_for(width), [=] LRA_KERNEL(Team & team) {
    const int64_t i = team.block();
    const float *from = x.data + i * x.stride, count = static_cast<float>(width);
    float* to = y.data + i * y.stride;
    const float m = team.sum(width, [=](int64_t j) { return from[j]; }) / count;
    const float squares = team.sum(width, [=](int64_t j) { return (from[j] - m) * (from[j] - m); });
    const float r = 1.0f / std::sqrt(squares / count + epsilon);
    team.for_each(width, [=](int64_t j) { to[j] = (from[j] - m) * r * weight[j] + bias[j]; });
    team.for_each(1, [=](int64_t) { mean[i] = m, rstd[i] = r; });
  });
}

void layer_norm_backward(Context c, ConstMatrix x, const float* weight, const float* mean, const float* rstd,
                         ConstMatrix dy, Matrix dx, float* d_weight, float* d_bias) {
  const int64_t width = x.cols;
  {
    const Scratch::Scope scope(c.scratch);
    const Matrix sums = c.scratch.matrix((x.rows + kChunk - 1) / kChunk, width);
    launch(c.device, sums.rows, threads_for(width), [=] LRA_KERNEL(Team & team) {
      const int64_t first = team.block() * kChunk, end = std::min(first + kChunk, x.rows);
      team.for_each(width, [=](int64_t j) {
        float sum = 0.0f;
        for (int64_t i = first; i < end; ++i) {
          sum += dy.data[i * dy.stride + j] * (x.data[i * x.stride + j] - mean[i]) * rstd[i];
        }
        sums.data[team.block() * width + j] = sum;
      });
    });
    add_column_sums(c, sums, d_weight);
    add_column_sums(c, dy, d_bias);
  }
  launch(c.device, x.rows, threads_for(width), [=] LRA_KERNEL(Team & team) {
    const int64_t i = team.block();
    const float *from = x.data + i * x.stride, *d = dy.data + i * dy.stride;
    const float m = mean[i], r = rstd[i];
    float* to = dx.data + i * dx.stride;
    const float sum = team.sum(width, [=](int64_t j) { return weight[j] * d[j]; });
    const float sum_unit = team.sum(width, [=](int64_t j) { return weight[j] * d[j] * (from[j] - m) * r; });
    team.for_each(width, [=](int64_t j) {
      const float unit = (from[j] - m) * r;
      to[j] += r * (weight[j] * d[j] - (sum + unit * sum_unit) / static_cast<float>(width));
    });
  });
}

void linear_forward(Context c, ConstMatrix x, ConstMatrix weight, const float* bias, Matrix y) {
  if (x.rows == 0) return;
  c.device.multiply(product(x, Transpose::kNo, weight, Transpose::kYes, y));
  if (bias == nullptr) return;
  launch_each(c.device, y.rows * y.cols,
              [=] LRA_KERNEL(int64_t i) { y.data[i / y.cols * y.stride + i % y.cols] += bias[i % y.cols]; });
}

}  // namespace lra::device
