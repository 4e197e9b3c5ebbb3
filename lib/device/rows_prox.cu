// fusedmax and oscarmax (arXiv 1705.07704): sparsemax of a proximal map of the row, which makes groups of entries with
// one value, or one magnitude. The maps are those of lib/attention/prox_max.cpp, made by one thread a row: an entry
// follows from those before it. Backward: sparsemax's, then the mean over each group.
#include "lib/attention/total_variation.h"
#include "lib/device/entmax_row.h"
#include "lib/device/families.h"

namespace lra::device {
namespace {

// Prox is one of the two below: run(row, s) maps the row in place, average(row, s, g) the way back, both by one thread.
template <class Prox>
struct ProxMax {
  static constexpr int kNumbers = 0;
  static constexpr int kScratch = Prox::kScratch;
  Prox prox;
  Entmax sparsemax;

  ProxMax bound(std::span<const float* const>) const { return *this; }
  LRA_KERNEL void forward(const Team& team, const ScoreRow& row, float* s) const {
    const Prox map = prox;
    team.for_each(1, [=](int64_t) { map.run(row, s); });
    sparsemax.forward(team, row, s);
  }
  LRA_KERNEL void backward(const Team& team, const ScoreRow& row, float* s, float* g, float*) const {
    const Prox map = prox;
    team.for_each(1, [=](int64_t) { map.run(row, s); });
    const Entmax::Row r = sparsemax.at(team, row, s);
    const float total = team.sum(row.n, [=](int64_t j) { return r.lower(s[j]); });
    const float mean = team.sum(row.n, [=](int64_t j) { return r.lower(s[j]) * g[j]; }) / total;
    team.for_each(row.n, [=](int64_t j) { g[j] = r.lower(s[j]) * (g[j] - mean); });
    team.for_each(1, [=](int64_t) { map.average(row, s, g); });
    team.for_each(row.n, [=](int64_t j) { s[j] = r.weight(s[j]); });
  }
};

struct TotalVariation {
  static constexpr int kScratch = 0;
  float lambda;

  LRA_KERNEL void run(const ScoreRow& row, float* x) const {
    total_variation(x, row.n, lambda, [=](int64_t first, int64_t last, double value) {
      for (int64_t j = first; j <= last; ++j) x[j] = static_cast<float>(value);
    });
  }
  // Neighbours with one value are a group.
  LRA_KERNEL void average(const ScoreRow& row, const float* y, float* g) const {
    for (int64_t first = 0, end = 0; first < row.n; first = end) {
      double sum = 0.0;
      for (end = first; end < row.n && y[end] == y[first]; ++end) sum += g[end];
      for (int64_t j = first; j < end; ++j) g[j] = static_cast<float>(sum / static_cast<double>(end - first));
    }
  }
};

// Prox of OSCAR, weights beta (n - i) on the i-th largest |x|: isotonic regression of the sorted row by pooling.
struct Oscar {
  static constexpr int kScratch = 4;
  float beta;

  // Sums of blocks, entries in falling order of |x|, and lengths of blocks.
  struct Room {
    double* sum;
    int32_t *order, *length;
  };
  LRA_KERNEL static Room room(const ScoreRow& row) {
    auto* words = reinterpret_cast<int32_t*>(row.scratch);
    return {reinterpret_cast<double*>(row.scratch), words + 2 * row.padded, words + 3 * row.padded};
  }
  // Whether entry a stands before b.
  LRA_KERNEL static bool before(const float* x, int32_t a, int32_t b) {
    const float of_a = std::abs(x[a]), of_b = std::abs(x[b]);
    return of_a > of_b || (of_a == of_b && a < b);
  }
  // Heap sort; the root of the heap is the last of its entries.
  LRA_KERNEL static void sort(const float* x, int64_t n, int32_t* order) {
    const auto sink = [=](int64_t at, int64_t end) {
      for (int64_t child = 2 * at + 1; child < end; at = child, child = 2 * at + 1) {
        if (child + 1 < end && before(x, order[child], order[child + 1])) ++child;
        if (!before(x, order[at], order[child])) return;
        const int32_t moved = order[at];
        order[at] = order[child], order[child] = moved;
      }
    };
    for (int64_t i = 0; i < n; ++i) order[i] = static_cast<int32_t>(i);
    for (int64_t at = n / 2 - 1; at >= 0; --at) sink(at, n);
    for (int64_t end = n - 1; end > 0; --end) {
      const int32_t last = order[0];
      order[0] = order[end], order[end] = last;
      sink(0, end);
    }
  }
  LRA_KERNEL static float sign(float x) { return x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : 0.0f; }

  LRA_KERNEL void run(const ScoreRow& row, float* x) const {
    const Room r = room(row);
    sort(x, row.n, r.order);
    int64_t last = -1;  // block; means fall
    for (int64_t i = 0; i < row.n; ++i) {
      ++last;
      r.sum[last] = std::abs(x[r.order[i]]) - static_cast<double>(beta) * static_cast<double>(row.n - 1 - i);
      r.length[last] = 1;
      while (last > 0 && r.sum[last] / r.length[last] >= r.sum[last - 1] / r.length[last - 1]) {
        r.sum[last - 1] += r.sum[last], r.length[last - 1] += r.length[last];
        --last;
      }
    }
    for (int64_t block = 0, at = 0; at < row.n; ++block) {
      const double mean = r.sum[block] / r.length[block];
      for (const int64_t end = at + r.length[block]; at < end; ++at) {
        float& to = x[r.order[at]];
        to = mean > 0.0 ? static_cast<float>(sign(to) * mean) : 0.0f;
      }
    }
  }
  LRA_KERNEL void average(const ScoreRow& row, const float* y, float* g) const {
    const Room r = room(row);
    for (int64_t block = 0, begin = 0; begin < row.n; ++block) {
      const int64_t end = begin + r.length[block];
      double sum = 0.0;
      for (int64_t at = begin; at < end; ++at) sum += sign(y[r.order[at]]) * static_cast<double>(g[r.order[at]]);
      for (int64_t at = begin; at < end; ++at) {
        g[r.order[at]] = static_cast<float>(sign(y[r.order[at]]) * sum / r.length[block]);
      }
      begin = end;
    }
  }
};

}  // namespace

std::unique_ptr<ScoreRows> fusedmax_rows(float lambda) {
  return mapped_rows(ProxMax<TotalVariation>{{lambda}, {2.0f, false}});
}
std::unique_ptr<ScoreRows> oscarmax_rows(float beta) { return mapped_rows(ProxMax<Oscar>{{beta}, {2.0f, false}}); }

}  // namespace lra::device
