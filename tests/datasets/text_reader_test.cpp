// Reading the film reviews: from archive and folder, in order, split by hash; and what is wrong with bad sets.
#include <gtest/gtest.h>

#include <algorithm>

#include "datasets/statistics.h"
#include "datasets/text/find.h"
#include "datasets/text/reader.h"
#include "lib/util/check.h"
#include "tests/datasets/archive_support.h"

namespace lra::text {
namespace {

namespace fs = std::filesystem;

// 22 neg and 21 pos training reviews, 8 test reviews, and what else the release holds, in random order; among them
// reviews of 0 bytes, of every byte value, of 0xFF only and of 4,005 bytes. The hashes were computed in Python
// (tarfile, xxhash) by a reader of its own.
fs::path small() { return fs::path(LRA_SOURCE_DIR) / "tests/datasets/data/text/aclImdb_small.tar.gz"; }

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

void expect_hashes(const Splits& splits, uint64_t train, uint64_t validation, uint64_t test) {
  EXPECT_EQ(split_hash(*splits.train), train);
  EXPECT_EQ(split_hash(*splits.validation), validation);
  EXPECT_EQ(split_hash(*splits.test), test);
}

std::string text_of(const ByteRows& rows, int64_t index) {
  std::string text;
  for (const int32_t id : rows.get(index).ids) text += static_cast<char>(id - 1);
  return text;
}

// A set in which every review holds its own name, `count` in each of the four folders.
std::vector<Member> named_reviews(int count, const std::string& root = "aclImdb/") {
  std::vector<Member> members;
  for (const char* folder : {"train/neg/", "train/pos/", "test/neg/", "test/pos/"}) {
    for (int i = 0; i < count; ++i) {
      const std::string name = folder + std::to_string(i) + "_5.txt";
      members.push_back({root + name, name});
    }
  }
  return members;
}

// The set in `members` as archive and as folder.
struct BothKinds {
  explicit BothKinds(const std::vector<Member>& members) {
    pack(folder / "set.tar.gz", members);
    unpack(folder / "set.tar.gz", folder.path());
    paths = {folder / "set.tar.gz", folder / "aclImdb"};
  }
  TemporaryFolder folder;
  std::vector<fs::path> paths;
};

TEST(TextReader, ReadsArchiveAndFolderAlike) {
  TemporaryFolder folder;
  unpack(small(), folder.path());
  for (const fs::path& path : {small(), folder / "aclImdb"}) {
    const Splits splits = read_set(path, {.strict = true});
    EXPECT_EQ(splits.train->size(), 39);
    EXPECT_EQ(splits.validation->size(), 4);
    EXPECT_EQ(splits.test->size(), 8);
    EXPECT_EQ(splits.train->truncated(), 1);
    EXPECT_EQ(splits.test->truncated(), 0);
    expect_hashes(splits, 0x7f03e31aa5755b24u, 0x8d97a483b7acf9a7u, 0xb163c41068959ef1u);
  }
}

TEST(TextReader, CutsAtTheLimitAndSplitsByWholeBytes) {
  const Splits splits = read_set(small(), {.max_length = 50});
  expect_hashes(splits, 0x125aebba46e8490cu, 0x14afa04d7320a853u, 0xf2c40218f8ded8d8u);
  EXPECT_EQ(splits.train->truncated(), 31);
  EXPECT_EQ(splits.validation->truncated(), 4);
  EXPECT_EQ(splits.test->truncated(), 2);
  for (int64_t i = 0; i < splits.train->size(); ++i) EXPECT_LE(splits.train->get(i).ids.size(), 50u);
  EXPECT_EQ(read_set(small(), {.max_length = 0}).train->truncated(), 0);
}

TEST(TextReader, ValidationOnTheTestSplitKeepsAllTrainingReviews) {
  const Splits splits = read_set(small(), {.validation_is_test = true});
  EXPECT_EQ(splits.train->size(), 43);
  expect_hashes(splits, 0xd0f181e73ba135cfu, 0xb163c41068959ef1u, 0xb163c41068959ef1u);
}

TEST(TextReader, OrdersByNumberThenNegBeforePos) {
  const int numbers[] = {10, 9, 0, 2, 100};
  std::vector<Member> members;
  for (const int number : numbers) {
    for (const char* folder : {"train/pos/", "test/pos/", "test/neg/", "train/neg/"}) {
      const std::string name = folder + std::to_string(number) + "_1.txt";
      members.push_back({"aclImdb/" + name, name});
    }
  }
  const BothKinds sets(members);
  for (const fs::path& path : sets.paths) {
    const Splits splits = read_set(path);
    EXPECT_EQ(splits.validation->size(), 0);  // a tenth of five, rounded down
    ASSERT_EQ(splits.test->size(), 10);
    int64_t row = 0;
    for (const int number : {0, 2, 9, 10, 100}) {
      for (const int label : {0, 1}) {
        EXPECT_EQ(text_of(*splits.test, row), (label ? "test/pos/" : "test/neg/") + std::to_string(number) + "_1.txt");
        EXPECT_EQ(splits.test->get(row).label, label);
        EXPECT_EQ(splits.train->get(row).label, label);
        ++row;
      }
    }
  }
}

TEST(TextReader, TakesReviewsOfEveryKindOfBytes) {
  std::string every;
  for (int i = 0; i < 256; ++i) every += static_cast<char>(i);
  std::vector<Member> members = named_reviews(1);
  const std::string reviews[] = {"",
                                 every,
                                 std::string(300, '\xff'),
                                 std::string(4000, 'x'),
                                 std::string(4001, 'y'),
                                 "\r\n\n\r",
                                 std::string(200000, 'z')};
  for (size_t i = 0; i < std::size(reviews); ++i) {
    members.push_back({"aclImdb/test/neg/" + std::to_string(i + 1) + "_1.txt", reviews[i]});
  }
  const BothKinds sets(members);
  for (const fs::path& path : sets.paths) {
    const Splits splits = read_set(path, {.strict = true});
    ASSERT_EQ(splits.test->size(), 9);
    for (size_t i = 0; i < std::size(reviews); ++i) {
      const auto row = static_cast<int64_t>(i + 2);
      EXPECT_EQ(text_of(*splits.test, row), reviews[i].substr(0, 4000)) << i;
      EXPECT_EQ(splits.test->get(row).label, 0);
    }
    EXPECT_EQ(splits.test->truncated(), 2);
    EXPECT_EQ(splits.test->get(3).ids.front(), 1);
    EXPECT_EQ(splits.test->get(3).ids.back(), 256);
    EXPECT_TRUE(splits.test->skipped().empty());
  }
}

// XXH64 of "g" is below that of "b": of nine equal reviews the first in the order of rows is the tenth that is taken.
TEST(TextReader, OfEqualReviewsTheFirstGoesToValidation) {
  std::vector<Member> members;
  for (const char* folder : {"train/neg/", "train/pos/", "test/neg/", "test/pos/"}) {
    for (int i = 9; i >= 0; --i) {
      members.push_back({std::string("aclImdb/") + folder + std::to_string(i) + "_1.txt", i == 1 ? "b" : "g"});
    }
  }
  const BothKinds sets(members);
  for (const fs::path& path : sets.paths) {
    const Splits splits = read_set(path);
    ASSERT_EQ(splits.train->size(), 18);
    ASSERT_EQ(splits.validation->size(), 2);
    for (int64_t i = 0; i < 2; ++i) {
      EXPECT_EQ(text_of(*splits.validation, i), "g");
      EXPECT_EQ(splits.validation->get(i).label, i);
    }
    for (int64_t i = 0; i < 18; ++i) EXPECT_EQ(text_of(*splits.train, i), i < 2 ? "b" : "g");
  }
}

TEST(TextReader, LimitsCountAfterTheSplit) {
  const Splits all = read_set(small());
  const Splits some = read_set(small(), {.limit_train = 3, .limit_eval = 2});
  ASSERT_EQ(some.train->size(), 3);
  ASSERT_EQ(some.validation->size(), 2);
  ASSERT_EQ(some.test->size(), 2);
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(some.train->get(i).ids, all.train->get(i).ids);
  for (int64_t i = 0; i < 2; ++i) EXPECT_EQ(some.validation->get(i).ids, all.validation->get(i).ids);
  for (int64_t i = 0; i < 2; ++i) EXPECT_EQ(some.test->get(i).ids, all.test->get(i).ids);
  EXPECT_EQ(read_set(small(), {.limit_train = 1000, .limit_eval = 1000}).train->size(), 39);
}

TEST(TextReader, ReadsOnlyWhatIsWanted) {
  for (const bool on_test : {false, true}) {
    const Splits all = read_set(small(), {.validation_is_test = on_test});
    for (int wanted = 1; wanted < 8; ++wanted) {
      const Splits some = read_set(small(), {.validation_is_test = on_test,
                                             .want_train = (wanted & 1) != 0,
                                             .want_validation = (wanted & 2) != 0,
                                             .want_test = (wanted & 4) != 0});
      ASSERT_EQ(some.train != nullptr, (wanted & 1) != 0);
      ASSERT_EQ(some.validation != nullptr, (wanted & 2) != 0);
      ASSERT_EQ(some.test != nullptr, (wanted & 4) != 0);
      if (some.validation) {
        EXPECT_EQ(split_hash(*some.validation), split_hash(*all.validation));
      }
      if (some.test) {
        EXPECT_EQ(split_hash(*some.test), split_hash(*all.test));
      }
      // Without its tenth wanted, training is still what is left of it.
      if (some.train) {
        EXPECT_EQ(split_hash(*some.train), split_hash(*all.train));
      }
    }
  }
}

TEST(TextReader, BadFilesAreCountedByReasonOrRefused) {
  const std::string bad[] = {"train/neg/._0_5.txt",
                             "train/neg/1_5.html",
                             "train/neg/1.txt",
                             "train/neg/1_5.txt~",
                             "train/neg/_5.txt",
                             "train/neg/x_5.txt",
                             "train/neg/-1_5.txt",
                             "train/neg/1_.txt",
                             "train/neg/1_5_5.txt",
                             "train/neg/.txt",
                             "train/neg/1234567890123456789012_5.txt"};
  std::vector<Member> members = named_reviews(3);
  for (const std::string& name : bad) members.push_back({"aclImdb/" + name, "bytes"});
  members.push_back({"aclImdb/test/pos/README", "bytes"});
  const BothKinds sets(members);
  for (const fs::path& path : sets.paths) {
    const Splits splits = read_set(path);
    EXPECT_EQ(splits.train->size(), 6);
    ASSERT_EQ(splits.train->skipped().size(), 1u);
    EXPECT_EQ(splits.train->skipped()[0].reason, "not a review");
    EXPECT_EQ(splits.train->skipped()[0].count, static_cast<int64_t>(std::size(bad)));
    EXPECT_TRUE(holds(splits.train->skipped()[0].first, "train/neg/")) << splits.train->skipped()[0].first;
    EXPECT_TRUE(splits.validation->skipped().empty());
    ASSERT_EQ(splits.test->skipped().size(), 1u);
    EXPECT_EQ(splits.test->skipped()[0].first, "test/pos/README");
    const Splits no_train = read_set(path, {.want_train = false});
    EXPECT_EQ(no_train.validation->skipped()[0].count, static_cast<int64_t>(std::size(bad)));
    const Splits on_test = read_set(path, {.validation_is_test = true});
    EXPECT_EQ(on_test.validation->skipped()[0].first, "test/pos/README");
    const auto message = message_of<InputError>([&] { read_set(path, {.strict = true}); });
    EXPECT_TRUE(holds(message, path.string())) << message;
    EXPECT_TRUE(holds(message, "not a review; ")) << message;
    EXPECT_TRUE(holds(message, "NUMBER_RATING.txt")) << message;
  }
}

TEST(TextReader, AFolderNamedLikeAReviewIsBad) {
  TemporaryFolder folder;
  for (const Member& member : named_reviews(2, "")) put_file(folder / member.name, member.bytes);
  fs::create_directories(folder / "test/neg/7_1.txt");
  fs::create_symlink("nowhere", folder / "test/neg/8_1.txt");
  fs::create_symlink("0_5.txt", folder / "test/neg/9_1.txt");  // a link to a file is one
  const Splits splits = read_set(folder.path());
  EXPECT_EQ(splits.test->size(), 5);
  ASSERT_EQ(splits.test->skipped().size(), 2u);
  EXPECT_EQ(splits.test->skipped()[0].reason, "not a review");
  EXPECT_EQ(splits.test->skipped()[0].first, "test/neg/7_1.txt");
  EXPECT_EQ(splits.test->skipped()[1].reason, "cannot be read");
  EXPECT_EQ(splits.test->skipped()[1].first, "test/neg/8_1.txt");
}

TEST(TextReader, LinksInAnArchiveAreBad) {
  TemporaryFolder folder;
  std::vector<Member> members = named_reviews(2);
  members.push_back({"aclImdb/train/pos/5_5.txt", "aclImdb/train/pos/0_5.txt", Member::Kind::kHardLink});
  members.push_back({"aclImdb/train/pos/6_5.txt", "0_5.txt", Member::Kind::kSymbolicLink});
  pack(folder / "a.tar", members);
  const Splits splits = read_set(folder / "a.tar");
  EXPECT_EQ(splits.train->size(), 4);
  ASSERT_EQ(splits.train->skipped().size(), 1u);
  EXPECT_EQ(splits.train->skipped()[0].reason, "a link");
  EXPECT_EQ(splits.train->skipped()[0].count, 2);
  EXPECT_EQ(splits.train->skipped()[0].first, "train/pos/5_5.txt");
}

TEST(TextReader, OfAMemberThatComesTwiceTheLaterCounts) {
  TemporaryFolder folder;
  std::vector<Member> members = named_reviews(2);
  members.push_back({"aclImdb/test/neg/1_5.txt", "later"});
  pack(folder / "a.tar.gz", members);
  const Splits splits = read_set(folder / "a.tar.gz", {.strict = true});
  ASSERT_EQ(splits.test->size(), 4);
  EXPECT_EQ(text_of(*splits.test, 2), "later");
  EXPECT_EQ(text_of(*splits.test, 0), "test/neg/0_5.txt");
}

TEST(TextReader, DamagedArchivesAreErrors) {
  TemporaryFolder folder;
  const std::string bytes = file_bytes(small());
  const fs::path cut = folder / "aclImdb_cut.tar.gz";
  for (const size_t length : {size_t{0}, size_t{20}, bytes.size() / 2, bytes.size() * 9 / 10}) {
    put_file(cut, bytes.substr(0, length));
    const auto message = message_of<InputError>([&] { read_set(cut); });
    EXPECT_TRUE(holds(message, cut.string() + ": cannot be read as a tar archive")) << length << ": " << message;
  }
}

TEST(TextReader, SetsWithoutAllFourFoldersAreErrors) {
  for (const char* missing : {"train/neg", "train/pos", "test/neg", "test/pos"}) {
    std::vector<Member> members = named_reviews(2);
    std::erase_if(members, [&](const Member& member) { return holds(member.name, missing); });
    TemporaryFolder folder;
    pack(folder / "a.tar.gz", members);
    auto message = message_of<InputError>([&] { read_set(folder / "a.tar.gz"); });
    EXPECT_TRUE(holds(message, std::string("a.tar.gz: ") + missing + " holds no file")) << message;
    unpack(folder / "a.tar.gz", folder.path());
    fs::create_directories(folder / "aclImdb" / missing);
    message = message_of<InputError>([&] { read_set(folder / "aclImdb"); });
    EXPECT_TRUE(holds(message, std::string(missing) + " holds no file")) << message;
  }
  TemporaryFolder folder;
  pack(folder / "other.tar.gz", {{"a/b", "c"}});
  const auto message = message_of<InputError>([&] { read_set(folder / "other.tar.gz"); });
  EXPECT_TRUE(holds(message, "train/neg holds no file; give aclImdb_v1.tar.gz")) << message;
}

TEST(TextReader, NoGoodTrainingReviewIsAnError) {
  std::vector<Member> members = named_reviews(1);
  for (Member& member : members) {
    if (holds(member.name, "train/")) member.name += ".bak";
  }
  const BothKinds sets(members);
  for (const fs::path& path : sets.paths) {
    const auto message = message_of<InputError>([&] { read_set(path); });
    EXPECT_TRUE(holds(message, "not one good training review; the first bad file is train/neg/0_5.txt.bak")) << message;
    EXPECT_EQ(read_set(path, {.want_train = false}).validation->size(), 0);
  }
}

TEST(TextReader, TwoSetsInOneArchiveAreRefused) {
  TemporaryFolder folder;
  std::vector<Member> members = named_reviews(1, "first/");
  for (const Member& member : named_reviews(1, "x/second/")) members.push_back(member);
  pack(folder / "a.tar.gz", members);
  const auto message = message_of<InputError>([&] { read_set(folder / "a.tar.gz"); });
  EXPECT_TRUE(holds(message, "more than one Text set, under 'first/' and 'x/second/'")) << message;
  pack(folder / "b.tar.gz", named_reviews(1, ""));  // packed without a folder around
  EXPECT_EQ(read_set(folder / "b.tar.gz").test->size(), 2);
}

TEST(TextReader, PermissionCounts) {
  TemporaryFolder folder;
  for (const Member& member : named_reviews(2, "")) put_file(folder / member.name, member.bytes);
  allow_all(folder.path());
  forbid_all(folder / "train/pos/1_5.txt");
  forbid_all(folder / "test/neg");
  {
    const AsNobody nobody;
    if (!nobody) GTEST_SKIP() << "cannot become another user";
    const Splits splits = read_set(folder.path(), {.want_test = false});
    EXPECT_EQ(splits.train->size(), 3);
    ASSERT_EQ(splits.train->skipped().size(), 1u);
    EXPECT_EQ(splits.train->skipped()[0].reason, "cannot be read");
    EXPECT_EQ(splits.train->skipped()[0].first, "train/pos/1_5.txt");
    auto message = message_of<InputError>([&] { read_set(folder.path(), {.strict = true, .want_test = false}); });
    EXPECT_TRUE(holds(message, "train/pos/1_5.txt: cannot be read: Permission denied")) << message;
    message = message_of<InputError>([&] { read_set(folder.path()); });
    EXPECT_TRUE(holds(message, "test/neg: cannot be read: Permission denied")) << message;
  }
  allow_all(folder / "test/neg");
}

TEST(TextFind, ArchiveOrFolderUpToFourLevelsBelow) {
  TemporaryFolder root;
  unpack(small(), root / "a/b/c");
  const fs::path set = root / "a/b/c/aclImdb";
  EXPECT_EQ(find_set(set), set);
  EXPECT_EQ(find_set(root / "a/b/c"), set);
  EXPECT_EQ(find_set(root.path()), set);
  fs::create_directories(root / "z/1/2");
  fs::copy_file(small(), root / "z/1/2/aclImdb_v1.tar.gz");
  EXPECT_EQ(find_set(root / "z"), root / "z/1/2/aclImdb_v1.tar.gz");
  const auto message = message_of<InputError>([&] { find_set(root.path()); });
  EXPECT_TRUE(holds(message, "more than one Text set")) << message;
  EXPECT_TRUE(holds(message, set.string())) << message;
  EXPECT_TRUE(holds(message, (root / "z/1/2/aclImdb_v1.tar.gz").string())) << message;
}

TEST(TextFind, OtherArchivesCountOnlyWhenNamed) {
  TemporaryFolder root;
  fs::copy_file(small(), root / "reviews.tar.gz");
  EXPECT_EQ(find_set(root / "reviews.tar.gz"), root / "reviews.tar.gz");
  auto message = message_of<InputError>([&] { find_set(root.path()); });
  EXPECT_TRUE(holds(message, "no Text data up to four levels below; give aclImdb_v1.tar.gz")) << message;
  put_file(root / "reviews.zip", "PK");
  message = message_of<InputError>([&] { find_set(root / "reviews.zip"); });
  EXPECT_TRUE(holds(message, "reviews.zip: not Text data; give aclImdb_v1.tar.gz")) << message;
}

TEST(TextFind, SaysWhichFolderIsRight) {
  TemporaryFolder root;
  unpack(small(), root.path());
  const std::string set = fs::canonical(root / "aclImdb").string();
  for (const char* part : {"train", "test", "train/pos", "train/unsup", "test/neg"}) {
    const auto message = message_of<InputError>([&] { find_set(root / "aclImdb" / part); });
    EXPECT_TRUE(holds(message, std::string(part) + ": a part of the Text data only, the whole is " + set)) << message;
  }
  fs::remove_all(root / "aclImdb/test/pos");
  const auto message = message_of<InputError>([&] { find_set(root.path()); });
  EXPECT_TRUE(holds(message, "aclImdb: test/pos is missing beside the other three")) << message;
  EXPECT_TRUE(holds(message_of<InputError>([&] { find_set(root / "none"); }), "none: no such file or folder"));
}

}  // namespace
}  // namespace lra::text
