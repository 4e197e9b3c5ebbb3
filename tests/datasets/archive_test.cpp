// Reading tar archives member by member, whole ones and damaged ones.
#include "datasets/archive.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lib/util/check.h"
#include "tests/datasets/archive_support.h"

namespace lra {
namespace {

namespace fs = std::filesystem;
using Kind = Member::Kind;

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string all_bytes() {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  return bytes;
}

// Bytes that do not compress, so that a cut file is cut within members.
std::string noise(size_t size) {
  std::string bytes(size, '\0');
  uint32_t state = 1;
  for (char& byte : bytes) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<char>(state >> 24);
  }
  return bytes;
}

const std::vector<Member>& some_members() {
  static const std::vector<Member> members = {{"a/", "", Kind::kFolder},
                                              {"a/empty.txt", ""},
                                              {"a/bytes", all_bytes()},
                                              {"./b/noise", noise(100000)},
                                              {"a/long" + std::string(150, 'x') + "/name", "long"},
                                              {"a/\xc3\xa9t\xc3\xa9.txt", "summer"},
                                              {"a/last", "end\n"}};
  return members;
}

void expect_some_members(const fs::path& path) {
  std::vector<Member> expected = some_members();
  expected.erase(expected.begin());  // a folder is no file
  expected[2].name = "b/noise";
  const std::vector<Member> got = members_of(path);
  ASSERT_EQ(got.size(), expected.size()) << path;
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].name, expected[i].name) << path;
    EXPECT_EQ(got[i].bytes, expected[i].bytes) << path << expected[i].name;
  }
}

TEST(Archive, KnowsItsNames) {
  for (const char* name : {"a.tar", "a.tar.gz", "/x/a.tgz", "a.tar.bz2", "a.b.tar.xz", "a.tar.zst"}) {
    EXPECT_TRUE(is_archive_name(name)) << name;
  }
  for (const char* name : {"", ".tar.gz", "a.gz", "a.zip", "a.tar.gz.part", "tar", "x.tar/a"}) {
    EXPECT_FALSE(is_archive_name(name)) << name;
  }
}

TEST(Archive, GivesEveryMemberInEveryCompression) {
  TemporaryFolder folder;
  for (const char* name : {"a.tar", "a.tar.gz", "a.tar.bz2", "a.tar.xz", "a.tar.zst"}) {
    pack(folder / name, some_members());
    expect_some_members(folder / name);
  }
}

TEST(Archive, IsReadInPieces) {
  TemporaryFolder folder;
  pack(folder / "a.tar.gz", {{"first", "skipped " + noise(5000)}, {"second", "0123456789"}, {"none", ""}});
  ArchiveReader archive(folder / "a.tar.gz");
  ASSERT_TRUE(archive.next());
  EXPECT_EQ(archive.size(), 5008);
  ASSERT_TRUE(archive.next());  // unread bytes are passed over
  EXPECT_EQ(archive.name(), "second");
  std::string bytes;
  char buffer[3];
  while (const size_t got = archive.read(buffer)) bytes.append(buffer, got);
  EXPECT_EQ(bytes, "0123456789");
  ASSERT_TRUE(archive.next());
  EXPECT_EQ(archive.read(buffer), 0u);
  EXPECT_FALSE(archive.next());
}

TEST(Archive, RefusesAMemberAboveTheLimit) {
  TemporaryFolder folder;
  pack(folder / "a.tar", {{"big", std::string(11, 'x')}});
  ArchiveReader archive(folder / "a.tar");
  ASSERT_TRUE(archive.next());
  const auto message = message_of<InputError>([&] { archive.read_all(10); });
  EXPECT_TRUE(holds(message, "a.tar: big is 11 bytes long, more than the 10")) << message;
}

TEST(Archive, LinksAreToldAndNotRead) {
  TemporaryFolder folder;
  pack(
      folder / "a.tar",
      {{"real", "bytes"}, {"hard", "real", Kind::kHardLink}, {"soft", "real", Kind::kSymbolicLink}, {"after", "more"}});
  ArchiveReader archive(folder / "a.tar");
  ASSERT_TRUE(archive.next());
  EXPECT_FALSE(archive.is_link());
  for (const char* name : {"hard", "soft"}) {
    ASSERT_TRUE(archive.next());
    EXPECT_EQ(archive.name(), name);
    EXPECT_TRUE(archive.is_link());
    const auto message = message_of<InputError>([&] { archive.read_all(100); });
    EXPECT_TRUE(holds(message, std::string(name) + " is a link")) << message;
  }
  ASSERT_TRUE(archive.next());
  EXPECT_EQ(archive.read_all(100), "more");
}

