// bfloat16 products: rounding and layout bit by bit, then products and linear layers against plain loops in double on
// operands that are rounded already, so that only float32's own errors are left.
#include "lib/ops/bfloat16.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "lib/ops/linear.h"
#include "lib/util/check.h"
#include "lib/util/cpu.h"
#include "tests/support/compare.h"
#include "tests/support/data.h"

namespace lra {
namespace {

// Nearest, ties to even; finite numbers only.
uint16_t rounded_bits(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}
float rounded(float x) { return std::bit_cast<float>(static_cast<uint32_t>(rounded_bits(x)) << 16); }

Bfloat16Pair pair(float low, float high) { return rounded_bits(low) | static_cast<uint32_t>(rounded_bits(high)) << 16; }

template <class Matrix>
auto rounded_as_double(const Matrix& x) {
  auto copy = x.template as<double>();
  for (int64_t i = 0; i < copy.view().rows; ++i) {
    for (int64_t j = 0; j < copy.view().cols; ++j) {
      copy.view().row(i)[j] = rounded(static_cast<float>(copy.view().row(i)[j]));
    }
  }
  return copy;
}

// With the tile instructions of AMX and without.
class Bfloat16 : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (!bfloat16_supported()) GTEST_SKIP() << "this processor has no AVX-512 BF16";
    if (GetParam() && !amx_bfloat16_usable()) GTEST_SKIP() << "this processor has no AMX";
    use_bfloat16_tiles(GetParam());
  }
  void TearDown() override { use_bfloat16_tiles(true); }
};
INSTANTIATE_TEST_SUITE_P(Tiles, Bfloat16, testing::Bool(),
                         [](const auto& param) { return param.param ? "amx" : "avx512"; });

TEST(Bfloat16Required, IsADeviceThatTheMachineLacks) {
  EXPECT_NO_THROW(require_bfloat16(true));
  try {
    require_bfloat16(false);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.exit_code(), 1);
    EXPECT_NE(std::string(error.what()).find("--precision float32"), std::string::npos) << error.what();
  }
}

TEST_P(Bfloat16, PacksRoundedPairs) {
  for (const int64_t rows : {1, 2, 15, 33}) {
    for (const int64_t cols : {1, 2, 15, 16, 31, 64}) {
      GappedMatrix<float> x(rows, cols, 3, 1);
      x.view().row(0)[0] = 1.00390625f;  // halfway between two numbers: to the even one
      const auto at = [&](int64_t i, int64_t j) { return i < rows && j < cols ? x.view().row(i)[j] : 0.0f; };

      std::vector<Bfloat16Pair> packed(rows * bfloat16_pairs(cols), 0xFFFFFFFFu);
      bfloat16_pack_rows(x.view(), {packed.data(), rows, bfloat16_pairs(cols)});
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t p = 0; p < bfloat16_pairs(cols); ++p) {
          ASSERT_EQ(packed[i * bfloat16_pairs(cols) + p], pair(at(i, 2 * p), at(i, 2 * p + 1)));
        }
      }
      const int64_t wide = (cols + 15) / 16 * 16;
      packed.assign(bfloat16_pairs(rows) * wide, 0xFFFFFFFFu);
      bfloat16_pack_row_pairs(x.view(), {packed.data(), bfloat16_pairs(rows), wide});
      for (int64_t p = 0; p < bfloat16_pairs(rows); ++p) {
        for (int64_t j = 0; j < wide; ++j) ASSERT_EQ(packed[p * wide + j], pair(at(2 * p, j), at(2 * p + 1, j)));
      }
      const int64_t width = bfloat16_columns(1);
      packed.assign(bfloat16_columns(rows) * bfloat16_pairs(cols), 0xFFFFFFFFu);
      bfloat16_pack_transposed(x.view(), packed.data());
      for (int64_t i = 0; i < bfloat16_columns(rows); ++i) {
        for (int64_t p = 0; p < bfloat16_pairs(cols); ++p) {
          ASSERT_EQ(packed[(i / width * bfloat16_pairs(cols) + p) * width + i % width],
                    pair(at(i, 2 * p), at(i, 2 * p + 1)));
        }
      }
    }
  }
}

