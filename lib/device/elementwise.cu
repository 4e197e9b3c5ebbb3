// GELU, ReLU, and dropout on the rows of a batch.
#include "lib/device/dropout.h"
#include "lib/device/gelu.h"
#include "lib/device/ops.h"

namespace lra::device {
namespace {

// use(row, column, factor) for every element of (tokens, columns): its factor by dropout.
template <class Use>
void for_each_factor(Context c, const RowDropout& dropout, int64_t columns, const Use& use) {
  constexpr int64_t kRows = 16;  // of a team
  const DropoutMask mask(dropout.key, dropout.site, dropout.rate);
  const RaggedBatch& batch = dropout.batch;
  const int32_t* sequence = batch.sequence;
  const int64_t *first = batch.sequence_first, tokens = batch.tokens;
  const uint32_t* example = batch.example;
  launch(c.device, (tokens + kRows - 1) / kRows, 256, [=] LRA_KERNEL(Team & team) {
    const int64_t begin = team.block() * kRows, units = DropoutMask::units(columns);
    team.for_each(std::min(kRows, tokens - begin) * units, [=](int64_t at) {
      const int64_t row = begin + at / units;
      const int32_t s = sequence[row];
      mask.of_unit(example[s], row - first[s], at % units, columns,
                   [=](int64_t column, float factor) { use(row, column, factor); });
    });
  });
}

}  // namespace

void dropout_copy(Context c, const RowDropout& dropout, ConstMatrix x, Matrix y) {
  for_each_factor(c, dropout, x.cols, [=] LRA_KERNEL(int64_t i, int64_t j, float factor) {
    y.data[i * y.stride + j] = factor * x.data[i * x.stride + j];
  });
}

void dropout_add(Context c, const RowDropout& dropout, ConstMatrix x, ConstMatrix branch, Matrix y) {
  for_each_factor(c, dropout, x.cols, [=] LRA_KERNEL(int64_t i, int64_t j, float factor) {
    y.data[i * y.stride + j] = x.data[i * x.stride + j] + factor * branch.data[i * branch.stride + j];
  });
}

void gelu_dropout_forward(Context c, Gelu form, const RowDropout& dropout, ConstMatrix x, Matrix y) {
  for_each_factor(c, dropout, x.cols, [=] LRA_KERNEL(int64_t i, int64_t j, float factor) {
    y.data[i * y.stride + j] = factor * gelu(form, x.data[i * x.stride + j]);
  });
}

void gelu_dropout_backward(Context c, Gelu form, const RowDropout& dropout, ConstMatrix x, ConstMatrix dy, Matrix dx) {
  for_each_factor(c, dropout, x.cols, [=] LRA_KERNEL(int64_t i, int64_t j, float factor) {
    dx.data[i * dx.stride + j] = factor * gelu_slope(form, x.data[i * x.stride + j]) * dy.data[i * dy.stride + j];
  });
}

void relu_forward(Context c, Matrix x) {
  launch_each(c.device, x.rows * x.cols, [=] LRA_KERNEL(int64_t i) {
    float& value = x.data[i / x.cols * x.stride + i % x.cols];
    if (value <= 0.0f) value = 0.0f;
  });
}

void relu_backward(Context c, ConstMatrix y, Matrix d) {
  launch_each(c.device, y.rows * y.cols, [=] LRA_KERNEL(int64_t i) {
    if (y.data[i / y.cols * y.stride + i % y.cols] <= 0.0f) d.data[i / d.cols * d.stride + i % d.cols] = 0.0f;
  });
}

}  // namespace lra::device
