// Reading CIFAR-10: grey levels bit for bit, batches in order from archive and folder, and bad ones.
#include <gtest/gtest.h>

#include "datasets/image/find.h"
#include "datasets/image/grey.h"
#include "datasets/image/reader.h"
#include "datasets/statistics.h"
#include "lib/util/check.h"
#include "lib/util/files.h"
#include "tests/datasets/archive_support.h"

namespace lra::image {
namespace {

namespace fs = std::filesystem;

// Batches of 6, 5, 2, 6, 2 and 4 records, in another order, under the release's names. The hashes were computed in
// Python (numpy, xxhash) by a reader of its own.
fs::path small() { return fs::path(LRA_SOURCE_DIR) / "tests/datasets/data/image/cifar-10-binary-small.tar.gz"; }

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

void expect_hashes(const Splits& splits, uint64_t train, uint64_t validation, uint64_t test) {
  EXPECT_EQ(split_hash(*splits.train), train);
  EXPECT_EQ(split_hash(*splits.validation), validation);
  EXPECT_EQ(split_hash(*splits.test), test);
}

// A picture of one colour; so that rows can be told apart by their first id.
std::string record(int label, int level) {
  return static_cast<char>(label) + std::string(3 * kPixels, static_cast<char>(level));
}

// `rows` records a batch, the levels counting up from 10 over all of them, label = batch.
std::vector<Member> counted_batches(int rows) {
  std::vector<Member> members;
  int level = 10;
  for (size_t batch = 0; batch < kBatches.size(); ++batch) {
    std::string bytes;
    for (int i = 0; i < rows; ++i) bytes += record(static_cast<int>(batch), level++);
    members.push_back({std::string("cifar-10-batches-bin/") + kBatches[batch], bytes});
  }
  return members;
}

// The set in `members` as archive and as folder.
struct BothKinds {
  explicit BothKinds(const std::vector<Member>& members) {
    pack(folder / "set.tar.gz", members);
    unpack(folder / "set.tar.gz", folder.path());
    paths = {folder / "set.tar.gz", folder / "cifar-10-batches-bin"};
  }
  TemporaryFolder folder;
  std::vector<fs::path> paths;
};

// All 2^24 colours against numpy, which rounds each step to float32.
TEST(ImageGrey, IsTensorFlowsForEveryColour) {
  const GreyScale grey;
  std::string levels(size_t{1} << 24, '\0');
  size_t at = 0;
  for (int red = 0; red < 256; ++red) {
    for (int green = 0; green < 256; ++green) {
      for (int blue = 0; blue < 256; ++blue) {
        levels[at++] = static_cast<char>(
            grey.level(static_cast<uint8_t>(red), static_cast<uint8_t>(green), static_cast<uint8_t>(blue)));
      }
    }
  }
  EXPECT_EQ(hash_bytes(levels), 0x141ca310eaa08fd6u);
  EXPECT_EQ(grey.level(0, 0, 0), 0);
  EXPECT_EQ(grey.level(255, 255, 255), 255);
  EXPECT_EQ(grey.level(255, 0, 0), 76);
  EXPECT_EQ(grey.level(0, 255, 0), 149);
  EXPECT_EQ(grey.level(0, 0, 255), 29);
}

TEST(ImageReader, ReadsArchiveAndFolderAlike) {
  TemporaryFolder folder;
  unpack(small(), folder.path());
  for (const fs::path& path : {small(), folder / "cifar-10-batches-bin"}) {
    const Splits raw = read_set(path, {.strict = true});
    EXPECT_EQ(raw.train->size(), 19);
    EXPECT_EQ(raw.validation->size(), 2);
    EXPECT_EQ(raw.test->size(), 4);
    EXPECT_EQ(raw.train->truncated(), 0);
    expect_hashes(raw, 0xfca2d9a6d6d1ed49u, 0xbf86a4178f1758f1u, 0x0a6f9cef8698fcfdu);
    const DataExample first = raw.train->get(0);
    EXPECT_EQ(first.label, 2);
    ASSERT_EQ(first.ids.size(), 1024u);
    EXPECT_EQ(std::vector<int32_t>(first.ids.begin(), first.ids.begin() + 6),
              (std::vector<int32_t>{107, 113, 90, 97, 103, 110}));
    const Splits shifted = read_set(path, {.shifted = true});
    expect_hashes(shifted, 0x9c9178a0deb5f675u, 0x39d3ccc8e0c85c9du, 0x3ee13dce95668669u);
    EXPECT_EQ(shifted.train->get(0).ids[0], 108);
  }
}

TEST(ImageReader, CutsAtTheLimit) {
  const Splits splits = read_set(small(), {.max_length = 100});
  expect_hashes(splits, 0x31801232dccabfa5u, 0x35b636e350cc3d82u, 0x6c5371c3eb0d48afu);
  EXPECT_EQ(splits.train->truncated(), 19);
  EXPECT_EQ(splits.test->truncated(), 4);
  EXPECT_EQ(read_set(small(), {.max_length = 4096}).train->truncated(), 0);
  EXPECT_EQ(read_set(small(), {.max_length = 0}).train->get(0).ids.size(), 1024u);
}

TEST(ImageReader, BlackAndWhiteInBothNumberings) {
  std::vector<Member> members = counted_batches(1);
  members.back().bytes = record(3, 0) + record(4, 255);
  const BothKinds sets(members);
  for (const fs::path& path : sets.paths) {
    const auto raw = read_set(path).test;
    EXPECT_EQ(raw->get(0).ids, std::vector<int32_t>(1024, 0));  // all padding: a good picture of 0 tokens
    EXPECT_EQ(raw->get(1).ids, std::vector<int32_t>(1024, 255));
    const auto shifted = read_set(path, {.shifted = true}).test;
    EXPECT_EQ(shifted->get(0).ids, std::vector<int32_t>(1024, 1));
    EXPECT_EQ(shifted->get(1).ids, std::vector<int32_t>(1024, 256));
    EXPECT_TRUE(raw->skipped().empty());
  }
}

TEST(ImageReader, LimitsCountAfterTheSplit) {
  const BothKinds sets(counted_batches(5));
  for (const fs::path& path : sets.paths) {
    const Splits all = read_set(path);
    const Splits some = read_set(path, {.limit_train = 7, .limit_eval = 1});
    ASSERT_EQ(all.train->size(), 23);
    ASSERT_EQ(all.validation->size(), 2);
    ASSERT_EQ(some.train->size(), 7);
    ASSERT_EQ(some.validation->size(), 1);
    ASSERT_EQ(some.test->size(), 1);
    for (int64_t i = 0; i < 23; ++i) EXPECT_EQ(all.train->get(i).label, i / 5);
    for (int64_t i = 0; i < 7; ++i) EXPECT_EQ(some.train->get(i).ids, all.train->get(i).ids);
    EXPECT_EQ(some.validation->get(0).ids, all.validation->get(0).ids);
    EXPECT_EQ(some.test->get(0).ids, all.test->get(0).ids);
  }
}

TEST(ImageReader, ReadsOnlyWhatIsWanted) {
  const Splits all = read_set(small());
  for (int wanted = 1; wanted < 8; ++wanted) {
    const Splits some = read_set(
        small(),
        {.want_train = (wanted & 1) != 0, .want_validation = (wanted & 2) != 0, .want_test = (wanted & 4) != 0});
    ASSERT_EQ(some.train != nullptr, (wanted & 1) != 0);
    ASSERT_EQ(some.validation != nullptr, (wanted & 2) != 0);
    ASSERT_EQ(some.test != nullptr, (wanted & 4) != 0);
    if (some.train) {
      EXPECT_EQ(split_hash(*some.train), split_hash(*all.train));
    }
    if (some.validation) {
      EXPECT_EQ(split_hash(*some.validation), split_hash(*all.validation));
    }
    if (some.test) {
      EXPECT_EQ(split_hash(*some.test), split_hash(*all.test));
    }
  }
}

TEST(ImageReader, BadLabelsAreCountedOrRefused) {
  std::vector<Member> members = counted_batches(70);  // more than are read at a time
  members[0].bytes[65 * kRecord] = 10;
  members[0].bytes[66 * kRecord] = static_cast<char>(255);
  members[5].bytes[0] = 10;
  const BothKinds sets(members);
  for (const fs::path& path : sets.paths) {
    const Splits splits = read_set(path);
    EXPECT_EQ(splits.train->size() + splits.validation->size(), 348);
    EXPECT_EQ(splits.validation->size(), 34);
    ASSERT_EQ(splits.train->skipped().size(), 1u);
    EXPECT_EQ(splits.train->skipped()[0].reason, "bad label");
    EXPECT_EQ(splits.train->skipped()[0].count, 2);
    EXPECT_EQ(splits.train->skipped()[0].first, "data_batch_1.bin:66");
    EXPECT_TRUE(splits.validation->skipped().empty());
    ASSERT_EQ(splits.test->skipped().size(), 1u);
    EXPECT_EQ(splits.test->skipped()[0].first, "test_batch.bin:1");
    EXPECT_EQ(splits.train->get(65).ids[0], read_set(path, {.shifted = true}).train->get(65).ids[0] - 1);
    EXPECT_EQ(read_set(path, {.want_train = false}).validation->skipped()[0].count, 2);
    const auto message = message_of<InputError>([&] { read_set(path, {.strict = true}); });
    EXPECT_TRUE(holds(message, path.string())) << message;
    EXPECT_TRUE(holds(message, "data_batch_1.bin: record 66: the label is 10; labels are 0-9")) << message;
  }
}

TEST(ImageReader, NoGoodTrainingRowIsAnError) {
  std::vector<Member> members = counted_batches(1);
  for (size_t i = 0; i < kTrainBatches; ++i) members[i].bytes[0] = 11;
  const BothKinds sets(members);
  for (const fs::path& path : sets.paths) {
    const auto message = message_of<InputError>([&] { read_set(path); });
    EXPECT_TRUE(holds(message, "not one good training row; the first bad one is data_batch_1.bin:1")) << message;
  }
}

TEST(ImageReader, ABatchOfTheWrongSizeIsAnErrorThatNamesIt) {
  const std::pair<size_t, std::string> wrong[] = {{0, ""},
                                                  {2, record(1, 1).substr(1)},
                                                  {4, record(1, 1) + "x"},
                                                  {5, record(1, 1) + record(2, 2).substr(0, 3000)},
                                                  {5, "short"}};
  for (const auto& [batch, bytes] : wrong) {
    std::vector<Member> members = counted_batches(3);
    members[batch].bytes = bytes;
    const BothKinds sets(members);
    for (const fs::path& path : sets.paths) {
      const auto message = message_of<InputError>([&] { read_set(path); });
      EXPECT_TRUE(holds(message, path.string())) << message;
      EXPECT_TRUE(holds(message, std::string(kBatches[batch]) + ": " + std::to_string(bytes.size()) +
                                     " bytes long; a CIFAR-10 batch is one or more records of 3073 bytes"))
          << message;
    }
  }
}

TEST(ImageReader, MissingBatchesAreErrors) {
  for (size_t batch = 0; batch < kBatches.size(); ++batch) {
    std::vector<Member> members = counted_batches(1);
    members.erase(members.begin() + static_cast<ptrdiff_t>(batch));
    const BothKinds sets(members);
    for (const fs::path& path : sets.paths) {
      const auto message = message_of<InputError>([&] { read_set(path); });
      EXPECT_TRUE(holds(message, path.string())) << message;
      EXPECT_TRUE(holds(message, kBatches[batch])) << message;
    }
    const auto message = message_of<InputError>([&] { find_set(sets.paths[1]); });
    EXPECT_TRUE(holds(message, std::string(kBatches[batch]) + ": is missing beside the other")) << message;
  }
}

TEST(ImageReader, DamagedArchivesAreErrors) {
  TemporaryFolder folder;
  const std::string bytes = file_bytes(small());
  const fs::path cut = folder / "cut.tar.gz";
  for (const size_t length : {size_t{0}, size_t{20}, bytes.size() / 2, bytes.size() * 9 / 10}) {
    put_file(cut, bytes.substr(0, length));
    const auto message = message_of<InputError>([&] { read_set(cut); });
    EXPECT_TRUE(holds(message, cut.string() + ": cannot be read as a tar archive")) << length << ": " << message;
  }
}

TEST(ImageReader, OneArchiveHoldsOneSet) {
  TemporaryFolder folder;
  std::vector<Member> members = counted_batches(1);
  members.push_back({"cifar-10-batches-bin/test_batch.bin", record(7, 7)});
  pack(folder / "again.tar.gz", members);  // the later one counts, as on unpacking
  const auto test = read_set(folder / "again.tar.gz").test;
  ASSERT_EQ(test->size(), 1);
  EXPECT_EQ(test->get(0).label, 7);
  members.push_back({"copy/test_batch.bin", record(7, 7)});
  pack(folder / "two.tar.gz", members);
  const auto message = message_of<InputError>([&] { read_set(folder / "two.tar.gz"); });
  EXPECT_TRUE(holds(message, "more than one Image set")) << message;
  EXPECT_TRUE(holds(message, "copy/test_batch.bin")) << message;
  members = counted_batches(1);
  members[3] = {members[3].name, "data_batch_1.bin", Member::Kind::kSymbolicLink};
  pack(folder / "link.tar.gz", members);
  const auto link = message_of<InputError>([&] { read_set(folder / "link.tar.gz"); });
  EXPECT_TRUE(holds(link, "data_batch_4.bin is a link")) << link;
}

TEST(ImageReader, PermissionCounts) {
  TemporaryFolder folder;
  for (const Member& member : counted_batches(1)) put_file(folder / member.name, member.bytes);
  allow_all(folder.path());
  const fs::path set = folder / "cifar-10-batches-bin";
  forbid_all(set / "data_batch_2.bin");
  const AsNobody nobody;
  if (!nobody) GTEST_SKIP() << "cannot become another user";
  const auto message = message_of<InputError>([&] { read_set(find_set(set)); });
  EXPECT_TRUE(holds(message, "data_batch_2.bin: cannot be read: Permission denied")) << message;
  EXPECT_EQ(read_set(set, {.want_train = false, .want_validation = false}).test->size(), 1);
}

TEST(ImageFind, ArchiveOrFolderUpToFourLevelsBelow) {
  TemporaryFolder root;
  unpack(small(), root / "a/b/c");
  const fs::path set = root / "a/b/c/cifar-10-batches-bin";
  EXPECT_EQ(find_set(set), set);
  EXPECT_EQ(find_set(root.path()), set);
  fs::create_directories(root / "z/1/2");
  const fs::path archive = root / "z/1/2/cifar-10-binary.tar.gz";
  fs::copy_file(small(), archive);
  EXPECT_EQ(find_set(root / "z"), archive);
  EXPECT_EQ(find_set(archive), archive);
  const auto message = message_of<InputError>([&] { find_set(root.path()); });
  EXPECT_TRUE(holds(message, "more than one Image set")) << message;
  EXPECT_TRUE(holds(message, set.string())) << message;
  EXPECT_TRUE(holds(message, archive.string())) << message;
}

TEST(ImageFind, OtherFilesAreNoSets) {
  TemporaryFolder root;
  fs::copy_file(small(), root / "cifar-10-python.tar.gz");
  auto message = message_of<InputError>([&] { find_set(root.path()); });
  EXPECT_TRUE(holds(message, "no Image data up to four levels below; give cifar-10-binary.tar.gz")) << message;
  EXPECT_EQ(find_set(root / "cifar-10-python.tar.gz"), root / "cifar-10-python.tar.gz");  // named: looked into
  pack(root / "cifar-10-python.tar.gz", {{"cifar-10-batches-py/data_batch_1", "pickle"}});
  message = message_of<InputError>([&] { read_set(root / "cifar-10-python.tar.gz"); });
  EXPECT_TRUE(holds(message, "data_batch_1.bin is missing in it; give cifar-10-binary.tar.gz")) << message;
  put_file(root / "data_batch_1.bin", record(0, 0));
  message = message_of<InputError>([&] { find_set(root / "data_batch_1.bin"); });
  EXPECT_TRUE(holds(message, "not Image data")) << message;
}

TEST(ImageFind, AFolderNamedLikeABatchIsNone) {
  TemporaryFolder root;
  unpack(small(), root.path());
  const fs::path batch = root / "cifar-10-batches-bin/data_batch_3.bin";
  fs::remove(batch);
  fs::create_directories(batch);
  auto message = message_of<InputError>([&] { find_set(root.path()); });
  EXPECT_TRUE(holds(message, "data_batch_3.bin: not a file beside the other CIFAR-10 batches")) << message;
  message = message_of<InputError>([&] { read_set(root / "cifar-10-batches-bin"); });
  EXPECT_TRUE(holds(message, "data_batch_3.bin: not a file; give")) << message;
}

}  // namespace
}  // namespace lra::image
