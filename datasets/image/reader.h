// Reads the binary version of CIFAR-10 (Krizhevsky 2009) as grey pictures, row by row: from its archive, which is
// streamed and never unpacked to disk, or from the folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "datasets/byte_rows.h"

namespace lra::image {

inline constexpr int kSide = 32;
inline constexpr int kPixels = kSide * kSide;    // tokens of a picture
inline constexpr int kRecord = 1 + 3 * kPixels;  // bytes: label, then all red, all green, all blue values
inline constexpr int kClasses = 10;

struct ReadOptions {
  int64_t max_length = kPixels;  // pixels a picture is cut at; 0 = never
  int64_t limit_train = 0;       // first rows of the training split, after splitting; 0 = all
  int64_t limit_eval = 0;        // the same of validation and of test
  bool strict = false;           // a bad row is an error
  bool shifted = false;          // id = grey level + 1; else id = grey level, so that black is padding
  bool want_train = true, want_validation = true, want_test = true;
};

// Null: not wanted.
struct Splits {
  std::unique_ptr<ByteRows> train, validation, test;
};

// `path` is what find_set gives. Rows are in the order of batches and records; the last tenth (rounded down) of the
// good training rows is the validation split.
//
// A row whose label is above 9 is bad: left out and counted in skipped() (of training rows in that of train where it is
// wanted, else of validation), with `strict` an InputError. InputError also: a batch that is missing, empty, can't be
// read or is no whole number of records; an archive that is damaged or cut short or holds a batch in two folders; no
// good training row. Of an archive's member that comes twice the later counts, as it would on unpacking.
Splits read_set(const std::filesystem::path& path, const ReadOptions& options = {});

}  // namespace lra::image
