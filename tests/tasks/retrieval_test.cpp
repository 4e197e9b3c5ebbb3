// Retrieval as a task: where its data is found, and archives that are unpacked once into the cache folder.
#include "tasks/retrieval.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "datasets/statistics.h"
#include "lib/util/check.h"
#include "lib/util/files.h"
#include "lib/util/rng.h"
#include "tasks/cache.h"
#include "tests/datasets/temporary_folder.h"

namespace lra {
namespace {

namespace fs = std::filesystem;

fs::path fixture() { return fs::path(LRA_SOURCE_DIR) / "tests/datasets/data/retrieval"; }

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

size_t entries(const fs::path& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

class RetrievalTaskTest : public testing::Test {
 protected:
  RetrievalTaskTest() {
    if (const char* before = std::getenv("XDG_CACHE_HOME")) before_ = before;
    ::setenv("XDG_CACHE_HOME", (root_ / "cache").c_str(), 1);
    fs::create_directory(root_ / "data");
    pack(fixture());
  }
  ~RetrievalTaskTest() override {
    before_.empty() ? ::unsetenv("XDG_CACHE_HOME") : ::setenv("XDG_CACHE_HOME", before_.c_str(), 1);
  }

  void pack(const fs::path& folder) const {
    const std::string command = "tar -C '" + folder.string() + "' --sort=name -czf '" + archive().string() + "' .";
    EXPECT_EQ(std::system(command.c_str()), 0);
  }
  fs::path archive() const { return root_ / "data/set.tar.gz"; }
  fs::path cache() const { return root_ / "cache/lra"; }
  TaskData read(const DataPlace& place) {
    DataRequest request;
    request.max_length = 4000;
    return task_.read(place, request, log_, ProgressMode::kNone);
  }

  RetrievalTask task_;
  Log log_;
  TemporaryFolder root_;
  std::string before_;
};

TEST_F(RetrievalTaskTest, WithoutAPathItSaysWhatIsNeeded) {
  const auto message = message_of<UsageError>([&] { task_.locate({}); });
  for (const char* part : {"--data", "no generator", "new_aan_pairs.train.tsv", "texts, not ids", "https://"}) {
    EXPECT_TRUE(holds(message, part)) << message;
  }
}

TEST_F(RetrievalTaskTest, ReadsAFolderInItsPlace) {
  const DataPlace place = task_.locate({.path = fixture().parent_path() / "retrieval/../retrieval"});
  EXPECT_EQ(place.path, fixture());
  EXPECT_FALSE(place.generated);
  EXPECT_EQ(place.source, fixture().string());
  DataRequest request;
  request.want_validation = false;
  request.limit_train = 2;
  request.limit_eval = 1;
  request.threads = 2;
  const TaskData data = task_.read(place, request, log_, ProgressMode::kNone);
  EXPECT_EQ(data.train->size(), 2);
  EXPECT_EQ(data.validation, nullptr);
  EXPECT_EQ(data.test->size(), 1);
  EXPECT_FALSE(fs::exists(cache()));
}

TEST_F(RetrievalTaskTest, UnpacksAnArchiveOnceIntoTheCacheFolder) {
  const DataPlace place = task_.locate({.path = root_ / "data"});
  const fs::path folder = cache() / ("retrieval-v1-" + hex64(hash_bytes(file_bytes(archive()))));
  EXPECT_EQ(place.path, folder);
  EXPECT_TRUE(place.generated);
  EXPECT_EQ(place.source, archive().string());
  EXPECT_FALSE(fs::exists(cache()));  // nothing is written while data is only looked for
  EXPECT_EQ(split_hash(*read(place).train), 0x0f6ed421047bb9f8u);
  EXPECT_EQ(entries(cache()), 1u);
  // From now on the archive's contents are not needed.
  const auto written = fs::last_write_time(folder / "new_aan_pairs.train.tsv");
  EXPECT_EQ(split_hash(*read(task_.locate({.path = archive()})).test), 0xb4e05d7670ad7917u);
  EXPECT_EQ(fs::last_write_time(folder / "new_aan_pairs.train.tsv"), written);
}

TEST_F(RetrievalTaskTest, ATruncatedArchiveLeavesNothingInTheCacheFolder) {
  // Enough behind the first member that locate() does not meet the damage.
  const fs::path folder = root_ / "big/retrieval";
  fs::create_directories(folder.parent_path());
  fs::copy(fixture(), folder);
  Random random(0, RandomStream::kData, 0);
  std::string noise(size_t{1} << 20, '\0');
  for (char& c : noise) c = static_cast<char>(random.below(256));
  put_file(folder / "new_aan_pairs.test.tsv", noise);
  pack(folder);
  const std::string bytes = file_bytes(archive());
  put_file(archive(), bytes.substr(0, bytes.size() - 5));
  const DataPlace place = task_.locate({.path = archive()});
  const auto message = message_of<InputError>([&] { read(place); });
  EXPECT_TRUE(holds(message, archive().string() + ": cannot be read as a tar archive")) << message;
  EXPECT_EQ(entries(cache()), 0u);
  put_file(archive(), bytes);
  EXPECT_EQ(read(task_.locate({.path = archive()})).train->size(), 5);
}

TEST_F(RetrievalTaskTest, ManyAtOnceUnpackOnce) {
  const DataPlace place = task_.locate({.path = archive()});
  std::vector<uint64_t> hashes(6);
  std::vector<std::thread> threads;
  threads.reserve(hashes.size());
  for (uint64_t& hash : hashes) threads.emplace_back([&] { hash = split_hash(*read(place).train); });
  for (std::thread& thread : threads) thread.join();
  for (const uint64_t hash : hashes) EXPECT_EQ(hash, 0x0f6ed421047bb9f8u);
  EXPECT_EQ(entries(cache()), 1u);
}

TEST_F(RetrievalTaskTest, OfManyAtOnceOneMakesAndOthersWait) {
  const fs::path thing = cache() / "thing";
  std::atomic<int> made = 0, inside = 0, failed = 0;
  std::vector<std::thread> threads;
  threads.reserve(6);
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&] {
      const auto make = [&] {
        EXPECT_EQ(++inside, 1);
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        const bool fails = ++made < 3;  // the first two do: the next one in line takes over
        if (!fails) write_file_atomic(thing, "made");
        --inside;
        if (fails) throw InputError("no luck");
      };
      failed += message_of<InputError>([&] { make_once(thing, log_, make); }) == "no luck" ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, 3);
  EXPECT_EQ(failed, 2);
  EXPECT_EQ(entries(cache()), 1u);  // the lock's file is gone too
}

TEST_F(RetrievalTaskTest, ValidationIsTheGivenSplit) {
  EXPECT_EQ(task_.facts().validations, std::vector<std::string>{"given"});
  EXPECT_EQ(task_.validation_text("given"), "given split");
  EXPECT_TRUE(task_.facts().pair);
}

}  // namespace
}  // namespace lra