// A member of a gigabyte that takes 2 KiB.
TEST(Archive, FilesWithHolesAreErrors) {
  TemporaryFolder folder;
  struct archive* out = archive_write_new();
  archive_write_set_format_pax(out);
  ASSERT_EQ(archive_write_open_filename(out, (folder / "a.tar").c_str()), ARCHIVE_OK);
  struct archive_entry* entry = archive_entry_new();
  archive_entry_set_pathname(entry, "holes");
  archive_entry_set_filetype(entry, AE_IFREG);
  archive_entry_set_size(entry, int64_t{1} << 30);
  archive_entry_sparse_add_entry(entry, 0, 5);
  ASSERT_EQ(archive_write_header(out, entry), ARCHIVE_OK);
  ASSERT_EQ(archive_write_data(out, "bytes", 5), 5);
  archive_entry_free(entry);
  archive_write_close(out);
  archive_write_free(out);
  ASSERT_LT(fs::file_size(folder / "a.tar"), 20480u);
  const auto message = message_of<InputError>([&] { members_of(folder / "a.tar"); });
  EXPECT_TRUE(holds(message, "a.tar: holes is stored as a file with holes")) << message;
}

// A compressed file that ends too early is an error wherever it is cut; only behind the tar's own end nothing is lost.
TEST(Archive, CutFilesAreErrors) {
  TemporaryFolder folder;
  const fs::path cut = folder / "cut.tar.gz";
  for (const char* name : {"a.tar.gz", "a.tar.bz2", "a.tar.xz", "a.tar.zst", "a.tar"}) {
    pack(folder / name, some_members());
    const std::string bytes = file_bytes(folder / name);
    // Of a plain tar the last 1,024 bytes and more are its end mark.
    const size_t most = bytes.size() - (std::string(name) == "a.tar" ? 11000 : 600);
    for (const size_t length : {size_t{0}, size_t{1}, size_t{5}, size_t{300}, most / 3, most / 2, most}) {
      put_file(cut, bytes.substr(0, length));
      const auto message = message_of<InputError>([&] { members_of(cut); });
      EXPECT_TRUE(holds(message, cut.string() + ": ")) << name << " cut at " << length << ": " << message;
    }
  }
}

TEST(Archive, OtherFilesAreErrors) {
  TemporaryFolder folder;
  const fs::path path = folder / "a.tar.gz";
  for (const std::string& bytes : {std::string("PK\x03\x04"), std::string("plain text\n"), noise(20000)}) {
    put_file(path, bytes);
    const auto message = message_of<InputError>([&] { members_of(path); });
    EXPECT_TRUE(holds(message, path.string() + ": cannot be read as a tar archive")) << message;
  }
  EXPECT_TRUE(holds(message_of<InputError>([&] { ArchiveReader none(folder / "none.tar"); }), "none.tar"));
  EXPECT_NE(message_of<InputError>([&] { members_of(folder.path()); }), "");
}

// Any byte changed: either an error that names the file, or members of some kind, never anything else.
TEST(Archive, ChangedBytesEndInAnErrorAtWorst) {
  TemporaryFolder folder;
  const std::vector<Member> members = {{"a/b", "0123456789"}, {"a/c", std::string(3000, 'x')}, {"a/d", ""}};
  for (const char* name : {"a.tar", "a.tar.gz"}) {
    pack(folder / name, members);
    const std::string bytes = file_bytes(folder / name);
    const size_t step = std::max<size_t>(1, bytes.size() / 400);
    int errors = 0;
    for (size_t i = 0; i < bytes.size(); i += step) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ (1 << (i % 8)));
      put_file(folder / "changed.tar", changed);
      const auto message = message_of<InputError>([&] { members_of(folder / "changed.tar"); });
      errors += message.empty() ? 0 : 1;
      EXPECT_TRUE(message.empty() || holds(message, "changed.tar")) << message;
    }
    EXPECT_GT(errors, 0) << name;
  }
}

TEST(Archive, PermissionCounts) {
  TemporaryFolder folder;
  pack(folder / "a.tar", {{"a", "b"}});
  allow_all(folder.path());
  forbid_all(folder / "a.tar");
  const AsNobody nobody;
  if (!nobody) GTEST_SKIP() << "cannot become another user";
  const auto message = message_of<InputError>([&] { ArchiveReader archive(folder / "a.tar"); });
  EXPECT_TRUE(holds(message, "a.tar")) << message;
  EXPECT_TRUE(holds(message, "ermission denied")) << message;
}

}  // namespace
}  // namespace lra