TEST_P(Bfloat16, ProductsOfEveryNumberOfRows) {
  for (const auto& shape : {std::pair<int64_t, int64_t>(7, 40), {32, 64}, {1, 1}, {75, 16}, {2100, 48}}) {
    const int64_t depth = shape.first, cols = shape.second;
    for (int64_t rows = 1; rows <= 25; ++rows) {
      const GappedMatrix<float> a(rows, depth, 1, 1), at(depth, rows, 1, 2), b(depth, cols, 2, 3),
          bt(cols, depth, 0, 4);
      const int64_t pairs = bfloat16_pairs(depth), wide = (cols + 15) / 16 * 16;
      std::vector<Bfloat16Pair> left(rows * pairs), left_t(pairs * rows), right(pairs * wide),
          panels(bfloat16_columns(cols) * pairs);
      bfloat16_pack_rows(a.view(), {left.data(), rows, pairs});
      bfloat16_pack_row_pairs(at.view(), {left_t.data(), pairs, rows});
      bfloat16_pack_row_pairs(b.view(), {right.data(), pairs, wide});
      bfloat16_pack_transposed(bt.view(), panels.data());
      const auto a64 = rounded_as_double(a), at64 = rounded_as_double(at), b64 = rounded_as_double(b),
                 bt64 = rounded_as_double(bt);
      const auto compare = [&](const std::vector<float>& c, int64_t stride, Transpose ta, Transpose tb, double factor) {
        std::vector<double> wanted(rows * cols);
        ref::matmul<double>(ta == Transpose::kNo ? a64.view() : at64.view(), ta,
                            tb == Transpose::kNo ? b64.view() : bt64.view(), tb, {wanted.data(), rows, cols},
                            Write::kOver);
        for (int64_t i = 0; i < rows; ++i) {
          for (int64_t j = 0; j < cols; ++j) {
            ASSERT_NEAR(c[i * stride + j], factor * wanted[i * cols + j], tolerance(NumberType::kFloat32, depth, 20.0))
                << rows << " rows, depth " << depth << ", at " << i << ", " << j;
          }
        }
      };
      std::vector<float> c(rows * wide, NAN);
      const Matrix view(c.data(), rows, wide);
      bfloat16_matmul({left.data(), rows, pairs}, Transpose::kNo, {right.data(), pairs, wide}, view, Write::kOver);
      bfloat16_matmul({left.data(), rows, pairs}, Transpose::kNo, {right.data(), pairs, wide}, view, Write::kAdd);
      compare(c, wide, Transpose::kNo, Transpose::kNo, 2.0);
      bfloat16_matmul({left_t.data(), pairs, rows}, Transpose::kYes, {right.data(), pairs, wide}, view, Write::kOver);
      compare(c, wide, Transpose::kYes, Transpose::kNo, 1.0);
      const int64_t stride = bfloat16_columns(cols);
      c.assign(rows * stride, NAN);
      bfloat16_matmul_panels({left.data(), rows, pairs}, panels.data(), 0, cols, {c.data(), rows, cols, stride});
      compare(c, stride, Transpose::kNo, Transpose::kYes, 1.0);
    }
  }
}

TEST_P(Bfloat16, LinearLayers) {
  for (const auto& [n, in, out] : {std::tuple<int, int, int>(1, 3, 5), {200, 64, 192}, {450, 33, 17}, {0, 4, 4}}) {
    const GappedMatrix<float> x(n, in, 2, 1), weight(out, in, 0, 2), dy(n, out, 3, 3);
    const std::vector<float> bias = random_normal<float>(out, 4);
    const std::vector<double> bias64 = to_double(bias);
    const auto x64 = rounded_as_double(x), weight64 = rounded_as_double(weight), dy64 = rounded_as_double(dy);
    GappedMatrix<float> y(n, out, 1, 9), dx(n, in, 1, 8), d_weight(out, in, 0, 7);
    auto y64 = y.as<double>(), d_weight64 = d_weight.as<double>();
    const auto dx_before = dx.as<double>();
    GappedMatrix<double> dx64(n, in, 0, 8);
    std::vector<float> d_bias(out), d_bias32(out);
    std::vector<double> unused(out);
    Arena arena;
    linear_forward_bfloat16(x.view(), weight.view(), bias.data(), y.view(), arena);
    linear_backward_bfloat16(x.view(), weight.view(), dy.view(), dx.view(), Write::kAdd, d_weight.view(), d_bias.data(),
                             arena);
    add_bias_gradient(dy.view(), d_bias32.data());
    EXPECT_EQ(d_bias, d_bias32);
    ref::linear_forward<double>(x64.view(), weight64.view(), bias64.data(), y64.view());
    ref::linear_backward<double>(x64.view(), weight64.view(), dy64.view(), dx64.view(), d_weight64.view(),
                                 unused.data());
    EXPECT_TRUE(y.intact() && dx.intact() && d_weight.intact());
    if (n > 0) {
      std::vector<double> wanted = dx64.values();
      for (size_t i = 0; i < wanted.size(); ++i) wanted[i] += dx_before.values()[i];
      expect_close(y.values(), y64.values(), tolerance(NumberType::kFloat32, in, largest(y64.values())), "y");
      expect_close(dx.values(), wanted, tolerance(NumberType::kFloat32, out, largest(wanted)), "dx");
    }
    expect_close(d_weight.values(), d_weight64.values(),
                 tolerance(NumberType::kFloat32, n, largest(d_weight64.values())), "d_weight");
  }
}

}  // namespace
}  // namespace lra
