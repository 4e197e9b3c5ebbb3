// Sums of rows by target (ragged_batch.h). Only sources that hold kernels (.cu) include this.
#pragma once

#include "lib/device/ops.h"
#include "lib/device/team.h"

namespace lra::device {

// Column j of to(target) += the sum of that column in the rows of x with that target, columns `step` floats apart;
// nothing where to(target) is null.
template <class To>
void add_row_sums(Context c, const RowSums& sums, ConstMatrix x, int64_t step, const To& to) {
  const Scratch::Scope scope(c.scratch);
  const int64_t width = x.cols;
  float* partial = c.scratch.take<float>(sums.chunks * width);
  launch(c.device, sums.chunks, threads_for(width), [=] LRA_KERNEL(Team & team) {
    const int64_t chunk = team.block();
    team.for_each(width, [=](int64_t j) {
      float sum = 0.0f;
      for (int64_t i = sums.first[chunk]; i < sums.first[chunk + 1]; ++i) sum += x.data[sums.order[i] * x.stride + j];
      partial[chunk * width + j] = sum;
    });
  });
  launch(c.device, sums.targets, threads_for(width), [=] LRA_KERNEL(Team & team) {
    const int64_t number = team.block();
    float* out = to(sums.target[number]);
    if (out == nullptr) return;
    team.for_each(width, [=](int64_t j) {
      float sum = 0.0f;
      for (int64_t part = sums.parts[number]; part < sums.parts[number + 1]; ++part) sum += partial[part * width + j];
      out[j * step] += sum;
    });
  });
}

}  // namespace lra::device
