// Damaged files: whatever bytes change, reading ends with good rows, skipped rows or one InputError.
#include <gtest/gtest.h>

#include "datasets/listops/reader.h"
#include "datasets/listops/tokens.h"
#include "lib/util/check.h"
#include "lib/util/rng.h"
#include "tests/datasets/temporary_folder.h"

namespace lra::listops {
namespace {

std::string mutated(std::string bytes, Random& random) {
  const uint32_t changes = 1 + random.below(8);
  for (uint32_t i = 0; i < changes && !bytes.empty(); ++i) {
    const size_t at = random.below(static_cast<uint32_t>(bytes.size()));
    constexpr std::string_view kTelling("\t\r\n ()[]0\0\xff", 11);
    switch (random.below(5)) {
      case 0: bytes[at] = static_cast<char>(random.below(256)); break;
      case 1: bytes[at] = kTelling[random.below(static_cast<uint32_t>(kTelling.size()))]; break;
      case 2: bytes.erase(at, 1 + random.below(20)); break;
      case 3:
        bytes.insert(at, bytes.substr(random.below(static_cast<uint32_t>(bytes.size())), random.below(40)));
        break;
      default: bytes.resize(random.below(16) == 0 ? at : bytes.size()); break;
    }
  }
  return bytes;
}

TEST(ListopsReader, OutlivesTenThousandDamagedFiles) {
  const std::string good =
      file_bytes(std::filesystem::path(LRA_SOURCE_DIR) / "tests/datasets/data/small-crlf/basic_train.tsv");
  ASSERT_EQ(good.size(), 98u);
  TemporaryFolder folder;
  int refused = 0, whole = 0, partly = 0;
  for (uint64_t round = 0; round < 10'000; ++round) {
    Random random(1, RandomStream::kData, round);
    put_file(folder / "basic_train.tsv", mutated(good, random));
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
