#include "lib/device/score_rows.h"

namespace lra::device {

void ScoreRows::add_numbers(Context c, const ScorePanel& panel, std::span<float* const> d_parameters) const {
  const int count = std::min<int>(numbers(), std::ssize(d_parameters));
  for (int i = 0; i < count; ++i) {
    if (d_parameters[i] != nullptr) add_row_numbers(c, panel, i, numbers(), d_parameters[i]);
  }
}

void add_row_numbers(Context c, const ScorePanel& panel, int number, int of, float* out, int64_t stride) {
  const int64_t rows = panel.count * panel.queries;  // of a head
  launch(c.device, panel.heads, 256, [=] LRA_KERNEL(Team & team) {
    const int64_t head = team.block();
    const float sum = team.sum(rows, [=](int64_t i) {
      const int64_t sequence = i / panel.queries, query = i % panel.queries;
      return panel.numbers[((sequence * panel.heads + head) * panel.queries + query) * of + number];
    });
    team.for_each(1, [=](int64_t) { out[head * stride] += sum; });
  });
}

}  // namespace lra::device
