// Damaged files: whatever bytes change, reading ends with good rows, skipped rows or one InputError.
#include <gtest/gtest.h>

#include "datasets/listops/reader.h"
#include "datasets/listops/tokens.h"
#include "lib/util/check.h"
#include "lib/util/rng.h"
#include "tests/datasets/mutate.h"
#include "tests/datasets/temporary_folder.h"

namespace lra::listops {
namespace {

constexpr std::string_view kTelling("\t\r\n ()[]0\0\xff", 11);

TEST(ListopsReader, OutlivesTenThousandDamagedFiles) {
  const std::string good =
      file_bytes(std::filesystem::path(LRA_SOURCE_DIR) / "tests/datasets/data/small-crlf/basic_train.tsv");
  ASSERT_EQ(good.size(), 98u);
  TemporaryFolder folder;
  int refused = 0, whole = 0, partly = 0;
  for (uint64_t round = 0; round < 10'000; ++round) {
    Random random(1, RandomStream::kData, round);
    put_file(folder / "basic_train.tsv", mutated(good, kTelling, random));
    try {
      const auto rows = read_split(folder.path(), Split::kTrain, {6, 0, random.below(4) == 0});
      ASSERT_GT(rows->size(), 0);
      for (int64_t i = 0; i < rows->size(); ++i) {
        ASSERT_LE(rows->bytes(i).size(), 6u);
        ASSERT_LT(rows->label(i), 10);
        for (const uint8_t id : rows->bytes(i)) ASSERT_TRUE(is_digit(id) || is_operator(id) || id == kClose);
      }
      ++(rows->skipped().empty() ? whole : partly);
    } catch (const InputError& error) {
      ASSERT_NE(std::string(error.what()).find("basic_train.tsv:"), std::string::npos) << error.what();
      ++refused;
    }
  }
  // All three ends are reached: the damage is neither too slight nor too heavy to test anything.
  EXPECT_GT(refused, 200);
  EXPECT_GT(whole, 200);
  EXPECT_GT(partly, 200);
}

}  // namespace
}  // namespace lra::listops
