// Generated Pathfinder sets as files: the release's layout, read back by the reader, and nothing half-written.
#include <gtest/gtest.h>

#include "datasets/pathfinder/folder.h"
#include "datasets/pathfinder/metadata.h"
#include "datasets/pathfinder/writer.h"
#include "datasets/png.h"
#include "lib/util/check.h"
#include "tests/datasets/temporary_folder.h"

namespace lra::pathfinder {
namespace {

namespace fs = std::filesystem;

GeneratedPicture blank(int64_t index, int32_t label, bool truth = false) {
  GeneratedPicture picture{.index = index, .label = label, .pixels = std::vector<uint8_t>(32 * 32), .truth = {}};
  picture.pixels[static_cast<size_t>(index % 1024)] = 200;
  if (truth) picture.truth.assign(32 * 32, kSecondTarget);
  return picture;
}

size_t entries(const fs::path& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(PathfinderWriter, WritesTheLayoutOfTheRelease) {
  for (const MetadataFormat format : {MetadataFormat::kText, MetadataFormat::kNpy}) {
    const TemporaryFolder root;
    FolderWriter writer(root.path(), {.count = 1003}, format, false);  // the last six of them
    for (int64_t i = 997; i < 1003; ++i) writer.add(blank(i, static_cast<int32_t>(i % 2)));
    EXPECT_FALSE(fs::exists(writer.set_folder()));
    EXPECT_THROW(find_folder(root.path(), 32, "14"), InputError);
    writer.commit();

    const fs::path set = root / "pathfinder32/curv_contour_length_14";
    EXPECT_EQ(writer.set_folder(), set);
    EXPECT_EQ(find_folder(root.path(), 32, "14"), set);
    EXPECT_EQ(entries(set), 2u);  // imgs and metadata, nothing else
    EXPECT_EQ(entries(set.parent_path()), 1u);
    EXPECT_EQ(entries(set / "imgs/0"), 3u);
    EXPECT_EQ(entries(set / "imgs/1"), 3u);
    int64_t index = 997;
    for (const fs::path& list : metadata_files(set)) {
      const Metadata metadata = parse_metadata(file_bytes(list));
      EXPECT_TRUE(metadata.bad.empty());
      for (const MetadataRow& row : metadata.rows) {
        EXPECT_EQ(row.index, index);
        EXPECT_EQ(row.label, index % 2);
        EXPECT_EQ(read_grey_png(file_bytes(set / row.path())).pixels, blank(index, 0).pixels);
        ++index;
      }
    }
    EXPECT_EQ(index, 1003);
    if (format == MetadataFormat::kText) {
      EXPECT_EQ(file_bytes(set / "metadata/1.npy").substr(0, 51),
                "imgs/1 sample_1000.png 1000 0 1.0 14 4 2 0.5 1 1\nim");
    } else {
      const std::string bytes = file_bytes(set / "metadata/1.npy");
      EXPECT_EQ(bytes.size(), 128u + 3 * 11 * 32 * 4);
      EXPECT_NE(bytes.find("{'descr': '<U32', 'fortran_order': False, 'shape': (3, 11), }"), std::string::npos);
    }
  }
}

TEST(PathfinderWriter, WritesTheTruthBesideThePictures) {
  const TemporaryFolder root;
  FolderWriter writer(root.path(), {.count = 2, .truth = true}, MetadataFormat::kText, false);
  for (int64_t i = 0; i < 2; ++i) writer.add(blank(i, 0, true));
  writer.commit();
  EXPECT_EQ(read_grey_png(file_bytes(writer.set_folder() / "truth/0/sample_1.png")).pixels,
            std::vector<uint8_t>(32 * 32, 192));
}

TEST(PathfinderWriter, LeavesNothingWithoutACommit) {
  const TemporaryFolder root;
  {
    FolderWriter writer(root.path(), {.count = 5}, MetadataFormat::kText, false);
    writer.add(blank(0, 1));
    EXPECT_NE(message_of<UsageError>([&] { FolderWriter(root.path(), {}, MetadataFormat::kText, true); }), "");
  }
  EXPECT_EQ(entries(root / "pathfinder32"), 0u);
}

TEST(PathfinderWriter, ClearsWhatKilledRunsLeft) {
  const TemporaryFolder root;
  const std::string set = "pathfinder32/curv_contour_length_14";
  put_file(root / (set + ".unfinished/imgs/7/sample_7000.png"), "half");
  put_file(root / (set + ".unfinished/metadata.unfinished/7.npy"), "half");
  put_file(root / (set + ".replaced/imgs/0/sample_0.png"), "old");
  EXPECT_THROW(find_folder(root.path(), 32, "14"), InputError);
  FolderWriter writer(root.path(), {.count = 1}, MetadataFormat::kText, false);
  writer.add(blank(0, 1));
  writer.commit();
  EXPECT_EQ(entries(root / "pathfinder32"), 1u);
  EXPECT_EQ(entries(root / (set + "/imgs")), 1u);
  EXPECT_EQ(entries(root / (set + "/metadata")), 1u);
}

TEST(PathfinderWriter, ReplacesASetOnlyWhenAsked) {
  const TemporaryFolder root;
  const auto write = [&](int64_t count, bool overwrite) {
    FolderWriter writer(root.path(), {.count = count}, MetadataFormat::kText, overwrite);
    for (int64_t i = 0; i < count; ++i) writer.add(blank(i, 1));
    writer.commit();
  };
  write(3, false);
  const fs::path set = root / "pathfinder32/curv_contour_length_14";
  EXPECT_EQ(message_of<UsageError>([&] { write(1, false); }),
            set.string() + ": exists already; --force overwrites it, or choose another folder");
  EXPECT_EQ(entries(set / "imgs/0"), 3u);
  write(1, true);
  EXPECT_EQ(entries(set / "imgs/0"), 1u);
  EXPECT_EQ(entries(set), 2u);
  EXPECT_EQ(entries(set.parent_path()), 1u);
}

TEST(PathfinderWriter, NamesWhatCannotBeWritten) {
  const TemporaryFolder root;
  put_file(root / "pathfinder32", "a file");
  EXPECT_NE(message_of<InputError>([&] {
              FolderWriter(root.path(), {.count = 1}, MetadataFormat::kText, false);
            }).find("pathfinder32"),
            std::string::npos);
  EXPECT_EQ(message_of<UsageError>([] { metadata_format("csv"); }), "metadata is written as text or npy, not as 'csv'");
  EXPECT_EQ(metadata_format("npy"), MetadataFormat::kNpy);
}

}  // namespace
}  // namespace lra::pathfinder
