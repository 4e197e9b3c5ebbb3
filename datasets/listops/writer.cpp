#include "datasets/listops/writer.h"

#include <system_error>

#include "datasets/listops/folder.h"
#include "datasets/listops/tokens.h"
#include "lib/util/check.h"
#include "lib/util/files.h"

namespace lra::listops {
namespace {

constexpr Split kSplits[] = {Split::kTrain, Split::kValidation, Split::kTest};

}  // namespace

FolderWriter::FolderWriter(const std::filesystem::path& folder, bool overwrite) {
  if (!overwrite) {
    for (const Split split : kSplits) {
      std::error_code ignored;
      const std::filesystem::path path = folder / file_name(split);
      if (std::filesystem::exists(std::filesystem::symlink_status(path, ignored))) {
        throw UsageError("{}: exists already; --force overwrites it, or choose another folder", path.string());
      }
    }
  }
  make_directories(folder);
  for (const Split split : kSplits) {
    auto& file = files_[static_cast<size_t>(split)];
    file = std::make_unique<AtomicFile>(folder / file_name(split));
    file->write("Source\tTarget\r\n");
  }
}

void FolderWriter::add(Split split, std::span<const uint8_t> ids, int32_t label) {
  line_.clear();
  append_release_text(ids, line_);
  line_ += '\t';
  line_ += static_cast<char>('0' + label);
  line_ += "\r\n";
  files_[static_cast<size_t>(split)]->write(line_);
}

void FolderWriter::commit() {
  for (const auto& file : files_) file->flush();  // a full disk shows before the first file is in place
  for (const auto& file : files_) file->commit();
}

}  // namespace lra::listops
