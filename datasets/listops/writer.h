// Writes ListOps examples as the Long Range Arena release has them: basic_{train,val,test}.tsv, a header, CRLF endings.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "datasets/example.h"
#include "datasets/file_stream.h"

namespace lra::listops {

class FolderWriter {
 public:
  // Creates the folder where it is missing. UsageError when one of the three files exists and `overwrite` is false,
  // InputError when files cannot be written.
  FolderWriter(const std::filesystem::path& folder, bool overwrite);

  void add(Split split, std::span<const uint8_t> ids, int32_t label);
  // Puts the three files in place; without it none appears.
  void commit();

 private:
  std::array<std::unique_ptr<AtomicFile>, 3> files_;
  std::string line_;
};

}  // namespace lra::listops
