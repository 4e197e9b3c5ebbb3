// Embedding of a batch, poolings, and the pair's combination: everything between tokens, rows and one vector.
#include "lib/device/ops.h"
#include "lib/device/row_sums.h"

namespace lra::device {
void embedding_forward(Context c, const RaggedBatch& batch, ConstMatrix token, ConstMatrix position, const float* first,
                       Matrix x) {
  const int32_t *ids = batch.ids, *places = batch.places;
  launch_each(c.device, x.rows * x.cols, [=] LRA_KERNEL(int64_t at) {
    const int64_t i = at / x.cols, j = at % x.cols;
    const float* row = ids[i] < token.rows ? token.data + ids[i] * token.stride : first;
    x.data[i * x.stride + j] = row[j] + position.data[places[i] * position.stride + j];
  });
}

void embedding_backward(Context c, const RaggedBatch& batch, ConstMatrix dx, Matrix d_token, Matrix d_position,
                        float* d_first) {
  add_row_sums(c, batch.by_id, dx, 1,
               [=] LRA_KERNEL(int32_t id) { return id < d_token.rows ? d_token.data + id * d_token.stride : d_first; });
  if (d_position.data == nullptr) return;
  add_row_sums(c, batch.by_place, dx, 1,
               [=] LRA_KERNEL(int32_t place) { return d_position.data + place * d_position.stride; });
}

void pool_forward(Context c, const RaggedBatch& batch, Pooling pooling, ConstMatrix x, Matrix pooled) {
  const int64_t* first = batch.sequence_first;
  // A column of a sequence a team, so that few sequences fill a device.
  launch(c.device, batch.sequences * x.cols, threads_for(batch.longest), [=] LRA_KERNEL(Team & team) {
    const int64_t s = team.block() / x.cols, j = team.block() % x.cols, n = first[s + 1] - first[s];
    const float* from = x.data + first[s] * x.stride + j;
    const float sum =
        team.sum(pooling.first ? std::min<int64_t>(n, 1) : n, [=](int64_t i) { return from[i * x.stride]; });
    const float divisor = pooling.first ? 1.0f : pooling.divisor > 0.0f ? pooling.divisor : static_cast<float>(n);
    team.for_each(1, [=](int64_t) { pooled.data[s * pooled.stride + j] = n > 0 ? sum / divisor : 0.0f; });
  });
}

void pool_backward(Context c, const RaggedBatch& batch, Pooling pooling, ConstMatrix d_pooled, Matrix dx) {
  const int64_t* first = batch.sequence_first;
  const int32_t* sequence = batch.sequence;
  launch_each(c.device, dx.rows * dx.cols, [=] LRA_KERNEL(int64_t at) {
    const int64_t i = at / dx.cols, j = at % dx.cols, s = sequence[i];
    const float d = d_pooled.data[s * d_pooled.stride + j], n = static_cast<float>(first[s + 1] - first[s]);
    float& to = dx.data[i * dx.stride + j];
    if (pooling.first) {
      to = i == first[s] ? d : 0.0f;
    } else {
      to = d / (pooling.divisor > 0.0f ? pooling.divisor : n);
    }
  });
}

void combine_pair(Context c, ConstMatrix pooled, Matrix in) {
  const int64_t width = pooled.cols;
  launch_each(c.device, in.rows * width, [=] LRA_KERNEL(int64_t at) {
    const int64_t i = at / width, j = at % width;
    const float x = pooled.data[2 * i * pooled.stride + j], y = pooled.data[(2 * i + 1) * pooled.stride + j];
    float* to = in.data + i * in.stride + j;
    to[0] = x, to[width] = y, to[2 * width] = x * y, to[3 * width] = x - y;
  });
}

void combine_pair_backward(Context c, ConstMatrix pooled, ConstMatrix d_in, Matrix d_pooled) {
  const int64_t width = pooled.cols;
  launch_each(c.device, d_in.rows * width, [=] LRA_KERNEL(int64_t at) {
    const int64_t i = at / width, j = at % width;
    const float x = pooled.data[2 * i * pooled.stride + j], y = pooled.data[(2 * i + 1) * pooled.stride + j];
    const float* d = d_in.data + i * d_in.stride + j;
    d_pooled.data[2 * i * d_pooled.stride + j] = d[0] + d[2 * width] * y + d[3 * width];
    d_pooled.data[(2 * i + 1) * d_pooled.stride + j] = d[width] + d[2 * width] * x - d[3 * width];
  });
}

}  // namespace lra::device
