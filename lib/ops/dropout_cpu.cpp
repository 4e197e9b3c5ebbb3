// Dropout of rows in vectors; the masks come from lib/ops/philox-inl.h and are used where they are made.
#include "lib/ops/dropout.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/ops/dropout_cpu.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// The order matters: these are read once a target.
#include "hwy/highway.h"
#include "lib/ops/philox-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lra {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

void mask(const DropoutKey& key, uint32_t threshold, int64_t row, int64_t col, int64_t rows, int64_t cols,
          uint8_t* bits, int64_t stride) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t group = 0; group * 128 < cols; ++group) {
      uint8_t padded[24];
      dropout_group_bits(key, threshold, static_cast<uint32_t>(row + i), static_cast<uint32_t>(col / 128 + group),
                         padded);
      std::memcpy(bits + i * stride + 16 * group, padded, 16);
    }
  }
}

// use(d, mask, row, column) for all columns, in vectors of up to 16 lanes and single lanes at the end of a row.
template <class Use>
HWY_INLINE void for_each_mask(const DropoutKey key, uint32_t threshold, int64_t rows, int64_t cols, Use use) {
  const hn::CappedTag<float, 16> d;
  const hn::CappedTag<float, 1> one;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t group = 0; group * 128 < cols; ++group) {
      const uint32_t row32 = static_cast<uint32_t>(row), group32 = static_cast<uint32_t>(group);
      dropout_group(d, key, threshold, row32, group32, [&](uint32_t offset, auto mask) HWY_ATTR {
        const int64_t column = 128 * group + offset;
        if (column + lanes <= cols) {
          use(d, mask, row, column);
        } else if (column < cols) {
          uint8_t bits[8];
          hn::StoreMaskBits(d, mask, bits);
          for (int64_t i = 0; column + i < cols; ++i) {
            const uint8_t bit[8] = {static_cast<uint8_t>(bits[i / 8] >> (i % 8) & 1)};
            use(one, hn::LoadMaskBits(one, bit), row, column + i);
          }
        }
      });
    }
  }
}

void copy(const DropoutKey& key, float rate, ConstMatrix x, Matrix y) {
  const float scale = dropout_scale(rate);
  for_each_mask(key, dropout_threshold(rate), x.rows, x.cols, [&](auto d, auto mask, int64_t row, int64_t i) HWY_ATTR {
    const auto v = hn::Mul(hn::LoadU(d, x.row(row) + i), hn::Set(d, scale));
    hn::StoreU(hn::IfThenElseZero(mask, v), d, y.row(row) + i);
  });
}

void add(const DropoutKey& key, float rate, ConstMatrix x, Matrix y) {
  const float scale = dropout_scale(rate);
  for_each_mask(key, dropout_threshold(rate), x.rows, x.cols, [&](auto d, auto mask, int64_t row, int64_t i) HWY_ATTR {
    const auto factor = hn::IfThenElseZero(mask, hn::Set(d, scale));
    const auto sum = hn::MulAdd(hn::LoadU(d, x.row(row) + i), factor, hn::LoadU(d, y.row(row) + i));
    hn::StoreU(sum, d, y.row(row) + i);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>

#include "lib/util/check.h"

namespace lra {

HWY_EXPORT(mask);
HWY_EXPORT(copy);
HWY_EXPORT(add);

void dropout_mask(const DropoutKey& key, float rate, int64_t row, int64_t col, int64_t rows, int64_t cols,
                  uint8_t* bits, int64_t stride) {
  check(col % 128 == 0, "a dropout mask from column {}", col);
  if (dropout_threshold(rate) == 0) {
    for (int64_t i = 0; i < rows; ++i) std::fill_n(bits + i * stride, (cols + 127) / 128 * 16, uint8_t{0xFF});
    return;
  }
  HWY_DYNAMIC_DISPATCH(mask)(key, dropout_threshold(rate), row, col, rows, cols, bits, stride);
}

void dropout_apply(const DropoutKey& key, float rate, Matrix x) {
  if (dropout_threshold(rate) != 0) HWY_DYNAMIC_DISPATCH(copy)(key, rate, x, x);
}

void dropout_add(const DropoutKey& key, float rate, ConstMatrix x, Matrix y) {
  if (dropout_threshold(rate) != 0) {
    HWY_DYNAMIC_DISPATCH(add)(key, rate, x, y);
    return;
  }
  for (int64_t row = 0; row < x.rows; ++row) {
    for (int64_t i = 0; i < x.cols; ++i) y.row(row)[i] += x.row(row)[i];
  }
}

void dropout_copy(const DropoutKey& key, float rate, ConstMatrix x, Matrix y) {
  if (dropout_threshold(rate) != 0) {
    HWY_DYNAMIC_DISPATCH(copy)(key, rate, x, y);
    return;
  }
  for (int64_t row = 0; row < x.rows; ++row) std::copy(x.row(row), x.row(row) + x.cols, y.row(row));
}

}  // namespace lra
#endif  // HWY_ONCE
