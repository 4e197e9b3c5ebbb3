// Products of tiles against plain loops in double, on every number of rows and on widths around a vector.
#include "lib/attention/tile_matmul.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "lib/attention/row_kernels.h"
#include "tests/support/compare.h"
#include "tests/support/data.h"
#include "tests/support/targets.h"

namespace lra {
namespace {

// C (M, N) + op(A) op(B) in double.
std::vector<double> expected(ConstMatrix a, Transpose ta, ConstMatrix b, Transpose tb, std::vector<double> c) {
  const auto as_double = [](ConstMatrix x) {
    std::vector<double> values;
    for (int64_t i = 0; i < x.rows; ++i) values.insert(values.end(), x.row(i), x.row(i) + x.cols);
    return values;
  };
  const std::vector<double> left = as_double(a), right = as_double(b);
  const int64_t m = ta == Transpose::kNo ? a.rows : a.cols;
  ref::matmul<double>({left.data(), a.rows, a.cols}, ta, {right.data(), b.rows, b.cols}, tb,
                      {c.data(), m, std::ssize(c) / m}, Write::kAdd);
  return c;
}

TEST(TileMatmul, ScoresOfEveryNumberOfRows) {
  for_each_target([](const std::string& target) {
    SCOPED_TRACE(target);
    for (const int64_t d : {1, 5, 32, 48}) {
      const int64_t keys = 100;
      const std::vector<float> k = random_normal<float>(keys * d, 1);
      std::vector<float> panels(padded_columns(keys) * d, NAN);
      pack_transposed({k.data(), keys, d}, panels.data());
      for (int64_t rows = 1; rows <= 2 * kTileRows + 1; ++rows) {
        const std::vector<float> q = random_normal<float>(rows * (d + 3), 2);
        const ConstMatrix a(q.data(), rows, d, d + 3);
        const int64_t first = padded_columns(1), columns = keys - first, stride = padded_columns(columns) + 7;
        std::vector<float> c(rows * stride, NAN);
        tile_scores(a, panels.data(), first, columns, {c.data(), rows, columns, stride});
        const std::vector<double> wanted = expected(a, Transpose::kNo, {k.data() + first * d, columns, d},
                                                    Transpose::kYes, std::vector<double>(rows * columns));
        for (int64_t i = 0; i < rows; ++i) {
          for (int64_t j = 0; j < columns; ++j) {
            ASSERT_NEAR(c[i * stride + j], wanted[i * columns + j], tolerance(NumberType::kFloat32, d, 10.0))
                << rows << " rows, head width " << d << ", at " << i << ", " << j;
          }
          // What lies beyond the columns of the last panel belongs to somebody else.
          for (int64_t j = padded_columns(columns); j < stride; ++j) ASSERT_TRUE(std::isnan(c[i * stride + j]));
        }
      }
    }
  });
}

TEST(TileMatmul, ProductsOfEveryNumberOfRows) {
  for_each_target([](const std::string& target) {
    SCOPED_TRACE(target);
    const int64_t depth = 37;
    for (const int64_t d : {1, 5, 16, 32, 40, 64}) {
      const int64_t width = padded_width(d);
      const std::vector<float> x = random_normal<float>(depth * d, 3);
      std::vector<float> b(depth * width, NAN);
      scale_rows(0.5f, nullptr, 0, {x.data(), depth, d}, {b.data(), depth, width});
      for (int64_t rows = 1; rows <= 2 * kTileRows + 1; ++rows) {
        for (const Transpose ta : {Transpose::kNo, Transpose::kYes}) {
          for (const Write write : {Write::kOver, Write::kAdd}) {
            const int64_t a_rows = ta == Transpose::kNo ? rows : depth, a_cols = ta == Transpose::kNo ? depth : rows;
            const std::vector<float> left = random_normal<float>(a_rows * (a_cols + 2), 4);
            const ConstMatrix a(left.data(), a_rows, a_cols, a_cols + 2);
            std::vector<float> c = random_normal<float>(rows * width, 5);
            std::vector<double> start(rows * d);
            for (int64_t i = 0; i < rows && write == Write::kAdd; ++i) {
              for (int64_t j = 0; j < d; ++j) start[i * d + j] = 2.0 * c[i * width + j];
            }
            tile_matmul(a, ta, {b.data(), depth, width}, {c.data(), rows, width}, write);
            const std::vector<double> wanted = expected(a, ta, {x.data(), depth, d}, Transpose::kNo, start);
            for (int64_t i = 0; i < rows; ++i) {
              for (int64_t j = 0; j < d; ++j) {
                ASSERT_NEAR(c[i * width + j], 0.5 * wanted[i * d + j], tolerance(NumberType::kFloat32, depth, 20.0))
                    << rows << " rows, width " << d << ", at " << i << ", " << j;
              }
            }
          }
        }
      }
    }
  });
}

// A result's bits must not depend on the rows that are computed with it.
TEST(TileMatmul, RowsDoNotDependOnTheirNeighbours) {
  for_each_target([](const std::string& target) {
    SCOPED_TRACE(target);
    const int64_t depth = 50, width = padded_width(32), rows = 3 * kTileRows;
    const std::vector<float> a = random_normal<float>(rows * depth, 6), b = random_normal<float>(depth * width, 7);
    std::vector<float> together(rows * width), alone(rows * width);
    tile_matmul({a.data(), rows, depth}, Transpose::kNo, {b.data(), depth, width}, {together.data(), rows, width},
                Write::kOver);
    for (int64_t i = 0; i < rows; ++i) {
      tile_matmul({a.data() + i * depth, 1, depth}, Transpose::kNo, {b.data(), depth, width},
                  {alone.data() + i * width, 1, width}, Write::kOver);
    }
    EXPECT_EQ(together, alone);
  });
}

}  // namespace
}  // namespace lra
