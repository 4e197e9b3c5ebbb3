// Files that are whole or not there, in every way a write can fail.
#include "lib/util/files.h"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <iterator>

#include "lib/util/check.h"

namespace lra {
namespace {

namespace fs = std::filesystem;

class FilesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "lra-files-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  int64_t entries() const { return std::distance(fs::directory_iterator(folder_), fs::directory_iterator()); }

  fs::path folder_;
};

template <class E>
std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text << "\nlacks: " << part;
  EXPECT_EQ(text.find('\n'), std::string::npos) << "one line: " << text;
}

TEST_F(FilesTest, WritesEveryByteAndReplacesWhatWasThere) {
  const fs::path path = folder_ / "file";
  std::string bytes;
  for (int i = 0; i < 300'000; ++i) bytes += static_cast<char>(i * 7);
  for (const std::string& content : {bytes, std::string(), std::string("short")}) {
    write_file_atomic(path, content);
    EXPECT_EQ(read_file(path), content);
    EXPECT_EQ(entries(), 1);  // no temporary stays behind
  }
}

TEST_F(FilesTest, ReadsFilesThatStateNoSize) {
  EXPECT_NE(read_file("/proc/self/status").find("Name:"), std::string::npos);
}

TEST_F(FilesTest, MissingFilesAndFoldersAreNamed) {
  expect_contains(error_of<InputError>([&] { read_file(folder_ / "gone"); }), (folder_ / "gone").string());
  expect_contains(error_of<InputError>([&] { read_file(folder_ / "gone"); }), "No such file or directory");
  expect_contains(error_of<InputError>([&] { read_file(folder_); }), "Is a directory");
  expect_contains(error_of<InputError>([&] { write_file_atomic(folder_ / "no" / "x", "x"); }), "No such file");
  write_file_atomic(folder_ / "file", "x");
  expect_contains(error_of<InputError>([&] { make_directories(folder_ / "file" / "sub"); }), "Not a directory");
  expect_contains(error_of<InputError>([&] { make_directories(folder_ / "file"); }), (folder_ / "file").string());
}

TEST_F(FilesTest, FailedRenameLeavesNothingBehind) {
  fs::create_directory(folder_ / "target");
  write_file_atomic(folder_ / "target" / "inside", "x");
  expect_contains(error_of<InputError>([&] { write_file_atomic(folder_ / "target", "x"); }), "cannot write");
  EXPECT_EQ(entries(), 1);
}

TEST_F(FilesTest, MakesNestedFolders) {
  make_directories(folder_ / "a" / "b");
  make_directories(folder_ / "a" / "b");
  EXPECT_TRUE(fs::is_directory(folder_ / "a" / "b"));
}

// Root may write anywhere, so the child becomes nobody first.
TEST_F(FilesTest, FolderWithoutPermissionIsAnError) {
  fs::permissions(folder_, fs::perms::owner_all | fs::perms::others_read | fs::perms::others_exec);
  if (::geteuid() != 0) fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (::geteuid() == 0 && ::seteuid(65534) != 0) ::_exit(2);
    try {
      write_file_atomic(folder_ / "file", "x");
    } catch (const InputError& error) {
      ::_exit(std::string(error.what()).find("Permission denied") == std::string::npos ? 3 : 0);
    }
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  fs::permissions(folder_, fs::perms::owner_all);
}

TEST_F(FilesTest, FullDiskIsAnErrorAndKeepsTheOldFile) {
  const fs::path disk = folder_ / "disk";
  fs::create_directory(disk);
  if (::mount("none", disk.c_str(), "tmpfs", 0, "size=64k") != 0) GTEST_SKIP() << "mounting a small disk needs root";
  struct Unmount {
    const fs::path& disk;
    ~Unmount() { ::umount(disk.c_str()); }
  } unmount{disk};

  write_file_atomic(disk / "file", "old");
  const std::string big(1 << 20, 'x');
  const std::string error = error_of<InputError>([&] { write_file_atomic(disk / "file", big); });
  expect_contains(error, "No space left on device");
  expect_contains(error, (disk / "file").string());
  EXPECT_EQ(read_file(disk / "file"), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(disk), fs::directory_iterator()), 1);

  LineWriter lines(disk / "lines", false);
  lines.write("whole");
  expect_contains(error_of<InputError>([&] { lines.write(big); }), "No space left on device");
  EXPECT_EQ(read_file(disk / "lines"), "whole\n");  // the half line is taken back
  lines.write("again");
  EXPECT_EQ(read_file(disk / "lines"), "whole\nagain\n");
}

TEST_F(FilesTest, LinesAreThereAtOnceAndAppendOnDemand) {
  const fs::path path = folder_ / "lines";
  {
    LineWriter writer(path, false);
    writer.write("one");
    EXPECT_EQ(read_file(path), "one\n");
    LineWriter moved = std::move(writer);
    moved.write("two");
  }
  {
    LineWriter writer(path, true);
    writer.write("three");
  }
  EXPECT_EQ(read_file(path), "one\ntwo\nthree\n");
  LineWriter(path, false).write("new");
  EXPECT_EQ(read_file(path), "new\n");
  EXPECT_THROW(LineWriter().write("x"), std::logic_error);
  EXPECT_THROW(LineWriter(folder_ / "no" / "x", true), InputError);
}

TEST_F(FilesTest, LockRefusesASecondHolderAndEndsWithTheFirst) {
  const fs::path path = folder_ / "lock";
  {
    FileLock first(path, "run folder x");
    const std::string error = error_of<UsageError>([&] { FileLock second(path, "run folder x"); });
    expect_contains(error, "run folder x");
    expect_contains(error, path.string());
    FileLock moved = std::move(first);
    EXPECT_THROW(FileLock(path, "x"), UsageError);
  }
  FileLock again(path, "x");
  EXPECT_THROW(FileLock(folder_ / "no" / "lock", "x"), InputError);
}

TEST_F(FilesTest, LockDiesWithItsProcess) {
  const fs::path path = folder_ / "lock";
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    FileLock lock(path, "x");
    if (::write(ready[1], "x", 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_THROW(FileLock(path, "x"), UsageError);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_NO_THROW(FileLock(path, "x"));
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(FilesTest, TemporariesOfKilledWritersCanBeRemoved) {
  write_file_atomic(folder_ / "file", "x");
  write_file_atomic(folder_ / "file.tmp-12-0", "half");
  remove_temporaries(folder_);
  EXPECT_EQ(entries(), 1);
  EXPECT_EQ(read_file(folder_ / "file"), "x");
  remove_temporaries(folder_ / "gone");
}

// Values of the xxHash project's own test program.
TEST(Hash, IsXxh64WithSeed0) {
  EXPECT_EQ(hex64(hash_bytes("")), "ef46db3751d8e999");
  EXPECT_EQ(hex64(hash_bytes("abc")), "44bc2cf5ad770999");
  EXPECT_EQ(hex64(1), "0000000000000001");
}

}  // namespace
}  // namespace lra
