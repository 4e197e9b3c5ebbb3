// Reading a Pathfinder folder: finding it, its order, and every bad picture and row. The fixture holds pictures of the
// original generator (data/make_pathfinder.py).
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "datasets/pathfinder/folder.h"
#include "datasets/pathfinder/reader.h"
#include "datasets/png.h"
#include "lib/util/check.h"
#include "tests/datasets/temporary_folder.h"

namespace lra::pathfinder {
namespace {

namespace fs = std::filesystem;

fs::path data() { return fs::path(LRA_SOURCE_DIR) / "tests/datasets/data"; }
fs::path release() { return data() / "pathfinder32/curv_contour_length_14"; }

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

void copy_set(const fs::path& folder) {
  fs::create_directories(folder);
  fs::copy(release(), folder, fs::copy_options::recursive);
}

// A set of `count` all-grey pictures; picture k has level k and label k % 2.
void put_set(const fs::path& folder, int count, int size = 32) {
  std::string rows;
  for (int k = 0; k < count; ++k) {
    const GreyPicture picture{
        .width = size,
        .height = size,
        .pixels = std::vector<uint8_t>(static_cast<size_t>(size) * static_cast<size_t>(size), static_cast<uint8_t>(k))};
    put_file(folder / fmt::format("imgs/0/sample_{}.png", k), write_grey_png(picture));
    rows += fmt::format("imgs/0 sample_{}.png {} {} 1.0 14 4 2 0.5 1 1\n", k, k, k % 2);
  }
  put_file(folder / "metadata/0.npy", rows);
}

std::vector<Skipped> skipped_of(const fs::path& folder) { return read_folder(folder, {}).train->skipped(); }

std::string strict_message(const fs::path& folder) {
  return message_of<InputError>([&] { read_folder(folder, {.strict = true}); });
}

// Hashes by Pillow, NumPy and xxhash (data/make_pathfinder.py prints them).
TEST(PathfinderReader, ReadsPicturesOfTheOriginalGenerator) {
  const struct {
    bool shifted;
    uint64_t train, validation, test;
  } cases[] = {{false, 0xc98374ad84b013f1u, 0x41c615e85a740646u, 0xbd8690ce70d822c7u},
               {true, 0x9fa160c6da5a609fu, 0x937ebd1abb9d8edfu, 0x9182e1e1309ab315u}};
  for (const int threads : {1, 2, 5}) {
    for (const int64_t held : {int64_t{0}, int64_t{1} << 30}) {
      for (const auto& [shifted, train, validation, test] : cases) {
        const Splits splits = read_folder(
            release(), {.shifted = shifted, .max_length = 1024, .strict = true, .threads = threads, .held = held});
        EXPECT_EQ(splits.train->size(), 11);
        EXPECT_EQ(splits.validation->size(), 1);
        EXPECT_EQ(splits.test->size(), 2);
        EXPECT_EQ(split_hash(*splits.train), train);
        EXPECT_EQ(split_hash(*splits.validation), validation);
        EXPECT_EQ(split_hash(*splits.test), test);
        EXPECT_TRUE(splits.train->skipped().empty());
        EXPECT_EQ(splits.train->truncated(), 0);
        EXPECT_THROW(splits.test->get(2), std::logic_error);
        EXPECT_THROW(splits.test->get(-1), std::logic_error);
      }
    }
  }
}

TEST(PathfinderReader, AnAllBlackPictureIsAGoodOne) {
  TemporaryFolder folder;
  put_set(folder.path(), 10);
  const Splits splits = read_folder(folder.path(), {.strict = true});
  int black = 0;
  for (const DataSplit* split : {splits.train.get(), splits.validation.get(), splits.test.get()}) {
    for (int64_t i = 0; i < split->size(); ++i) {
      const DataExample example = split->get(i);
      EXPECT_EQ(example.ids, std::vector<int32_t>(1024, example.ids[0]));
      EXPECT_EQ(example.label, example.ids[0] % 2);
      if (example.ids[0] == 0) ++black;
    }
  }
  EXPECT_EQ(black, 1);
}

TEST(PathfinderReader, CutsAndLimits) {
  TemporaryFolder folder;
  put_set(folder.path(), 20);
  const Splits all = read_folder(folder.path(), {});
  const Splits some =
      read_folder(folder.path(), {.max_length = 1000, .limit_train = 5, .limit_eval = 1, .strict = true});
  EXPECT_EQ(all.train->size(), 16);
  EXPECT_EQ(all.validation->size(), 2);
  EXPECT_EQ(all.test->size(), 2);
  EXPECT_EQ(some.train->size(), 5);
  EXPECT_EQ(some.validation->size(), 1);
  EXPECT_EQ(some.test->size(), 1);
  EXPECT_EQ(some.train->truncated(), 5);
  EXPECT_EQ(some.test->truncated(), 1);
  for (int64_t i = 0; i < 5; ++i) {
    std::vector<int32_t> ids = all.train->get(i).ids;
    ids.resize(1000);
    EXPECT_EQ(some.train->get(i).ids, ids);
  }
}

TEST(PathfinderReader, TheOrderDependsOnNamesAlone) {
  TemporaryFolder folder;
  put_set(folder / "a", 30);
  put_set(folder / "b", 30);
  // The rows the other way round, in two lists, as an array would be cut; 10 stands after 9 although "10" < "9".
  const std::string text = file_bytes(folder / "a/metadata/0.npy");
  std::vector<std::string> rows;
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    rows.push_back(text.substr(begin, end - begin));
  }
  ASSERT_EQ(rows.size(), 30u);
  std::string lists[2];
  for (size_t i = 0; i < rows.size(); ++i) lists[i % 2] += rows[29 - i] + "\r\n";
  fs::remove(folder / "b/metadata/0.npy");
  put_file(folder / "b/metadata/9.npy", lists[0]);
  put_file(folder / "b/metadata/10.npy", lists[1]);
  put_file(folder / "b/metadata/combined.npy", text);    // of the original; names all pictures again
  put_file(folder / "b/metadata/notes.txt", "nothing");  // no list
  const Splits a = read_folder(folder / "a", {}), b = read_folder(folder / "b", {.strict = true});
  EXPECT_EQ(split_hash(*a.train), split_hash(*b.train));
  EXPECT_EQ(split_hash(*a.validation), split_hash(*b.validation));
  EXPECT_EQ(split_hash(*a.test), split_hash(*b.test));
  EXPECT_EQ(metadata_files(folder / "b"),
            (std::vector<fs::path>{folder / "b/metadata/9.npy", folder / "b/metadata/10.npy"}));
  // The combined list alone is taken.
  fs::remove(folder / "b/metadata/9.npy");
  fs::remove(folder / "b/metadata/10.npy");
  EXPECT_EQ(split_hash(*read_folder(folder / "b", {.strict = true}).train), split_hash(*a.train));
}

TEST(PathfinderReader, ReadsNumpyLists) {
  TemporaryFolder folder;
  put_set(folder.path(), 3);
  const uint64_t text = split_hash(*read_folder(folder.path(), {}).train);
  put_set(folder.path(), 3);
  const fs::path list = folder / "metadata/0.npy";
  const fs::path arrays = data() / "pathfinder-metadata";
  std::vector<uint64_t> hashes;
  for (const char* name : {"unicode-1.npy", "unicode-2.npy", "bytes.npy", "fortran.npy"}) {
    put_file(list, file_bytes(arrays / name));
    const Splits splits = read_folder(folder.path(), {.strict = true});
    EXPECT_EQ(splits.train->size(), 2);
    hashes.push_back(split_hash(*splits.train));
  }
  EXPECT_EQ(hashes, std::vector<uint64_t>(4, hashes[0]));
  EXPECT_NE(hashes[0], text);  // the labels of the fixture differ
  for (const char* name : {"object.npy", "float.npy"}) {
    put_file(list, file_bytes(arrays / name));
    const std::string message = message_of<InputError>([&] { read_folder(folder.path(), {}); });
    EXPECT_TRUE(holds(message, list.string() + ": an NPY ")) << message;
  }
}

// Every bad picture in place of sample_3, among good ones.
TEST(PathfinderReader, LeavesOutBadPicturesAndCountsThem) {
  const struct {
    std::string file, reason;
  } cases[] = {{"empty.png", "empty"},     {"half.png", "cut short"},  {"grey16.png", "16 bits a channel"},
               {"rgb.png", "RGB colours"}, {"palette.png", "palette"}, {"33x33.png", "33 x 33 pixels, not 32 x 32"},
               {"text.png", "no PNG"},     {"damaged.png", "damaged"}};
  TemporaryFolder folder;
  put_set(folder.path(), 20);
  const fs::path picture = folder / "imgs/0/sample_3.png";
  for (const auto& [file, reason] : cases) {
    put_file(picture, file_bytes(data() / "png" / file));
    for (const int64_t held : {int64_t{0}, int64_t{1} << 30}) {
      const Splits splits = read_folder(folder.path(), {.held = held});
      EXPECT_EQ(splits.train->size() + splits.validation->size() + splits.test->size(), 19);
      EXPECT_EQ(splits.train->size(), 15);
      ASSERT_EQ(splits.train->skipped().size(), 1u) << file;
      EXPECT_EQ(splits.train->skipped()[0].reason, reason);
      EXPECT_EQ(splits.train->skipped()[0].count, 1);
      EXPECT_EQ(splits.train->skipped()[0].first, "imgs/0/sample_3.png");
      EXPECT_TRUE(splits.test->skipped().empty());
      for (int64_t i = 0; i < splits.train->size(); ++i) {  // no other picture took a wrong label
        const DataExample example = splits.train->get(i);
        EXPECT_EQ(example.ids, std::vector<int32_t>(1024, example.ids[0]));
        EXPECT_EQ(example.ids[0] % 2, example.label);
        EXPECT_NE(example.ids[0], 3);
      }
    }
    EXPECT_EQ(strict_message(folder.path()),
              picture.string() + ": " + reason + "; right is an 8-bit grey PNG of 32 x 32");
  }
}

TEST(PathfinderReader, NamesTheListThatNamesAMissingPicture) {
  TemporaryFolder folder;
  put_set(folder.path(), 20);
  fs::remove(folder / "imgs/0/sample_7.png");
  fs::remove(folder / "imgs/0/sample_5.png");
  const auto skipped = skipped_of(folder.path());
  ASSERT_EQ(skipped.size(), 1u);
  EXPECT_EQ(skipped[0].reason, "missing picture");
  EXPECT_EQ(skipped[0].count, 2);
  EXPECT_EQ(skipped[0].first, "metadata/0.npy:6");
  EXPECT_EQ(strict_message(folder.path()),
            (folder / "metadata/0.npy").string() + ":6: names the picture imgs/0/sample_5.png, which is missing");
}

TEST(PathfinderReader, TakesNothingElseForAPicture) {
  TemporaryFolder folder;
  put_set(folder.path(), 20);
  const fs::path picture = folder / "imgs/0/sample_3.png";
  fs::remove(picture);
  fs::create_directory(picture);
  EXPECT_EQ(skipped_of(folder.path()).at(0).reason, "no regular file");
  fs::remove(picture);
  ASSERT_EQ(::mkfifo(picture.c_str(), 0600), 0);  // would wait for ever
  EXPECT_EQ(skipped_of(folder.path()).at(0).reason, "no regular file");
  fs::remove(picture);
  fs::create_symlink(picture, picture);
  EXPECT_TRUE(holds(skipped_of(folder.path()).at(0).reason, "unreadable picture (")) << "a link to itself";
  fs::remove(picture);
  put_file(picture, file_bytes(data() / "png/grey.png"));
  fs::resize_file(picture, uintmax_t{17} << 20);
  EXPECT_EQ(skipped_of(folder.path()).at(0).reason, "larger than 16 MiB");
  if (::geteuid() != 0) {
    fs::permissions(picture, fs::perms::none);
    EXPECT_EQ(skipped_of(folder.path()).at(0).reason, "unreadable picture (Permission denied)");
  }
}

TEST(PathfinderReader, CountsBadRowsAndPicturesNamedTwice) {
  TemporaryFolder folder;
  put_set(folder.path(), 10);
  const std::string text = file_bytes(folder / "metadata/0.npy");
  put_file(folder / "metadata/0.npy", "imgs/0 sample_0.png\n" + text + "imgs/0 sample_4.png 4 1\nimgs/0 x.png 1 2\n");
  const Splits splits = read_folder(folder.path(), {});
  EXPECT_EQ(splits.train->size(), 8);
  EXPECT_EQ(splits.test->size(), 1);
  const auto& skipped = splits.train->skipped();
  ASSERT_EQ(skipped.size(), 3u);
  EXPECT_EQ(skipped[0].reason, "wrong field count");
  EXPECT_EQ(skipped[0].first, "metadata/0.npy:1");
  EXPECT_EQ(skipped[1].reason, "picture named twice");
  EXPECT_EQ(skipped[1].first, "metadata/0.npy:12");
  EXPECT_EQ(skipped[2].reason, "bad label");
  EXPECT_EQ(skipped[2].first, "metadata/0.npy:13");
  EXPECT_TRUE(holds(strict_message(folder.path()), (folder / "metadata/0.npy").string() + ":1: 2 of at least four"));
  put_file(folder / "metadata/0.npy", text + "imgs/0 sample_4.png 4 1\n");
  EXPECT_TRUE(holds(strict_message(folder.path()), "0.npy:11: imgs/0/sample_4.png was named before"));
  // Told with the split that is read.
  const Splits test = read_folder(folder.path(), {.told_with = Split::kTest});
  EXPECT_TRUE(test.train->skipped().empty());
  EXPECT_EQ(test.test->skipped().size(), 1u);
}

TEST(PathfinderReader, WantsOneGoodTrainingPicture) {
  TemporaryFolder folder;
  put_set(folder.path(), 3);
  for (int k = 0; k < 3; ++k) put_file(folder / fmt::format("imgs/0/sample_{}.png", k), "");
  EXPECT_EQ(
      message_of<InputError>([&] { read_folder(folder.path(), {}); }),
      folder.path().string() + ": not one good training picture; the first bad one is imgs/0/sample_0.png, empty");
  put_file(folder / "metadata/0.npy", "");
  EXPECT_TRUE(holds(message_of<InputError>([&] { read_folder(folder.path(), {}); }), "there is none at all"));
  put_set(folder.path(), 1);
  EXPECT_TRUE(holds(message_of<InputError>([&] { read_folder(folder.path(), {}); }), "not one good training picture"));
  fs::remove(folder / "metadata/0.npy");
  EXPECT_EQ(message_of<InputError>([&] { read_folder(folder.path(), {}); }),
            (folder / "metadata").string() + ": no list of pictures; right are files 0.npy, 1.npy and so on");
}

TEST(PathfinderReader, NoticesAPictureThatGoesLater) {
  TemporaryFolder folder;
  put_set(folder.path(), 10);
  const Splits splits = read_folder(folder.path(), {.held = 0});
  EXPECT_EQ(splits.train->get(0).ids.size(), 1024u);
  fs::remove_all(folder / "imgs");
  const std::string message = message_of<InputError>([&] { splits.train->get(0); });
  EXPECT_TRUE(holds(message, "imgs/0/sample_")) << message;
  EXPECT_TRUE(holds(message, "changed while it was in use: missing picture")) << message;
}

TEST(PathfinderReader, EndsWithWhatProgressThrows) {
  for (const int threads : {1, 4}) {
    EXPECT_THROW(read_folder(release(), {.threads = threads, .progress = [](int64_t, int64_t) { throw 7; }}), int);
  }
  int64_t last = 0;
  read_folder(release(), {.threads = 3, .progress = [&](int64_t done, int64_t total) {
                            EXPECT_GT(done, last);
                            EXPECT_EQ(total, 14);
                            last = done;
                          }});
  EXPECT_EQ(last, 14);
}

TEST(PathfinderFolder, IsFoundFromAboveAndNotFromBelow) {
  EXPECT_EQ(find_folder(release(), 32, "14"), release());
  EXPECT_EQ(find_folder(data() / "pathfinder32", 32, "14"), release());
  TemporaryFolder folder;
  copy_set(folder / "a/b/pathfinder32/curv_contour_length_14");
  EXPECT_EQ(find_folder(folder.path(), 32, "14"), folder / "a/b/pathfinder32/curv_contour_length_14");
  copy_set(folder / "1/2/3/4/pathfinder32/curv_contour_length_14");
  EXPECT_TRUE(holds(message_of<InputError>([&] { find_folder(folder / "1", 32, "14"); }), "no Pathfinder data"));
  for (const char* below : {"imgs", "metadata", "imgs/0"}) {
    const std::string message = message_of<InputError>([&] { find_folder(release() / below, 32, "14"); });
    EXPECT_EQ(message, (release() / below).string() + ": only a part of the set " + release().string() +
                           "; give the folder with imgs and metadata of the LRA release "
                           "(pathfinder32/curv_contour_length_14), or one up to four levels above it");
  }
  EXPECT_TRUE(holds(message_of<InputError>([&] { find_folder(folder / "none", 32, "14"); }), "no such file or folder"));
  const fs::path file = release() / "metadata/0.npy";
  EXPECT_TRUE(holds(message_of<InputError>([&] { find_folder(file, 32, "14"); }), "not Pathfinder data"));
  put_file(folder / "half/imgs/0/sample_0.png", "");
  EXPECT_TRUE(holds(message_of<InputError>([&] { find_folder(folder / "half", 32, "14"); }),
                    "the folder metadata is missing beside imgs"));
  EXPECT_THROW(find_folder(release(), 32, "15"), UsageError);
}

TEST(PathfinderFolder, LevelAndSizeChooseAmongSets) {
  TemporaryFolder folder;
  const fs::path sets[] = {folder / "pathfinder32/curv_baseline", folder / "pathfinder32/curv_contour_length_9",
                           folder / "pathfinder32/curv_contour_length_14",
                           folder / "pathfinder64/curv_contour_length_14"};
  for (const fs::path& set : sets) copy_set(set);
  for (const fs::path& root : {folder.path(), folder / "pathfinder32"}) {
    EXPECT_EQ(find_folder(root, 32, "baseline"), sets[0]);
    EXPECT_EQ(find_folder(root, 32, "9"), sets[1]);
    EXPECT_EQ(find_folder(root, 32, "14"), sets[2]);
  }
  EXPECT_EQ(find_folder(folder.path(), 64, "14"), sets[3]);
  // Only others there: named directly or from above.
  const std::string level = message_of<InputError>([&] { find_folder(sets[1], 32, "14"); });
  EXPECT_TRUE(level.starts_with(sets[1].string() + ": a set of level 9 by its name, but --level is 14")) << level;
  const std::string size = message_of<InputError>([&] { find_folder(folder / "pathfinder64", 32, "14"); });
  EXPECT_TRUE(size.starts_with(sets[3].string() + ": a set of size 64 by the name of its folder, but --size is 32"))
      << size;
  EXPECT_TRUE(holds(size, "pathfinder32/curv_contour_length_14"));
  EXPECT_THROW(find_folder(folder.path(), 64, "9"), InputError);
}

TEST(PathfinderFolder, AnyNameIsTakenButNotTwo) {
  TemporaryFolder folder;
  copy_set(folder / "mine");
  EXPECT_EQ(find_folder(folder / "mine", 128, "9"), folder / "mine");
  EXPECT_EQ(find_folder(folder.path(), 32, "14"), folder / "mine");
  copy_set(folder / "yours");
  const std::string message = message_of<InputError>([&] { find_folder(folder.path(), 32, "14"); });
  EXPECT_TRUE(holds(message, (folder / "mine").string())) << message;
  EXPECT_TRUE(holds(message, (folder / "yours").string())) << message;
  EXPECT_TRUE(holds(message, "more than one Pathfinder set")) << message;
}

}  // namespace
}  // namespace lra::pathfinder
