#include "datasets/pathfinder/writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <system_error>

#include "datasets/png.h"
#include "lib/util/check.h"

namespace lra::pathfinder {
namespace {

namespace fs = std::filesystem;

// Metadata lies under this name until all is written.
constexpr const char* kUnfinishedMetadata = "metadata.unfinished";
constexpr std::array<uint8_t, 5> kTruthLevels = {0, 64, 128, 192, 255};

[[noreturn]] void fail(const fs::path& path, const char* action, int error) {
  throw InputError("{}: cannot {}: {}", path.string(), action, std::strerror(error));
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

void rename_folder(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error) fail(from, "rename", error.value());
}

void remove_folder(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) fail(path, "remove", error.value());
}

// A plain file: the folder around it is what appears at once.
void put_file(const fs::path& path, std::string_view bytes) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) fail(path, "write", errno);
  int error = 0;
  while (!bytes.empty() && error == 0) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<size_t>(written));
    } else if (errno != EINTR) {
      error = errno;
    }
  }
  if (::close(descriptor) != 0 && error == 0) error = errno;
  if (error != 0) fail(path, "write", error);
}

// Everything below the folder, and more, to the disk.
void flush_file_system(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) fail(folder, "open", errno);
  const int error = ::syncfs(descriptor) == 0 ? 0 : errno;
  ::close(descriptor);
  if (error != 0) fail(folder, "write", error);
}

// As the release writes its figures: "1.0", "0.5".
std::string with_point(double value) {
  std::string text = fmt::format("{}", value);
  return text.find('.') == std::string::npos ? text + ".0" : text;
}

std::string text_of(const std::vector<std::vector<std::string>>& rows) {
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      if (i > 0) text += ' ';
      text += row[i];
    }
    text += '\n';
  }
  return text;
}

// NPY 1.0, a two-dimensional array of `<U32`: what NumPy makes of rows that mix texts and numbers. ASCII only.
std::string npy_of(const std::vector<std::vector<std::string>>& rows) {
  constexpr size_t kWidth = 32;
  std::string header = fmt::format("{{'descr': '<U{}', 'fortran_order': False, 'shape': ({}, {}), }}", kWidth,
                                   rows.size(), rows.empty() ? 0 : rows[0].size());
  constexpr size_t kPreamble = 10;  // magic, version, length of the header
  while ((kPreamble + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  bytes += header;
  for (const std::vector<std::string>& row : rows) {
    for (const std::string& field : row) {
      check(field.size() <= kWidth, "a metadata field of {} characters", field.size());
      for (size_t i = 0; i < kWidth; ++i) {
        bytes += i < field.size() ? field[i] : '\0';
        bytes.append(3, '\0');
      }
    }
  }
  return bytes;
}

fs::path beside(const fs::path& folder, const char* ending) {
  fs::path path = folder;
  path += ending;
  return path;
}

}  // namespace

MetadataFormat metadata_format(const std::string& name) {
  if (name == "text") return MetadataFormat::kText;
  if (name == "npy") return MetadataFormat::kNpy;
  throw UsageError("metadata is written as text or npy, not as '{}'", name);
}

FolderWriter::FolderWriter(const fs::path& root, const GeneratorOptions& options, MetadataFormat format, bool overwrite)
    : set_folder_(root / fmt::format("pathfinder{}", options.size) / level_folder(options.level)),
      working_folder_(beside(set_folder_, ".unfinished")),
      replaced_folder_(beside(set_folder_, ".replaced")),
      settings_(settings_of(options.size, options.level)),
      format_(format) {
  if (!overwrite && is_there(set_folder_)) {
    throw UsageError("{}: exists already; --force overwrites it, or choose another folder", set_folder_.string());
  }
  make_directories(working_folder_);
  lock_ = FileLock(working_folder_ / "lock", working_folder_.string());
  // What killed runs have left.
  remove_folder(replaced_folder_);
  for (const char* name : {"imgs", "truth", kUnfinishedMetadata}) remove_folder(working_folder_ / name);
  for (const char* name : {"imgs", kUnfinishedMetadata}) make_directories(working_folder_ / name);
}

FolderWriter::~FolderWriter() {
  std::error_code ignored;
  if (!committed_) fs::remove_all(working_folder_, ignored);
}

void FolderWriter::add(const GeneratedPicture& picture) {
  const int64_t batch = picture.index / kPicturesPerFolder;
  const std::string folder = fmt::format("imgs/{}", batch);
  if (batch != batch_) {
    if (batch_ >= 0) write_batch_metadata();
    batch_ = batch;
    make_directories(working_folder_ / folder);
    if (!picture.truth.empty()) make_directories(working_folder_ / fmt::format("truth/{}", batch));
  }
  const std::string file = fmt::format("sample_{}.png", picture.index);
  const Settings& s = settings_;
  put_file(working_folder_ / folder / file, write_grey_png({s.size, s.size, picture.pixels}));
  if (!picture.truth.empty()) {
    GreyPicture truth{s.size, s.size, {}};
    for (const uint8_t what : picture.truth) truth.pixels.push_back(kTruthLevels.at(what));
    put_file(working_folder_ / fmt::format("truth/{}/{}", batch, file), write_grey_png(truth));
  }
  constexpr int kStrokeContrasts = 1;  // different contrasts among a target's strokes
  rows_.push_back({folder, file, std::to_string(picture.index), std::to_string(picture.label), with_point(s.continuity),
                   std::to_string(s.contour_length), std::to_string(s.distractor_length),
                   std::to_string(s.stroke_length), with_point(s.stroke_width), std::to_string(s.margin),
                   std::to_string(kStrokeContrasts)});
}

void FolderWriter::write_batch_metadata() {
  put_file(working_folder_ / kUnfinishedMetadata / fmt::format("{}.npy", batch_),
           format_ == MetadataFormat::kText ? text_of(rows_) : npy_of(rows_));
  rows_.clear();
}

void FolderWriter::commit() {
  check(!committed_, "a set committed twice");
  if (!rows_.empty()) write_batch_metadata();
  flush_file_system(working_folder_);
  if (is_there(set_folder_)) {
    // Without metadata it is no set any more, so that at no instant two can be found.
    const fs::path metadata = set_folder_ / "metadata";
    if (is_there(metadata)) rename_folder(metadata, beside(metadata, ".replaced"));
    rename_folder(set_folder_, replaced_folder_);
  }
  rename_folder(working_folder_, set_folder_);
  std::error_code ignored;
  fs::remove(set_folder_ / "lock", ignored);
  rename_folder(set_folder_ / kUnfinishedMetadata, set_folder_ / "metadata");
  committed_ = true;
  flush_file_system(set_folder_);
  remove_folder(replaced_folder_);
}

}  // namespace lra::pathfinder
