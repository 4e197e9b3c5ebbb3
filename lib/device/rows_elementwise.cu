// Families whose weights depend on one score each (lib/attention/score_maps.h). dx = f'(x) g.
#include "lib/attention/score_maps.h"
#include "lib/device/families.h"
#include "lib/device/length_factor.h"
#include "lib/device/score_rows.h"

namespace lra::device {
namespace {

template <class Map>
LRA_KERNEL void map_row(const Team& team, const ScoreRow& row, const Map& map, float* s) {
  team.for_each(row.n, [=](int64_t j) { s[j] = map(s[j]).value; });
}
template <class Map>
LRA_KERNEL void map_row_backward(const Team& team, const ScoreRow& row, const Map& map, float* s, float* g) {
  team.for_each(row.n, [=](int64_t j) {
    const ScoreValue<float> p = map(s[j]);
    s[j] = p.value, g[j] *= p.slope;
  });
}

struct Polynomial {
  static constexpr int kNumbers = 1;
  int power;
  LengthFactor factor;
  bool learnt;
  const float* gain = nullptr;  // (H)

  Polynomial bound(std::span<const float* const> parameters) const {
    Polynomial bound = *this;
    if (learnt) bound.gain = parameters[0];
    return bound;
  }
  LRA_KERNEL PowerMap<float> at(const ScoreRow& row) const {
    return {power, (gain == nullptr ? 1.0f : gain[row.head]) * length_factor(factor, row.n)};
  }
  LRA_KERNEL void forward(const Team& team, const ScoreRow& row, float* s) const { map_row(team, row, at(row), s); }
  LRA_KERNEL void backward(const Team& team, const ScoreRow& row, float* s, float* g, float* numbers) const {
    if (gain != nullptr) {
      const PowerMap<float> plain = {power, length_factor(factor, row.n)};
      const float sum = team.sum(row.n, [=](int64_t j) { return plain(s[j]).value * g[j]; });
      team.for_each(1, [=](int64_t) { numbers[0] = sum; });
    }
    map_row_backward(team, row, at(row), s, g);
  }
};

struct Sigmoid {
  static constexpr int kNumbers = 1;
  SigmoidBias form;
  LengthFactor factor;
  const float* learnt = nullptr;  // (H)

  Sigmoid bound(std::span<const float* const> parameters) const {
    Sigmoid bound = *this;
    if (form == SigmoidBias::kLearnt) bound.learnt = parameters[0];
    return bound;
  }
  LRA_KERNEL SigmoidMap<float> at(const ScoreRow& row) const {
    const float bias = learnt != nullptr              ? learnt[row.head]
                       : form == SigmoidBias::kLength ? -std::log(static_cast<float>(row.n))
                                                      : 0.0f;
    return {length_factor(factor, row.n), bias};
  }
  LRA_KERNEL void forward(const Team& team, const ScoreRow& row, float* s) const { map_row(team, row, at(row), s); }
  LRA_KERNEL void backward(const Team& team, const ScoreRow& row, float* s, float* g, float* numbers) const {
    map_row_backward(team, row, at(row), s, g);
    if (learnt == nullptr) return;
    const float sum = team.sum(row.n, [=](int64_t j) { return g[j]; });
    team.for_each(1, [=](int64_t) { numbers[0] = sum; });
  }
};

struct Relu {
  static constexpr int kNumbers = 0;
  bool square;
  LengthFactor factor;

  Relu bound(std::span<const float* const>) const { return *this; }
  LRA_KERNEL ReluMap<float> at(const ScoreRow& row) const { return {square, length_factor(factor, row.n)}; }
  LRA_KERNEL void forward(const Team& team, const ScoreRow& row, float* s) const { map_row(team, row, at(row), s); }
  LRA_KERNEL void backward(const Team& team, const ScoreRow& row, float* s, float* g, float*) const {
    map_row_backward(team, row, at(row), s, g);
  }
};

}  // namespace

std::unique_ptr<ScoreRows> polynomial_rows(int power, LengthFactor factor, bool learnt) {
  return mapped_rows(Polynomial{power, factor, learnt});
}
std::unique_ptr<ScoreRows> sigmoid_rows(SigmoidBias bias, LengthFactor factor) {
  return mapped_rows(Sigmoid{bias, factor});
}
std::unique_ptr<ScoreRows> relu_rows(bool square, LengthFactor factor) { return mapped_rows(Relu{square, factor}); }

}  // namespace lra::device
