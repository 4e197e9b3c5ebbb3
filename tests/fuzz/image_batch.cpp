// A batch of CIFAR-10 among five good ones.
#include "datasets/image/find.h"
#include "datasets/image/reader.h"
#include "tests/fuzz/target.h"

namespace lra::fuzz {

void image_batch(Bytes bytes) {
  static const std::string one_record(image::kRecord, '\1');
  static const std::filesystem::path folder = [] {
    for (const char* name : image::kBatches) scratch_file(std::string("image/") + name, one_record);
    return scratch_file("image/readme.html", "").parent_path();
  }();
  scratch_file(std::string("image/") + image::kBatches[0], text_of(bytes));
  const int64_t records = static_cast<int64_t>(bytes.size()) / image::kRecord;
  int64_t bad = 0;
  const bool read = accepts([&] {
    const image::Splits splits = image::read_set(folder, {.max_length = 0});
    const SplitBounds bounds{.least = 0, .vocabulary = 256, .classes = image::kClasses, .max_length = image::kPixels};
    for (const auto* split : {&splits.train, &splits.validation, &splits.test}) require_split(**split, bounds);
    for (const Skipped& entry : splits.train->skipped()) bad += entry.count;
    require(splits.train->size() + splits.validation->size() + bad == records + 4, "records are lost");
  });
  require(read == (records > 0 && bytes.size() % image::kRecord == 0), "batches are not told by their size");
  const bool strictly = accepts([&] {
    const image::Splits splits = image::read_set(folder, {.max_length = 7, .strict = true, .shifted = true});
    const SplitBounds bounds{.vocabulary = 257, .classes = image::kClasses, .max_length = 7};
    require_split(*splits.train, bounds);
  });
  require(strictly == (read && bad == 0), "strict does not refuse exactly the batches with bad records");
}

}  // namespace lra::fuzz
