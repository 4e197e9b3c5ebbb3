// Sums of embedding rows and their gradients, in vectors.
#include "lib/ops/embedding.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/ops/embedding_cpu.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// The order matters: these are read once a target.
#include "hwy/highway.h"
#include "lib/ops/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lra {
namespace HWY_NAMESPACE {
namespace {

// out_i = table_a[a_i] + table_b[b_i].
void sum_of_rows(std::span<const int32_t> a, std::span<const int32_t> b, ConstMatrix table_a, ConstMatrix table_b,
                 Matrix out) {
  namespace hn = hwy::HWY_NAMESPACE;
  for (int64_t row = 0; row < out.rows; ++row) {
    const float* from_a = table_a.row(a[row]);
    const float* from_b = table_b.row(b[row]);
    float* HWY_RESTRICT to = out.row(row);
    for_each_lanes(out.cols, [&](auto d, int64_t i) HWY_ATTR {
      hn::StoreU(hn::Add(hn::LoadU(d, from_a + i), hn::LoadU(d, from_b + i)), d, to + i);
    });
  }
}

// table[at_i] += dx_i, i ascending.
void add_rows(std::span<const int32_t> at, ConstMatrix dx, Matrix table) {
  namespace hn = hwy::HWY_NAMESPACE;
  for (int64_t row = 0; row < dx.rows; ++row) {
    const float* from = dx.row(row);
    float* HWY_RESTRICT to = table.row(at[row]);
    for_each_lanes(dx.cols, [&](auto d, int64_t i) HWY_ATTR {
      hn::StoreU(hn::Add(hn::LoadU(d, to + i), hn::LoadU(d, from + i)), d, to + i);
    });
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "lib/util/check.h"

namespace lra {

HWY_EXPORT(sum_of_rows);
HWY_EXPORT(add_rows);

namespace {

// A wrong index would read or write memory of others: looked at every time, it costs nothing beside the rows.
void check_indices(std::span<const int32_t> indices, int64_t rows, int64_t table_rows, const char* what) {
  check(static_cast<int64_t>(indices.size()) == rows, "{} {} for {} rows", indices.size(), what, rows);
  for (const int32_t index : indices) {
    check(index >= 0 && index < table_rows, "embedding: {} {} not in 0 … {}", what, index, table_rows - 1);
  }
}

}  // namespace

void embedding_forward(std::span<const int32_t> ids, std::span<const int32_t> places, ConstMatrix token,
                       ConstMatrix position, Matrix x) {
  check_indices(ids, x.rows, token.rows, "token ids");
  check_indices(places, x.rows, position.rows, "places");
  HWY_DYNAMIC_DISPATCH(sum_of_rows)(ids, places, token, position, x);
}

void embedding_backward(std::span<const int32_t> ids, std::span<const int32_t> places, ConstMatrix dx, Matrix d_token,
                        Matrix d_position) {
  if (!d_token.empty()) {
    check_indices(ids, dx.rows, d_token.rows, "token ids");
    HWY_DYNAMIC_DISPATCH(add_rows)(ids, dx, d_token);
  }
  if (!d_position.empty()) {
    check_indices(places, dx.rows, d_position.rows, "places");
    HWY_DYNAMIC_DISPATCH(add_rows)(places, dx, d_position);
  }
}

}  // namespace lra
#endif  // HWY_ONCE
