// A generated Pathfinder set in one file: 200,000 small files would cost a cache folder four times the space and
// minutes to open.
//
// Layout, little endian: "LRAPATH1"; size (uint32); 0 (uint32); number of pictures n (uint64); n x size x size grey
// levels; the index, for each picture XXH64 of its pixels (uint64), label (uint8), length of its path (uint16), path;
// length of the index (uint64); XXH64 of head, index and its length (uint64).
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "datasets/file_stream.h"
#include "datasets/pathfinder/pictures.h"

namespace lra::pathfinder {

class PackedWriter {
 public:
  // Nothing appears at `path` before commit(). InputError naming the path when it can't be written, here and below.
  PackedWriter(const std::filesystem::path& path, int size, int64_t count);

  // path_in_set: as metadata would give it ("imgs/0/sample_12.png"); it decides the split.
  void add(std::string_view path_in_set, int32_t label, std::span<const uint8_t> pixels);
  void commit();  // after `count` pictures

 private:
  AtomicFile file_;
  std::string head_, index_;
  size_t pixels_;  // of a picture
  int64_t count_, added_ = 0;
};

// Split like a folder. Small sets are held, larger ones read by pread. InputError when the file is missing, cut short,
// changed or of another kind or size, here or, for a picture that is not held, when it is read.
Splits read_packed(const std::filesystem::path& path, const ReadOptions& options);

}  // namespace lra::pathfinder
