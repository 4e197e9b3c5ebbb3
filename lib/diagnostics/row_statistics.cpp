// Entropy of |p| / A, A = Σ |p|, is log A - Σ |p| log |p| / A: one pass. Sums of a few hundred entries are float32 in
// the lanes of a vector, those sums are added in double.
#include "lib/diagnostics/row_statistics.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/diagnostics/row_statistics.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h stands first.
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace lra {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Weights below this are taken as 0 in p log p, where they would add less than 1e-36.
constexpr float kSmallest = 1e-38f;

void row_sums(const float* p, int64_t count, RowStatistics& row) {
  constexpr int64_t kBlock = 512;
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto zero = hn::Zero(d), smallest = hn::Set(d, kSmallest);
  auto largest = zero;
  float tail[hn::MaxLanes(d)] = {};  // the last entries, and zeros
  double log_sum = 0.0;              // Σ |p| log |p|
  for (int64_t first = 0; first < count; first += kBlock) {
    const int64_t end = std::min(first + kBlock, count);
    auto squares = zero, sums = zero, logs = zero;
    for (int64_t j = first; j < end; j += lanes) {
      if (j + lanes > end) std::copy(p + j, p + end, tail);
      const auto x = hn::LoadU(d, j + lanes <= end ? p + j : tail);
      const auto a = hn::Abs(x);
      squares = hn::MulAdd(x, x, squares);
      sums = hn::Add(sums, a);
      largest = hn::Max(largest, a);
      logs = hn::MulAdd(a, hn::IfThenElseZero(hn::Ge(a, smallest), hn::Log(d, hn::Max(a, smallest))), logs);
      row.negative += static_cast<int64_t>(hn::CountTrue(d, hn::Lt(x, zero)));
    }
    row.square_sum += hn::GetLane(hn::SumOfLanes(d, squares));
    row.absolute_sum += hn::GetLane(hn::SumOfLanes(d, sums));
    log_sum += hn::GetLane(hn::SumOfLanes(d, logs));
  }
  row.largest = hn::GetLane(hn::MaxOfLanes(d, largest));
  if (row.absolute_sum > 0.0) {
    // Rounding can leave a certain row a little below 0.
    row.entropy = std::max(0.0, std::log(row.absolute_sum) - log_sum / row.absolute_sum);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace lra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lra {
namespace {
HWY_EXPORT(row_sums);
}

RowStatistics row_statistics(std::span<const float> weights) {
  RowStatistics row;
  HWY_DYNAMIC_DISPATCH(row_sums)(weights.data(), std::ssize(weights), row);
  return row;
}

double largest_magnitude(std::span<const float> x) {
  float largest = 0.0f;
  for (const float value : x) largest = std::max(largest, std::abs(value));
  return largest;
}

}  // namespace lra
#endif
