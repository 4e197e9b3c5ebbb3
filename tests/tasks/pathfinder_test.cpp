// Pathfinder as a task: data generated once into the cache folder, or a set that --size and --level choose.
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

#include "datasets/pathfinder/generator.h"
#include "datasets/pathfinder/writer.h"
#include "lib/util/check.h"
#include "tasks/all_tasks.h"
#include "tests/datasets/temporary_folder.h"

namespace lra {
namespace {

namespace fs = std::filesystem;

// A cache folder of the test's own.
class PathfinderTask : public testing::Test {
 protected:
  void SetUp() override {
    if (const char* cache = std::getenv("XDG_CACHE_HOME")) before_ = cache;
    ::setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1);
  }
  void TearDown() override {
    if (before_) {
      ::setenv("XDG_CACHE_HOME", before_->c_str(), 1);
    } else {
      ::unsetenv("XDG_CACHE_HOME");
    }
  }

  TaskData read(const DataChoice& choice, const DataRequest& request) {
    Log log;
    return task_->read(task_->locate(choice), request, log, ProgressMode::kNone);
  }

  TemporaryFolder folder_;
  std::unique_ptr<Task> task_ = make_task("test", "pathfinder");

 private:
  std::optional<std::string> before_;
};

constexpr int64_t kCount = 20;

uint64_t hash_of(const TaskData& data) {
  uint64_t hash = 0;
  for (const DataSplit* split : {data.train.get(), data.validation.get(), data.test.get()}) {
    hash = hash * 31 + split_hash(*split);
  }
  return hash;
}

TEST_F(PathfinderTask, SaysWhereItsDataIs) {
  const DataPlace release = task_->locate({});
  EXPECT_TRUE(release.generated);
  EXPECT_EQ(release.path, folder_ / "lra/pathfinder-v1-size-32-level-14-seed-0-200000.bin");
  EXPECT_EQ(release.source, "generated: size 32, level 14, seed 0, 200000");
  const DataPlace other = task_->locate({.size = 128, .level = "baseline", .generated_count = 7});
  EXPECT_EQ(other.source, "generated: size 128, level baseline, seed 0, 7");
  EXPECT_NE(other.path.string().find("size-128-level-baseline-seed-0-7"), std::string::npos);
  EXPECT_THROW(task_->locate({.size = 33}), UsageError);
  EXPECT_THROW(task_->locate({.level = "5"}), UsageError);
  EXPECT_EQ(task_->validation_text("given"), "a tenth of the pictures, by hash of their path");
  EXPECT_FALSE(fs::exists(folder_ / "lra"));  // nothing was made

  const fs::path root = fs::path(LRA_SOURCE_DIR) / "tests/datasets/data/pathfinder32";
  const DataPlace given = task_->locate({.path = root});
  EXPECT_FALSE(given.generated);
  EXPECT_EQ(given.path, root / "curv_contour_length_14");
  EXPECT_EQ(given.source, given.path.string());
  EXPECT_THROW(task_->locate({.path = root, .level = "9"}), InputError);
  EXPECT_THROW(task_->locate({.path = root, .size = 64}), InputError);
}

TEST_F(PathfinderTask, GeneratesOnceForAnyThreadCount) {
  const DataChoice choice{.generated_count = kCount};
  const DataRequest request{.max_length = 1024, .pixel_tokens = "raw", .threads = 1};
  const TaskData first = read(choice, request);
  EXPECT_EQ(first.train->size(), 16);
  EXPECT_EQ(first.validation->size(), 2);
  EXPECT_EQ(first.test->size(), 2);
  const fs::path pack = task_->locate(choice).path;
  const std::string bytes = file_bytes(pack);
  // The file is used as it is: a mark in its place stays and is refused.
  put_file(pack, "a mark");
  const auto message = message_of<InputError>([&] { read(choice, request); });
  EXPECT_EQ(message, pack.string() + ": not a packed Pathfinder file; delete it to have it made again");
  fs::remove(pack);
  DataRequest many = request;
  many.threads = 3;
  EXPECT_EQ(hash_of(read(choice, many)), hash_of(first));
  EXPECT_TRUE(file_bytes(pack) == bytes);
}

// Packed or as a folder: the same pictures in the same splits. Beyond a thousand there are two folders.
TEST_F(PathfinderTask, GivesThePicturesOfAGeneratedFolder) {
  constexpr int64_t kTwoFolders = 1010;
  const pathfinder::GeneratorOptions options{.count = kTwoFolders};
  pathfinder::FolderWriter writer(folder_ / "written", options, pathfinder::MetadataFormat::kNpy, false);
  pathfinder::generate(options, [&](const auto& picture) { writer.add(picture); });
  writer.commit();
  const DataRequest request{.max_length = 1024, .strict = true, .pixel_tokens = "raw"};
  const TaskData packed = read({.generated_count = kTwoFolders}, request);
  const TaskData files = read({.path = folder_ / "written"}, request);
  EXPECT_EQ(packed.train->size(), 808);
  EXPECT_EQ(packed.validation->size(), 101);
  EXPECT_EQ(packed.test->size(), 101);
  EXPECT_EQ(hash_of(packed), hash_of(files));
}

TEST_F(PathfinderTask, FollowsTheRequest) {
  const DataChoice choice{.size = 64, .level = "9", .generated_count = kCount};
  const TaskData all = read(choice, {.max_length = 4096, .pixel_tokens = "raw"});
  EXPECT_EQ(all.train->get(0).ids.size(), 4096u);
  EXPECT_EQ(all.train->truncated(), 0);
  const TaskData some = read(
      choice,
      {.want_train = false, .want_validation = false, .max_length = 1000, .limit_eval = 1, .pixel_tokens = "shifted"});
  EXPECT_EQ(some.train, nullptr);
  EXPECT_EQ(some.validation, nullptr);
  ASSERT_EQ(some.test->size(), 1);
  EXPECT_EQ(some.test->truncated(), 1);
  std::vector<int32_t> ids = all.test->get(0).ids;
  ids.resize(1000);
  for (int32_t& id : ids) ++id;
  EXPECT_EQ(some.test->get(0).ids, ids);
}

// Bad pictures are told once, with whatever split is read.
TEST_F(PathfinderTask, TellsWhatItSkips) {
  const fs::path set = folder_ / "set";
  fs::copy(fs::path(LRA_SOURCE_DIR) / "tests/datasets/data/pathfinder32/curv_contour_length_14", set,
           fs::copy_options::recursive);
  put_file(set / "imgs/0/sample_3.png", "");
  const auto told = [](const std::unique_ptr<DataSplit>& split) { return split ? split->skipped().size() : 0; };
  const TaskData all = read({.path = set}, {.pixel_tokens = "raw"});
  EXPECT_EQ(told(all.train), 1u);
  EXPECT_EQ(told(all.validation) + told(all.test), 0u);
  const TaskData evaluation = read({.path = set}, {.want_train = false, .pixel_tokens = "raw"});
  EXPECT_EQ(told(evaluation.validation), 1u);
  const TaskData test = read({.path = set}, {.want_train = false, .want_validation = false, .pixel_tokens = "raw"});
  EXPECT_EQ(told(test.test), 1u);
  EXPECT_THROW(read({.path = set}, {.strict = true, .pixel_tokens = "raw"}), InputError);
}

TEST_F(PathfinderTask, LeavesNothingWhereItCantWrite) {
  put_file(folder_ / "lra", "in the way");
  EXPECT_THROW(read({.generated_count = kCount}, {.pixel_tokens = "raw"}), InputError);
  EXPECT_EQ(file_bytes(folder_ / "lra"), "in the way");
}

}  // namespace
}  // namespace lra
