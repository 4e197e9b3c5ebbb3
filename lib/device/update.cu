// What follows the gradients' pass: loss, norm, clipping, AdamW (Loshchilov & Hutter 2019).
#include <cmath>

#include "lib/device/ops.h"
#include "lib/device/team.h"

namespace lra::device {

void cross_entropy(Context c, ConstMatrix logits, const int32_t* labels, float weight, double* losses,
                   Matrix d_logits) {
  const int64_t classes = logits.cols;
  launch(c.device, logits.rows, threads_for(classes), [=] LRA_KERNEL(Team & team) {
    const int64_t i = team.block();
    const float* row = logits.data + i * logits.stride;
    const double largest = team.max(classes, [=](int64_t j) { return static_cast<double>(row[j]); });
    const double sum = team.sum(classes, [=](int64_t j) { return std::exp(static_cast<double>(row[j]) - largest); });
    team.for_each(1, [=](int64_t) { losses[i] = std::log(sum) - (static_cast<double>(row[labels[i]]) - largest); });
    if (d_logits.data == nullptr) return;
    team.for_each(classes, [=](int64_t j) {
      const double share = std::exp(static_cast<double>(row[j]) - largest) / sum;
      d_logits.data[i * d_logits.stride + j] =
          static_cast<float>(static_cast<double>(weight) * (share - (j == labels[i] ? 1.0 : 0.0)));
    });
  });
}

double l2_norm(Context c, const float* x, int64_t size) {
  constexpr int64_t kPiece = 4096;
  const Scratch::Scope scope(c.scratch);
  const int64_t pieces = (size + kPiece - 1) / kPiece;
  double* sums = c.scratch.take<double>(pieces + 1);
  launch(c.device, pieces, 256, [=] LRA_KERNEL(Team & team) {
    const int64_t first = team.block() * kPiece;
    const double sum = team.sum(std::min(kPiece, size - first), [=](int64_t i) {
      const double value = x[first + i];
      return value * value;
    });
    team.for_each(1, [=](int64_t) { sums[team.block()] = sum; });
  });
  launch(c.device, 1, 256, [=] LRA_KERNEL(Team & team) {
    const double sum = team.sum(pieces, [=](int64_t i) { return sums[i]; });
    team.for_each(1, [=](int64_t) { sums[pieces] = sum; });
  });
  double sum = 0.0;
  c.device.download(&sum, sums + pieces, sizeof(sum));
  return std::sqrt(sum);
}

void scale(Context c, float factor, float* x, int64_t size) {
  launch_each(c.device, size, [=] LRA_KERNEL(int64_t i) { x[i] *= factor; });
}

void adamw_update(Context c, const AdamWSettings& settings, int64_t step, int64_t size, float* parameters,
                  const float* gradients, float* m, float* v) {
  // Factors in double, rounded once, and the order of torch.optim.AdamW, as in lib/ops/adamw_cpu.cpp.
  const double t = static_cast<double>(step);
  const auto keep = static_cast<float>(1.0 - settings.learning_rate * settings.weight_decay);
  const auto gain1 = static_cast<float>(1.0 - settings.beta1);
  const auto beta2 = static_cast<float>(settings.beta2), gain2 = static_cast<float>(1.0 - settings.beta2);
  const auto correction2 = static_cast<float>(std::sqrt(1.0 - std::pow(settings.beta2, t)));
  const auto epsilon = static_cast<float>(settings.epsilon);
  const auto step_size = static_cast<float>(settings.learning_rate / (1.0 - std::pow(settings.beta1, t)));
  launch_each(c.device, size, [=] LRA_KERNEL(int64_t i) {
    const float g = gradients[i];
    m[i] += (g - m[i]) * gain1;
    v[i] = v[i] * beta2 + g * gain2 * g;
    const float root = std::sqrt(v[i]) / correction2;
    parameters[i] = parameters[i] * keep - m[i] * step_size / (root + epsilon);
  });
}

}  // namespace lra::device
