// Reads the film reviews of the Large Movie Review Dataset (Maas et al. 2011), byte by byte: from its archive, which is
// streamed and never unpacked to disk, or from the folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "datasets/byte_rows.h"

namespace lra::text {

struct ReadOptions {
  int64_t max_length = 4000;        // bytes a review is cut at; 0 = never
  int64_t limit_train = 0;          // first rows of the training split, after splitting; 0 = all
  int64_t limit_eval = 0;           // the same of validation and of test
  bool strict = false;              // a bad file is an error
  bool validation_is_test = false;  // the test reviews are the validation split too, and training keeps all of its own
  bool want_train = true, want_validation = true, want_test = true;
};

// Null: not wanted. id = byte + 1; label 0 = neg, 1 = pos.
struct Splits {
  std::unique_ptr<ByteRows> train, validation, test;
};

// `path` is what find_set gives. A review is a file NUMBER_RATING.txt in train/neg, train/pos, test/neg or test/pos;
// rows are in the order of the number, at equal number neg before pos (then by file name), wherever they stand in the
// archive. Of a member that comes twice the later counts, as it would on unpacking. The validation split is, of each
// class, the tenth (rounded down) of the training reviews with the lowest XXH64 (seed 0) of their whole bytes.
//
// Other files in these four folders, links in an archive, and files that can't be read are bad files: left out and
// counted in skipped() of their split (those of train/ in that of train where it is wanted, else of validation), with
// `strict` an InputError naming the first met. Files elsewhere (unsup, lists of addresses) are not looked at.
// InputError also: an archive that is damaged, cut short or holds two sets, a folder of the four without any file, no
// good training review.
Splits read_set(const std::filesystem::path& path, const ReadOptions& options = {});

}  // namespace lra::text
