// Kernels of what is done to whole outputs: exclusive self attention (arXiv 2603.09078) and rela's normalisation
// (2104.07012).
#include <cmath>

#include "lib/device/output_map_kernels.h"
#include "lib/device/team.h"

namespace lra::device {
namespace {

constexpr float kSmallestSquare = 1e-8f;  // of |v|
constexpr float kRmsEpsilon = 1e-8f;

// 1 / rms of a token's outputs.
LRA_KERNEL float reciprocal_rms(const Team& team, const float* o, int64_t width) {
  const float squares = team.sum(width, [=](int64_t c) { return o[c] * o[c]; });
  return 1.0f / std::sqrt(squares / static_cast<float>(width) + kRmsEpsilon);
}

LRA_KERNEL float open(const float* gate, const float* o, int64_t c) {
  return gate == nullptr ? 1.0f : 1.0f / (1.0f + std::exp(-gate[c] * o[c]));
}

}  // namespace

void exclude_self_forward(Context c, int64_t heads, ConstMatrix v, ConstMatrix y, Matrix out) {
  const int64_t d = y.cols / heads;
  launch(c.device, y.rows * heads, threads_for(d), [=] LRA_KERNEL(Team & team) {
    const int64_t i = team.block() / heads, at = team.block() % heads * d;
    const float *own = v.data + i * v.stride + at, *from = y.data + i * y.stride + at;
    float* to = out.data + i * out.stride + at;
    const float square = team.sum(d, [=](int64_t e) { return own[e] * own[e]; });
    const float along = team.sum(d, [=](int64_t e) { return from[e] * own[e]; });
    const float tau = along / (square < kSmallestSquare ? kSmallestSquare : square);
    team.for_each(d, [=](int64_t e) { to[e] = from[e] - tau * own[e]; });
  });
}

void exclude_self_backward(Context c, int64_t heads, ConstMatrix v, ConstMatrix y, ConstMatrix d_out, Matrix dy,
                           Matrix dv) {
  const int64_t d = y.cols / heads;
  launch(c.device, y.rows * heads, threads_for(d), [=] LRA_KERNEL(Team & team) {
    const int64_t i = team.block() / heads, at = team.block() % heads * d;
    const float *own = v.data + i * v.stride + at, *from = y.data + i * y.stride + at;
    const float* dz = d_out.data + i * d_out.stride + at;
    float *to = dy.data + i * dy.stride + at, *to_v = dv.data + i * dv.stride + at;
    const float square = team.sum(d, [=](int64_t e) { return own[e] * own[e]; });
    const float divisor = square < kSmallestSquare ? kSmallestSquare : square;
    const float tau = team.sum(d, [=](int64_t e) { return from[e] * own[e]; }) / divisor;
    const float upsilon = team.sum(d, [=](int64_t e) { return dz[e] * own[e]; }) / divisor;
    const float through_square = square >= kSmallestSquare ? 2.0f * tau * upsilon : 0.0f;
    team.for_each(d, [=](int64_t e) {
      to[e] = dz[e] - upsilon * own[e];
      to_v[e] -= tau * dz[e] + upsilon * from[e] - through_square * own[e];
    });
  });
}

void rms_gate_forward(Context c, const float* gain, const float* gate, ConstMatrix y, Matrix out) {
  const int64_t width = y.cols;
  launch(c.device, y.rows, threads_for(width), [=] LRA_KERNEL(Team & team) {
    const float* o = y.data + team.block() * y.stride;
    float* to = out.data + team.block() * out.stride;
    const float r = reciprocal_rms(team, o, width);
    team.for_each(width, [=](int64_t e) { to[e] = gain[e] * o[e] * r * open(gate, o, e); });
  });
}

void rms_gate_backward(Context c, const float* gain, const float* gate, ConstMatrix y, ConstMatrix d_out, Matrix dy,
                       Matrix d_gain, Matrix d_gate) {
  const int64_t width = y.cols;
  launch(c.device, y.rows, threads_for(width), [=] LRA_KERNEL(Team & team) {
    const int64_t i = team.block();
    const float *o = y.data + i * y.stride, *d = d_out.data + i * d_out.stride;
    float* to = dy.data + i * dy.stride;
    const float r = reciprocal_rms(team, o, width);
    const float mean = team.sum(width, [=](int64_t e) { return d[e] * gain[e] * open(gate, o, e) * o[e] * r; }) /
                       static_cast<float>(width);
    team.for_each(width, [=](int64_t e) {
      const float u = open(gate, o, e), unit = o[e] * r;
      float sum = r * (d[e] * gain[e] * u - unit * mean);
      d_gain.data[i * width + e] = d[e] * unit * u;
      if (gate != nullptr) {
        const float du = d[e] * gain[e] * unit * u * (1.0f - u);
        sum += du * gate[e];
        d_gate.data[i * width + e] = du * o[e];
      }
      to[e] = sum;
    });
  });
}

void add(Context c, ConstMatrix x, Matrix y) {
  launch_each(c.device, y.rows * y.cols, [=] LRA_KERNEL(int64_t i) {
    y.data[i / y.cols * y.stride + i % y.cols] += x.data[i / y.cols * x.stride + i % y.cols];
  });
}

}  // namespace lra::device
