#include "lib/device/feature_sums.h"
#include "lib/device/length_factor.h"

namespace lra::device {
namespace {

struct Value {
  float d, slope;  // D, dD/dz
};

LRA_KERNEL Value value_of(const Denominator& denominator, float z, int64_t keys) {
  const float least = denominator.number;
  switch (denominator.form) {
    case Denominator::Form::kPlus: return {z + least, 1.0f};
    case Denominator::Form::kAtLeast: return {z >= least ? z : least, z >= least ? 1.0f : 0.0f};
    case Denominator::Form::kAwayFromZero:
      if (std::abs(z) >= least) return {z, 1.0f};
      return {z < 0.0f ? -least : least, 0.0f};
    case Denominator::Form::kNotZero: return {z == 0.0f ? 1.0f : z, z == 0.0f ? 0.0f : 1.0f};
    case Denominator::Form::kLength: break;
  }
  return {1.0f / length_factor(denominator.length, keys), 0.0f};
}

LRA_KERNEL Value value_at(const Divisor& divisor, int64_t token, float z) {
  const int64_t s = divisor.sequence[token], begin = divisor.sequence_first[s];
  const int64_t keys = divisor.causal ? divisor.first + token - begin + 1 : divisor.sequence_first[s + 1] - begin;
  return value_of(divisor.denominator, z, keys);
}

}  // namespace

void values_with_ones(Context c, int64_t heads, ConstMatrix v, Matrix values) {
  const int64_t d = v.cols / heads, width = values.cols / heads;
  launch_each(c.device, values.rows * values.cols, [=] LRA_KERNEL(int64_t i) {
    const int64_t token = i / values.cols, head = i % values.cols / width, at = i % width;
    values.data[token * values.stride + i % values.cols] = at < d    ? v.data[token * v.stride + head * d + at]
                                                           : at == d ? 1.0f
                                                                     : 0.0f;
  });
}

void take_values(Context c, int64_t heads, ConstMatrix y, Matrix out) {
  const int64_t d = out.cols / heads, width = y.cols / heads;
  launch_each(c.device, out.rows * out.cols, [=] LRA_KERNEL(int64_t i) {
    const int64_t token = i / out.cols, head = i % out.cols / d, at = i % d;
    out.data[token * out.stride + i % out.cols] = y.data[token * y.stride + head * width + at];
  });
}

void divide_values(Context c, int64_t heads, const Divisor& divisor, ConstMatrix y, Matrix out) {
  const int64_t d = out.cols / heads, width = y.cols / heads;
  launch_each(c.device, out.rows * out.cols, [=] LRA_KERNEL(int64_t i) {
    const int64_t token = i / out.cols, head = i % out.cols / d, at = i % d;
    const float* row = y.data + token * y.stride + head * width;
    out.data[token * out.stride + i % out.cols] = row[at] / value_at(divisor, token, row[d]).d;
  });
}

void divide_values_backward(Context c, int64_t heads, const Divisor& divisor, ConstMatrix y, ConstMatrix d_out,
                            Matrix e) {
  const int64_t d = d_out.cols / heads, width = y.cols / heads;
  launch(c.device, y.rows * heads, threads_for(width), [=] LRA_KERNEL(Team & team) {
    const int64_t token = team.block() / heads, head = team.block() % heads;
    const float *row = y.data + token * y.stride + head * width, *g = d_out.data + token * d_out.stride + head * d;
    float* to = e.data + token * e.stride + head * width;
    const Value value = value_at(divisor, token, row[d]);
    const float dot = team.sum(d, [=](int64_t at) { return g[at] * row[at]; });
    team.for_each(width, [=](int64_t at) {
      to[at] = at < d ? g[at] / value.d : at == d ? -value.slope * dot / (value.d * value.d) : 0.0f;
    });
  });
}

void clear_later_keys(Context c, int64_t count, int64_t size, float* x) {
  launch_each(c.device, count * size * size, [=] LRA_KERNEL(int64_t i) {
    if (i % size > i / size % size) x[i] = 0.0f;
  });
}

}  // namespace lra::device
