// Reading ListOps files: every shape they come in, good and bad.
#include <gtest/gtest.h>

#include <thread>

#include "datasets/listops/folder.h"
#include "datasets/listops/packed.h"
#include "datasets/listops/reader.h"
#include "datasets/listops/tokens.h"
#include "datasets/listops/writer.h"
#include "datasets/statistics.h"
#include "lib/util/check.h"
#include "tests/datasets/temporary_folder.h"

namespace lra::listops {
namespace {

namespace fs = std::filesystem;

constexpr Split kSplits[] = {Split::kTrain, Split::kValidation, Split::kTest};

fs::path fixture(const std::string& name) { return fs::path(LRA_SOURCE_DIR) / "tests/datasets/data" / name; }

void copy_set(const fs::path& folder) {
  fs::create_directories(folder);
  for (const Split split : kSplits) fs::copy_file(fixture("small-lf") / file_name(split), folder / file_name(split));
}

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Rows of the original generator. The hashes were computed in Python (xxhash), over rows that it had evaluated itself.
TEST(ListopsReader, ReadsRowsOfTheOriginalGenerator) {
  const uint64_t hashes[] = {0xa087d31aebe46451u, 0xd75b579674dd278fu, 0x451934632d6c6cceu};
  const int64_t sizes[] = {4, 2, 2};
  for (int i = 0; i < 3; ++i) {
    const auto rows = read_split(fixture("release"), kSplits[i], {2000, 0, true});
    EXPECT_EQ(rows->size(), sizes[i]);
    EXPECT_EQ(split_hash(*rows), hashes[i]);
    EXPECT_EQ(rows->truncated(), 0);
  }
}

TEST(ListopsReader, TakesBothLineEndingsAndNoFinalNewline) {
  const uint64_t hashes[] = {0x440693ec7ed04d4au, 0x7392a08fdfd9de3du, 0xf52903bd7cc7f8a6u};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(split_hash(*read_split(fixture("small-crlf"), kSplits[i], {2000, 0, true})), hashes[i]);
    EXPECT_EQ(split_hash(*read_split(fixture("small-lf"), kSplits[i], {2000, 0, true})), hashes[i]);
  }
  const auto rows = read_split(fixture("small-lf"), Split::kTrain);
  EXPECT_EQ(rows->get(0).ids, (std::vector<int32_t>{11, 3, 8, 15}));
  EXPECT_EQ(rows->get(0).label, 7);
  EXPECT_EQ(rows->get(2).ids, (std::vector<int32_t>{4}));
  EXPECT_THROW(rows->get(3), std::logic_error);
}

TEST(ListopsReader, CountsBadRowsByReasonAndNamesTheFirst) {
  const auto rows = read_split(fixture("bad-rows"), Split::kTrain);
  EXPECT_EQ(rows->size(), 2);
  EXPECT_EQ(rows->get(1).ids, (std::vector<int32_t>{13, 5, 14, 9, 10, 6, 15, 15}));
  const std::vector<Skipped> expected = {{"wrong field count", 3, "basic_train.tsv:3"},
                                         {"bad label", 3, "basic_train.tsv:6"},
                                         {"unknown token", 4, "basic_train.tsv:9"},
                                         {"unbalanced expression", 5, "basic_train.tsv:13"},
                                         {"label is not the value", 1, "basic_train.tsv:18"}};
  ASSERT_EQ(rows->skipped().size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(rows->skipped()[i].reason, expected[i].reason);
    EXPECT_EQ(rows->skipped()[i].count, expected[i].count);
    EXPECT_EQ(rows->skipped()[i].first, expected[i].first);
  }
}

// Every bad line of the fixture alone, after a good row.
TEST(ListopsReader, StrictNamesFileLineAndFault) {
  const std::string text = file_bytes(fixture("bad-rows") / "basic_train.tsv");
  const std::string faults[] = {"two fields",
                                "two fields",
                                "two fields",
                                "label '10'",
                                "label ''",
                                "label '-7'",
                                "token '[AVG'",
                                "token '17'",
                                "token '\\x00'",
                                "token '\\xff\\xfe'",
                                "an operator without its ]",
                                "more follows",
                                "without arguments",
                                "no expression",
                                "more follows",
                                "the label is 2 but the expression is 7"};
  std::vector<std::string> lines;
  for (size_t begin = 0, end; (end = text.find("\r\n", begin)) != std::string::npos; begin = end + 2) {
    lines.push_back(text.substr(begin, end - begin));
  }
  ASSERT_EQ(lines.size(), std::size(faults) + 3);
  TemporaryFolder folder;
  for (size_t i = 0; i < std::size(faults); ++i) {
    put_file(folder / "basic_train.tsv", lines[0] + "\n" + lines[1] + "\n" + lines[2 + i] + "\n");
    const auto message = message_of<InputError>([&] { read_split(folder.path(), Split::kTrain, {2000, 0, true}); });
    EXPECT_TRUE(holds(message, (folder / "basic_train.tsv").string() + ":3: ")) << message;
    EXPECT_TRUE(holds(message, faults[i])) << message << " lacks " << faults[i];
    const auto rows = read_split(folder.path(), Split::kTrain);
    EXPECT_EQ(rows->size(), 1);
    ASSERT_EQ(rows->skipped().size(), 1u);
    EXPECT_EQ(rows->skipped()[0].first, "basic_train.tsv:3");
  }
}

TEST(ListopsReader, CutsLongRowsButChecksThemWhole) {
  const auto rows = read_split(fixture("small-lf"), Split::kTrain, {4, 0, true});
  EXPECT_EQ(rows->size(), 3);
  EXPECT_EQ(rows->truncated(), 1);
  EXPECT_EQ(rows->get(1).ids, (std::vector<int32_t>{13, 5, 14, 9}));
  EXPECT_EQ(rows->get(1).label, 3);
  EXPECT_EQ(read_split(fixture("small-lf"), Split::kTrain, {0, 0, true})->truncated(), 0);
}

TEST(ListopsReader, LimitKeepsTheFirstGoodRows) {
  const auto two = read_split(fixture("small-lf"), Split::kTrain, {2000, 2, true});
  EXPECT_EQ(two->size(), 2);
  EXPECT_EQ(two->get(1).ids.size(), 8u);
  EXPECT_EQ(read_split(fixture("small-lf"), Split::kTrain, {2000, 100, true})->size(), 3);
  EXPECT_EQ(read_split(fixture("bad-rows"), Split::kTrain, {2000, 2, false})->get(1).ids.size(), 8u);
}

TEST(ListopsReader, RefusesFilesWithoutHeaderOrGoodTrainingRow) {
  const auto train = [](const std::string& name) {
    return message_of<InputError>([&] { read_split(fixture(name), Split::kTrain); });
  };
  EXPECT_TRUE(holds(train("empty"), "basic_train.tsv:1: the header must be")) << train("empty");
  EXPECT_TRUE(holds(train("no-header"), "basic_train.tsv:1: the header must be")) << train("no-header");
  EXPECT_TRUE(holds(train("header-only"), "not one good training row; it has none")) << train("header-only");
  EXPECT_TRUE(holds(train("no-good-row"), "basic_train.tsv:2, label is not the value")) << train("no-good-row");
  EXPECT_EQ(read_split(fixture("header-only"), Split::kValidation)->size(), 0);
  EXPECT_EQ(read_split(fixture("header-only"), Split::kTest)->size(), 0);
}

TEST(ListopsReader, RowsAreReadFromManyThreads) {
  const auto rows = read_split(fixture("release"), Split::kTrain);
  std::vector<uint64_t> hashes(8);
  std::vector<std::thread> threads;
  threads.reserve(hashes.size());
  for (uint64_t& hash : hashes) threads.emplace_back([&] { hash = split_hash(*rows); });
  for (std::thread& thread : threads) thread.join();
  for (const uint64_t hash : hashes) EXPECT_EQ(hash, 0xa087d31aebe46451u);
}

TEST(ListopsFolder, IsFoundUpToFourLevelsBelow) {
  TemporaryFolder root;
  const fs::path folder = root / "a/b/c/d";
  copy_set(folder);
  fs::create_directories(root / "a/other/empty");
  EXPECT_EQ(find_folder(folder), folder);
  EXPECT_EQ(find_folder(root / "a/b/c"), folder);
  EXPECT_EQ(find_folder(root.path()), folder);
  copy_set(root / "deep/1/2/3/4");
  EXPECT_EQ(find_folder(root.path()), folder);  // five levels below: too deep to be a second one
  const auto message = message_of<InputError>([&] { find_folder(root / "a/other"); });
  EXPECT_TRUE(holds(message, "no ListOps data")) << message;
}

TEST(ListopsFolder, TwoCandidatesAreRefusedByName) {
  TemporaryFolder root;
  copy_set(root / "first");
  copy_set(root / "x/second");
  const auto message = message_of<InputError>([&] { find_folder(root.path()); });
  EXPECT_TRUE(holds(message, (root / "first").string())) << message;
  EXPECT_TRUE(holds(message, (root / "x/second").string())) << message;
  EXPECT_EQ(find_folder(root / "x"), root / "x/second");
  copy_set(root.path());
  EXPECT_EQ(find_folder(root.path()), root.path());  // named itself
}

TEST(ListopsFolder, ALinkToTheSameFolderIsNoSecondOne) {
  TemporaryFolder root;
  copy_set(root / "real");
  fs::create_directory_symlink(root / "real", root / "alias");
  fs::create_directory_symlink(root.path(), root / "real/loop");
  EXPECT_EQ(find_folder(root.path()), root / "alias");
}

TEST(ListopsFolder, SaysWhatIsMissing) {
  TemporaryFolder root;
  copy_set(root / "set");
  fs::remove(root / "set/basic_val.tsv");
  const auto part = message_of<InputError>([&] { find_folder(root.path()); });
  EXPECT_TRUE(holds(part, "basic_val.tsv is missing")) << part;
  const auto missing = message_of<InputError>([&] { find_folder(root / "none"); });
  EXPECT_TRUE(holds(missing, "no such file or folder")) << missing;
  const auto file = message_of<InputError>([&] { find_folder(root / "set/basic_test.tsv"); });
  EXPECT_TRUE(holds(file, "not ListOps data")) << file;
}

TEST(ListopsWriter, GivesTheReleasesBytesBack) {
  TemporaryFolder out;
  FolderWriter writer(out / "new/set", false);
  for (const Split split : kSplits) {
    const auto rows = read_split(fixture("release"), split);
    for (int64_t i = 0; i < rows->size(); ++i) writer.add(split, rows->bytes(i), rows->label(i));
  }
  EXPECT_FALSE(fs::exists(out / "new/set/basic_train.tsv"));
  writer.commit();
  for (const Split split : kSplits) {
    EXPECT_EQ(file_bytes(out / "new/set" / file_name(split)), file_bytes(fixture("release") / file_name(split)));
  }
  const auto message = message_of<UsageError>([&] { FolderWriter again(out / "new/set", false); });
  EXPECT_TRUE(holds(message, "basic_train.tsv: exists already; --force")) << message;
  { FolderWriter dropped(out / "new/set", true); }  // without commit() the old files stay
  EXPECT_EQ(read_split(out / "new/set", Split::kTrain)->size(), 4);
}

TEST(ListopsPacked, KeepsEveryRow) {
  TemporaryFolder folder;
  std::unique_ptr<ByteRows> rows[3];
  for (int i = 0; i < 3; ++i) rows[i] = read_split(fixture("release"), kSplits[i]);
  const fs::path path = folder / "set.packed";
  write_packed(path, *rows[0], *rows[1], *rows[2]);
  const Splits whole = read_packed(path, {}, {}, {});
  EXPECT_EQ(split_hash(*whole.train), split_hash(*rows[0]));
  EXPECT_EQ(split_hash(*whole.validation), split_hash(*rows[1]));
  EXPECT_EQ(split_hash(*whole.test), split_hash(*rows[2]));
  const Splits cut = read_packed(path, {100, 3, false}, {100, 1, false}, {0, 0, false});
  EXPECT_EQ(cut.train->size(), 3);
  EXPECT_EQ(cut.train->truncated(), 3);
  EXPECT_EQ(cut.validation->size(), 1);
  EXPECT_EQ(split_hash(*cut.test), split_hash(*rows[2]));

  const std::string bytes = file_bytes(path);
  const auto damaged = [&](const std::string& with) {
    put_file(path, with);
    return message_of<InputError>([&] { read_packed(path, {}, {}, {}); });
  };
  EXPECT_TRUE(holds(damaged(bytes.substr(0, bytes.size() - 1)), "checksum"));
  EXPECT_TRUE(holds(damaged(bytes.substr(0, 20)), "cut short"));
  EXPECT_TRUE(holds(damaged("Source\tTarget\n"), "not a packed ListOps file"));
  std::string changed = bytes;
  changed[bytes.size() / 2] ^= 1;
  EXPECT_TRUE(holds(damaged(changed), "checksum"));
}

}  // namespace
}  // namespace lra::listops
