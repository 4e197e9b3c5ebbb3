// The lists of pictures in a Pathfinder set: one row a picture, its folder, file, number and label first. The release
// holds them as text in files named .npy; the original generator (Linsley et al. 2018) writes NumPy string arrays.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lra::pathfinder {

struct MetadataRow {
  std::string folder;  // "imgs/0"
  std::string file;    // "sample_12.png"
  int64_t index = 0;   // of the picture in its folder
  int32_t label = 0;   // 1: the markers lie on one contour
  int64_t number = 0;  // of the line or array row it stands in, from 1

  std::string path() const { return folder + "/" + file; }  // below the set's folder
};

struct BadMetadataRow {
  std::string reason;  // one of few: "wrong field count", "bad path", "bad index", "bad label"
  std::string detail;  // what is wrong in this row and what would be right
  int64_t number = 0;
};

struct Metadata {
  std::vector<MetadataRow> rows;
  std::vector<BadMetadataRow> bad;
};

// A row has at least four fields: folder, file, index, label (0 or 1). Bytes that begin with NPY's signature are a
// two-dimensional array of `<U` or `|S` strings, version 1 to 3, in C or Fortran order; all else is text, a row a line
// (LF or CRLF), fields apart by blanks, empty lines passed over. A path that leads out of the set is bad.
// InputError, whose text is the reason alone, where an NPY array as a whole is of another kind, cut short or damaged.
Metadata parse_metadata(std::string_view bytes);

}  // namespace lra::pathfinder
