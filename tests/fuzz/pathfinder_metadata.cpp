// Lists of Pathfinder pictures, text and NPY: alone, and as the list of a set with ten pictures.
#include "datasets/pathfinder/metadata.h"
#include "datasets/pathfinder/reader.h"
#include "datasets/png.h"
#include "tests/fuzz/target.h"

namespace lra::fuzz {

namespace {

std::filesystem::path set_with(std::string_view metadata) {
  static const bool pictures = [] {
    const std::string png = write_grey_png({.width = 32, .height = 32, .pixels = std::vector<uint8_t>(1024, 7)});
    for (int i = 0; i < 10; ++i) scratch_file("pathfinder/imgs/0/sample_" + std::to_string(i) + ".png", png);
    return true;
  }();
  require(pictures, "pictures");
  return scratch_file("pathfinder/metadata/0.npy", metadata).parent_path().parent_path();
}

}  // namespace

void pathfinder_metadata(Bytes bytes) {
  size_t rows = 0, bad = 0;
  const bool good = accepts([&] {
    const pathfinder::Metadata metadata = pathfinder::parse_metadata(text_of(bytes));
    for (const pathfinder::MetadataRow& row : metadata.rows) {
      require(row.label >= 0 && row.label <= 1 && row.index >= 0 && row.number > 0, "a row's numbers are impossible");
      const std::filesystem::path path = row.path();
      require(path.is_relative() && path.lexically_normal() == path && *path.begin() != "..", "a path leads out");
    }
    for (const pathfinder::BadMetadataRow& row : metadata.bad) {
      require(!row.reason.empty() && !row.detail.empty() && row.number > 0, "a row is bad for no reason");
    }
    rows = metadata.rows.size();
    bad = metadata.bad.size();
  });
  if (rows > 2000) return;
  const std::filesystem::path folder = set_with(text_of(bytes));
  for (const bool strict : {false, true}) {
    accepts([&] {
      const pathfinder::Splits splits = pathfinder::read_folder(folder, {.strict = strict, .threads = 1});
      require(good && splits.train->size() > 0 && (!strict || bad == 0), "a set is accepted whose list is bad");
      const SplitBounds bounds{.least = 0, .vocabulary = 256, .classes = 2, .max_length = 1024};
      int64_t all = 0;
      for (const auto* split : {&splits.train, &splits.validation, &splits.test}) {
        require_split(**split, bounds);
        all += (*split)->size();
      }
      for (const Skipped& skipped : splits.train->skipped()) all += skipped.count;
      require(all == static_cast<int64_t>(rows + bad), "rows are lost");
    });
  }
}

}  // namespace lra::fuzz
