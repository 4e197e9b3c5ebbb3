// Writes Pathfinder pictures as the Long Range Arena release has them: DIR/pathfinder32/curv_contour_length_14/ with
// imgs/B/sample_K.png and metadata/B.npy, a thousand pictures a folder B.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "datasets/pathfinder/generator.h"
#include "lib/util/files.h"

namespace lra::pathfinder {

// Metadata as the release has it, a line of text a picture, or as the original program writes it: an NPY file of
// strings.
enum class MetadataFormat { kText, kNpy };
// "text" or "npy"; UsageError otherwise.
MetadataFormat metadata_format(const std::string& name);

class FolderWriter {
 public:
  static constexpr int64_t kPicturesPerFolder = 1000;

  // Works in a folder beside the set's, which a killed run leaves behind without metadata (so that it is no set) and
  // the next one clears. UsageError when the set exists and `overwrite` is false or another process writes the same
  // set, InputError when files cannot be written.
  FolderWriter(const std::filesystem::path& root, const GeneratorOptions& options, MetadataFormat format,
               bool overwrite);
  // Removes what was written unless it was committed.
  ~FolderWriter();
  FolderWriter(const FolderWriter&) = delete;
  FolderWriter& operator=(const FolderWriter&) = delete;

  // In the order of index. With a truth, truth/B/sample_K.png is written too: grey levels 0, 64, 128, 192 and 255 for
  // ground, distractors, the two targets and markers.
  void add(const GeneratedPicture& picture);
  // All bytes to the disk, then puts the set in place; without it none appears. A set that is replaced goes first.
  void commit();

  // DIR/pathfinder32/curv_contour_length_14.
  const std::filesystem::path& set_folder() const { return set_folder_; }

 private:
  void write_batch_metadata();

  std::filesystem::path set_folder_, working_folder_, replaced_folder_;
  Settings settings_;
  MetadataFormat format_;
  FileLock lock_;
  bool committed_ = false;
  int64_t batch_ = -1;                          // B of the pictures being added
  std::vector<std::vector<std::string>> rows_;  // metadata of batch_
};

}  // namespace lra::pathfinder
