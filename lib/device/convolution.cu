#include "lib/device/convolution.h"
#include "lib/device/places.h"

namespace lra::device {
namespace {

// Which of the tokens lies under a tap of a token at `place`; -1: none.
LRA_KERNEL int64_t token_under(const PlaceTaps& t, const int32_t* places, int64_t tokens, int64_t place, int64_t tap) {
  int64_t wanted = place + tap - t.taps / 2;
  if (t.width > 0) {
    const int64_t column = place % t.width + tap % 3 - 1;
    if (column < 0 || column >= t.width) return -1;
    wanted = place + (tap / 3 - 1) * t.width + tap % 3 - 1;
  }
  if (wanted < 0) return -1;
  const int64_t at = token_at(places, tokens, wanted);
  return at < tokens && places[at] == wanted ? at : -1;
}

}  // namespace

void add_convolution(Context c, const RaggedBatch& batch, const PlaceTaps& taps, bool back, ConstMatrix x, Matrix y) {
  const int64_t* sequence_first = batch.sequence_first;
  const int32_t *sequence = batch.sequence, *places = batch.places;
  launch_each(c.device, y.rows * y.cols, [=] LRA_KERNEL(int64_t i) {
    const int64_t token = i / y.cols, column = i % y.cols, s = sequence[token], first = sequence_first[s];
    const int64_t n = sequence_first[s + 1] - first;
    const float* weight = taps.weight + s * taps.next + column / taps.columns * taps.taps;
    float sum = 0.0f;
    for (int64_t tap = 0; tap < taps.taps; ++tap) {
      const int64_t j = token_under(taps, places + first, n, places[token], tap);
      if (j >= 0) sum += weight[back ? taps.taps - 1 - tap : tap] * x.data[(first + j) * x.stride + column];
    }
    y.data[token * y.stride + column] += sum;
  });
}

void convolution_gradients(Context c, const RaggedBatch& batch, const PlaceTaps& taps, ConstMatrix x, ConstMatrix d_out,
                           Matrix d_weight) {
  const int64_t* sequence_first = batch.sequence_first;
  const int32_t* places = batch.places;
  launch(c.device, d_weight.rows * d_weight.cols, threads_for(batch.longest), [=] LRA_KERNEL(Team & team) {
    const int64_t s = team.block() / d_weight.cols, number = team.block() % d_weight.cols;
    const int64_t first = sequence_first[s], n = sequence_first[s + 1] - first;
    const int64_t tap = number % taps.taps, column = number / taps.taps * taps.columns;
    const float sum = team.sum(n, [=](int64_t i) {
      const int64_t j = token_under(taps, places + first, n, places[first + i], tap);
      float dot = 0.0f;
      if (j < 0) return dot;
      const float* g = d_out.data + (first + i) * d_out.stride + column;
      const float* of = x.data + (first + j) * x.stride + column;
      for (int64_t e = 0; e < taps.columns; ++e) dot += g[e] * of[e];
      return dot;
    });
    team.for_each(1, [=](int64_t) { d_weight.data[s * d_weight.stride + number] = sum; });
  });
}

}  // namespace lra::device
