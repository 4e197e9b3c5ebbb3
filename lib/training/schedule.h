// Learning rate and beta1 of each update. Updates count from 0.
#pragma once

#include <cstdint>
#include <string>

namespace lra {

struct ScheduleSettings {
  // one-cycle: torch.optim.lr_scheduler.OneCycleLR(anneal_strategy="linear"), beta1 0.95 -> 0.85 -> 0.95; warm-up 0
  //   follows PyTorch, warm-up 1 (which PyTorch cannot do) starts at the peak;
  // rsqrt: rate * min(1, s/w) / sqrt(max(s, w)), beta1 0.9;
  // cosine: rate * min(1, s/w) * (1 + cos(pi max(0, s-w)/steps)) / 2, beta1 0.9;
  // constant, beta1 0.9.
  std::string form = "one-cycle";
  double learning_rate = 1e-4;
  int64_t steps = 1, warmup = 0;
};

struct Rate {
  double learning_rate, beta1;
};

Rate schedule_rate(const ScheduleSettings& settings, int64_t update);

}  // namespace lra
