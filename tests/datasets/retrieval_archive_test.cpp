// Finding Retrieval sets in folders and archives, and unpacking the latter.
#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "datasets/random_file.h"
#include "datasets/retrieval/folder.h"
#include "datasets/retrieval/reader.h"
#include "datasets/retrieval/unpack.h"
#include "datasets/statistics.h"
#include "lib/util/check.h"
#include "tests/datasets/temporary_folder.h"

namespace lra::retrieval {
namespace {

namespace fs = std::filesystem;

constexpr Split kSplits[] = {Split::kTrain, Split::kValidation, Split::kTest};

fs::path fixture() { return fs::path(LRA_SOURCE_DIR) / "tests/datasets/data/retrieval"; }

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

void copy_set(const fs::path& folder) {
  fs::create_directories(folder);
  for (const Split split : kSplits) fs::copy_file(fixture() / file_name(split), folder / file_name(split));
}

struct Member {
  std::string name, bytes;
};

std::vector<Member> members(const std::string& prefix) {
  std::vector<Member> set;
  for (const Split split : kSplits)
    set.push_back({prefix + file_name(split), file_bytes(fixture() / file_name(split))});
  return set;
}

// A .tar.gz; the folder of the path must be there.
void put_archive(const fs::path& path, const std::vector<Member>& members) {
  struct archive* out = archive_write_new();
  archive_write_add_filter_gzip(out);
  archive_write_set_format_ustar(out);
  ASSERT_EQ(archive_write_open_filename(out, path.c_str()), ARCHIVE_OK);
  for (const Member& member : members) {
    struct archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, member.name.c_str());
    archive_entry_set_size(entry, static_cast<la_int64_t>(member.bytes.size()));
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    EXPECT_EQ(archive_write_header(out, entry), ARCHIVE_OK);
    EXPECT_EQ(archive_write_data(out, member.bytes.data(), member.bytes.size()),
              static_cast<la_ssize_t>(member.bytes.size()));
    archive_entry_free(entry);
  }
  EXPECT_EQ(archive_write_free(out), ARCHIVE_OK);
}

size_t entries(const fs::path& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

std::string unpack_error(const fs::path& archive, const fs::path& folder) {
  return message_of<InputError>([&] { unpack(archive, folder); });
}

TEST(RetrievalFolder, IsFoundUpToFourLevelsBelow) {
  TemporaryFolder root;
  const fs::path folder = root / "lra_release/lra_release/x/tsv_data";
  copy_set(folder);
  EXPECT_EQ(find_set(folder), folder);
  EXPECT_EQ(find_set(folder.parent_path()), folder);
  EXPECT_EQ(find_set(root.path()), folder);
  const auto below = message_of<InputError>([&] { find_set(folder / "new_aan_pairs.train.tsv"); });
  EXPECT_TRUE(holds(below, "not Retrieval data; give the folder with new_aan_pairs.train.tsv")) << below;
  fs::remove(folder / "new_aan_pairs.eval.tsv");
  const auto part = message_of<InputError>([&] { find_set(root.path()); });
  EXPECT_TRUE(holds(part, "tsv_data: new_aan_pairs.eval.tsv is missing beside")) << part;
  const auto missing = message_of<InputError>([&] { find_set(root / "none"); });
  EXPECT_TRUE(holds(missing, "no such file or folder")) << missing;
}

TEST(RetrievalFolder, TwoCandidatesAreRefusedByName) {
  TemporaryFolder root;
  copy_set(root / "first");
  put_archive(root / "set.tar.gz", members("x/"));
  const auto message = message_of<InputError>([&] { find_set(root.path()); });
  EXPECT_TRUE(holds(message, (root / "first").string())) << message;
  EXPECT_TRUE(holds(message, (root / "set.tar.gz").string())) << message;
  EXPECT_EQ(find_set(root / "first"), root / "first");
  EXPECT_EQ(find_set(root / "set.tar.gz"), root / "set.tar.gz");
}

TEST(RetrievalFolder, AnArchiveCountsByItsFirstMembers) {
  TemporaryFolder root;
  fs::create_directory(root / "data");
  const fs::path archive = root / "data/anything.tgz";
  std::vector<Member> late = members("./a/b/");
  late.insert(late.begin(), 7, {"README", "text"});
  put_archive(archive, late);
  EXPECT_EQ(find_set(root.path()), archive);
  // Others in the same root do no harm: of another task, damaged, no archive at all.
  put_archive(root / "cifar.tar.gz", {{"cifar-10-batches-bin/test_batch.bin", "x"}});
  put_file(root / "half.tar.gz", file_bytes(archive).substr(0, 30));
  put_file(root / "empty.tar.gz", "");
  put_file(root / "text.tar.gz", "no archive");
  EXPECT_EQ(find_set(root.path()), archive);
  const auto other = message_of<InputError>([&] { find_set(root / "cifar.tar.gz"); });
  EXPECT_TRUE(holds(other, "cifar.tar.gz: none of its first members is a new_aan_pairs.*.tsv; give")) << other;
  for (const std::string name : {"half.tar.gz", "text.tar.gz"}) {
    const auto damaged = message_of<InputError>([&] { find_set(root / name); });
    EXPECT_TRUE(holds(damaged, name + ": cannot be read as a tar archive")) << damaged;
  }
  EXPECT_NE(message_of<InputError>([&] { find_set(root / "empty.tar.gz"); }), "");
  late.insert(late.begin(), {"one more", "text"});
  put_archive(archive, late);
  EXPECT_NE(message_of<InputError>([&] { find_set(root.path()); }), "");
}

TEST(RetrievalUnpack, GivesTheFilesBack) {
  TemporaryFolder root;
  const fs::path archive = root / "set.tar.gz", folder = root / "unpacked";
  std::vector<Member> set = members("release/tsv_data/");
  set.push_back({"release/tsv_data/._new_aan_pairs.train.tsv", "of a Macintosh"});
  put_archive(archive, set);
  int64_t last_done = 0, last_total = 0;
  unpack(archive, folder, [&](const std::string& name, int64_t done, int64_t total) {
    EXPECT_TRUE(holds(name, "new_aan_pairs."));
    last_done = done, last_total = total;
  });
  EXPECT_GT(last_total, 0);
  EXPECT_EQ(last_done, last_total);
  EXPECT_EQ(entries(folder), 3u);
  EXPECT_EQ(entries(root.path()), 2u);
  for (const Split split : kSplits) {
    EXPECT_EQ(file_bytes(folder / file_name(split)), file_bytes(fixture() / file_name(split)));
  }
  EXPECT_EQ(split_hash(*read_split(folder, Split::kTrain)), 0x0f6ed421047bb9f8u);
}

TEST(RetrievalUnpack, TakesAwayWhatAKilledOneLeft) {
  TemporaryFolder root;
  put_archive(root / "set.tar.gz", members(""));
  put_file(root / "unpacked.partial/new_aan_pairs.train.tsv.partial", "half");
  unpack(root / "set.tar.gz", root / "unpacked");
  EXPECT_EQ(entries(root.path()), 2u);
  EXPECT_EQ(entries(root / "unpacked"), 3u);
}

// Wherever the archive ends too early there is an error and nothing else.
TEST(RetrievalUnpack, ATruncatedArchiveLeavesNothing) {
  TemporaryFolder root;
  put_archive(root / "set.tar.gz", members("x/"));
  const std::string bytes = file_bytes(root / "set.tar.gz");
  ASSERT_GT(bytes.size(), 200u);
  for (size_t size = 0; size < bytes.size(); size += size + 16 < bytes.size() ? 1 + size / 16 : 1) {
    put_file(root / "half.tar.gz", bytes.substr(0, size));
    const std::string message = unpack_error(root / "half.tar.gz", root / "unpacked");
    EXPECT_TRUE(holds(message, "half.tar.gz: ")) << size << " of " << bytes.size() << ": " << message;
    EXPECT_EQ(entries(root.path()), 2u);
  }
}

TEST(RetrievalUnpack, SaysWhatIsMissingOrThereTwice) {
  TemporaryFolder root;
  const fs::path archive = root / "set.tar.gz", folder = root / "unpacked";
  std::vector<Member> set = members("a/");
  set.push_back({"b/new_aan_pairs.train.tsv", ""});
  put_archive(archive, set);
  const std::string twice = unpack_error(archive, folder);
  EXPECT_TRUE(holds(twice, "a/new_aan_pairs.train.tsv and b/new_aan_pairs.train.tsv")) << twice;
  set.erase(set.begin() + 1, set.end());
  put_archive(archive, set);
  const std::string missing = unpack_error(archive, folder);
  EXPECT_TRUE(holds(missing, "set.tar.gz: new_aan_pairs.eval.tsv is missing in it")) << missing;
  EXPECT_EQ(entries(root.path()), 1u);
}

TEST(RetrievalUnpack, AFileInTheArchiveMayBeEmpty) {
  TemporaryFolder root;
  std::vector<Member> set = members("");
  set[2].bytes.clear();
  put_archive(root / "set.tar.gz", set);
  unpack(root / "set.tar.gz", root / "unpacked");
  EXPECT_EQ(read_split(root / "unpacked", Split::kTest)->size(), 0);
  EXPECT_EQ(read_split(root / "unpacked", Split::kTrain)->size(), 5);
}

// A limit on the size of files fails a write in the middle, as a full disk does.
TEST(RetrievalUnpack, AFullDiskLeavesNothing) {
  TemporaryFolder root;
  std::vector<Member> set = members("");
  set[1].bytes.assign(size_t{2} << 20, '\n');
  put_archive(root / "set.tar.gz", set);
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit small = before;
  small.rlim_cur = 1 << 20;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string message = unpack_error(root / "set.tar.gz", root / "unpacked");
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_TRUE(holds(message, "new_aan_pairs.eval.tsv: cannot be written: ")) << message;
  EXPECT_EQ(entries(root.path()), 1u);
}

// The value comes from Python: xxhash.xxh64(b"new_aan_pairs", seed=0).
TEST(HashFile, IsTheXxh64OfItsBytes) {
  TemporaryFolder root;
  put_file(root / "file", "new_aan_pairs");
  EXPECT_EQ(hash_file(root / "file"), 0x86d3f8f482192891u);
  put_file(root / "file", "");
  EXPECT_EQ(hash_file(root / "file"), 0xef46db3751d8e999u);
}

}  // namespace
}  // namespace lra::retrieval
