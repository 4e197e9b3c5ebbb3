// Dropout masks against their definition with Random123's generator, on every instruction set; rates, means, and the
// three ways to apply a mask.
#include "lib/ops/dropout.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/compare.h"
#include "tests/support/data.h"
#include "tests/support/targets.h"

namespace lra {
namespace {

const DropoutKey kKey{{0x89ABCDEFu, 0x12345678u}, dropout_site(DropoutSite::kAttention, 3, 1), 0xFEDCBA98u};

TEST(DropoutReference, IsTheDefinitionOfTheHeader) {
  // Philox4x32-7 by hand, from the paper's formulas.
  const auto philox = [](std::array<uint32_t, 4> c, std::array<uint32_t, 2> k) {
    for (int round = 0; round < 7; ++round) {
      const uint64_t a = uint64_t{0xD2511F53u} * c[0], b = uint64_t{0xCD9E8D57u} * c[2];
      c = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ k[0], static_cast<uint32_t>(b),
           static_cast<uint32_t>(a >> 32) ^ c[3] ^ k[1], static_cast<uint32_t>(a)};
      k[0] += 0x9E3779B9u, k[1] += 0xBB67AE85u;
    }
    return c;
  };
  for (uint32_t col = 0; col < 300; ++col) {
    const uint32_t g = col / 128, v = col / 16 % 8, l = col % 16;
    const uint32_t word = philox({16 * g + l, 9, kKey.site, kKey.example}, kKey.key)[v / 2];
    const uint32_t bits = v % 2 == 0 ? word & 0xFFFF : word >> 16;
    EXPECT_EQ(ref::dropout_keeps(kKey, 0.25f, 9, col), bits >= 16384) << col;
  }
}

TEST(Dropout, RatesAndScales) {
  EXPECT_EQ(dropout_threshold(0.0f), 0u);
  EXPECT_EQ(dropout_threshold(0.1f), 6554u);
  EXPECT_EQ(dropout_threshold(0.5f), 32768u);
  EXPECT_EQ(dropout_scale(0.0f), 1.0f);
  EXPECT_EQ(dropout_scale(0.5f), 2.0f);
  EXPECT_FLOAT_EQ(dropout_scale(0.1f), 65536.0f / (65536.0f - 6554.0f));
}

TEST(Dropout, SitesAreApart) {
  std::set<uint32_t> sites;
  int count = 0;
  for (int layer = 0; layer < 3; ++layer) {
    for (const DropoutSite site :
         {DropoutSite::kEmbedding, DropoutSite::kAttentionOutput, DropoutSite::kHidden, DropoutSite::kMlpOutput}) {
      sites.insert(dropout_site(site, layer));
      ++count;
    }
    for (int head = 0; head < 8; ++head, ++count) sites.insert(dropout_site(DropoutSite::kAttention, layer, head));
  }
  EXPECT_EQ(sites.size(), static_cast<size_t>(count));
}

TEST(Dropout, MaskIsTheDefinition) {
  for_each_target([](const std::string& target) {
    for (const int64_t cols : {0, 1, 7, 64, 127, 128, 129, 1000}) {
      for (const float rate : {0.0f, 0.1f, 0.5f, 0.9f, 1e-5f}) {
        for (const int64_t first : {int64_t{0}, int64_t{5}, int64_t{0xFFFFFFFE}}) {
          for (const int64_t col : {0, 384}) {
            const int64_t bytes = (cols + 127) / 128 * 16, stride = bytes + 5;
            std::vector<uint8_t> bits(2 * stride, 0xA5);
            dropout_mask(kKey, rate, first, col, 2, cols, bits.data(), stride);
            for (int64_t i = 0; i < 2; ++i) {
              const uint8_t* row = bits.data() + i * stride;
              for (int64_t j = 0; j < cols; ++j) {
                const bool kept =
                    ref::dropout_keeps(kKey, rate, static_cast<uint32_t>(first + i), static_cast<uint32_t>(col + j));
                ASSERT_EQ(row[j / 8] >> (j % 8) & 1, kept)
                    << target << " rate " << rate << " row " << first + i << " column " << col + j;
              }
              for (int64_t b = bytes; b < stride; ++b) ASSERT_EQ(row[b], 0xA5) << target << " writes too far";
            }
          }
        }
      }
    }
  });
}

// The largest rate that keeps an element, and the next: where >= and > part.
TEST(Dropout, DecidesExactlyAtTheThreshold) {
  for_each_target([](const std::string& target) {
    for (const uint32_t col : {0u, 15u, 20u, 33u, 70u, 100u, 127u, 130u}) {
      const auto rate = [](uint32_t threshold) { return static_cast<float>(threshold) / 65536.0f; };
      uint32_t keeps = 0, drops = 65536;
      while (drops - keeps > 1) {
        const uint32_t middle = (keeps + drops) / 2;
        (ref::dropout_keeps(kKey, rate(middle), 2, col) ? keeps : drops) = middle;
      }
      ASSERT_GT(keeps, 0u);
      for (const auto& [threshold, kept] : {std::pair{keeps, 1}, std::pair{drops, 0}}) {
        std::array<uint8_t, 32> bits;
        dropout_mask(kKey, rate(threshold), 2, 0, 1, 200, bits.data(), 32);
        EXPECT_EQ(bits[col / 8] >> (col % 8) & 1, kept) << target << " column " << col << " threshold " << threshold;
      }
    }
  });
}

TEST(Dropout, EveryPartOfTheKeyCounts) {
  const auto mask = [](const DropoutKey& key, uint32_t row) {
    std::array<uint64_t, 2> bits;
    dropout_mask(key, 0.5f, row, 0, 1, 128, reinterpret_cast<uint8_t*>(bits.data()), 16);
    return bits;
  };
  std::set<std::array<uint64_t, 2>> masks = {mask(kKey, 3), mask(kKey, 4)};
  for (uint32_t DropoutKey::*part : {&DropoutKey::site, &DropoutKey::example}) {
    DropoutKey key = kKey;
    key.*part += 1;
    masks.insert(mask(key, 3));
  }
  for (const int word : {0, 1}) {
    DropoutKey key = kKey;
    key.key[word] += 1;
    masks.insert(mask(key, 3));
  }
  EXPECT_EQ(masks.size(), 6u);
}

TEST(Dropout, AppliesItsMaskInThreeWays) {
  for_each_target([](const std::string& target) {
    for (const int rows : {0, 1, 7, 64}) {
      for (const int cols : {1, 7, 64, 100, 300}) {
        for (const float rate : {0.0f, 0.1f, 0.75f}) {
          const GappedMatrix<float> x(rows, cols, 3, 1);
          GappedMatrix<float> applied = x, added(rows, cols, 1, 2), copied(rows, cols, 2, 3);
          const std::vector<float> before = added.values();
          dropout_apply(kKey, rate, applied.view());
          dropout_add(kKey, rate, x.view(), added.view());
          dropout_copy(kKey, rate, x.view(), copied.view());
          EXPECT_TRUE(applied.intact() && added.intact() && copied.intact()) << target;
          std::vector<float> masked = x.values();
          std::vector<double> sum(masked.size());
          for (int64_t i = 0; i < rows * cols; ++i) {
            const bool kept =
                ref::dropout_keeps(kKey, rate, static_cast<uint32_t>(i / cols), static_cast<uint32_t>(i % cols));
            masked[i] = kept ? masked[i] * dropout_scale(rate) : 0.0f;
            sum[i] = static_cast<double>(before[i]) + masked[i];
          }
          EXPECT_EQ(applied.values(), masked) << target << " rate " << rate << " cols " << cols;
          EXPECT_EQ(copied.values(), masked) << target << " rate " << rate << " cols " << cols;
          if (rows == 0) continue;
          expect_close(added.values(), sum, tolerance(NumberType::kFloat32, 1, largest(sum)), target + " add");
        }
      }
    }
  });
}

TEST(Dropout, MeanStaysAndDropsAreAsManyAsTheRateSays) {
  constexpr int kRows = 400, kCols = 512;
  for (const float rate : {0.1f, 0.3f, 0.9f}) {
    GappedMatrix<float> x(kRows, kCols, 0);
    x.set(std::vector<float>(kRows * kCols, 1.0f));
    dropout_apply(kKey, rate, x.view());
    double sum = 0, kept = 0;
    for (const float value : x.values()) sum += value, kept += value != 0.0f;
    const double count = kRows * kCols, exact = 1.0 - dropout_threshold(rate) / 65536.0;
    const double deviation = std::sqrt(exact * (1 - exact) / count);
    EXPECT_NEAR(kept / count, exact, 5 * deviation) << rate;
    EXPECT_NEAR(sum / count, 1.0, 5 * deviation / exact) << rate;
  }
}

}  // namespace
}  // namespace lra
