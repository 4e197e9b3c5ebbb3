// ListOps files of the release: as the training file, leniently and strictly, whole and cut.
#include "datasets/listops/reader.h"
#include "datasets/listops/tokens.h"
#include "tests/fuzz/target.h"

namespace lra::fuzz {

void listops_rows(Bytes bytes) {
  const std::filesystem::path folder = scratch_file("listops/basic_train.tsv", text_of(bytes)).parent_path();
  const SplitBounds bounds{.vocabulary = listops::kClose + 1, .classes = listops::kClasses};
  int64_t rows = 0, skipped = 0;
  const bool read = accepts([&] {
    const auto split = listops::read_split(folder, Split::kTrain, {.max_length = 0});
    require(split->size() > 0 && split->truncated() == 0, "an empty training split is accepted");
    require_split(*split, bounds);
    rows = split->size();
    for (const Skipped& entry : split->skipped()) skipped += entry.count;
    for (int64_t i = 0; i < rows; ++i) {
      listops::Evaluator evaluator;
      require(evaluator.evaluate(split->bytes(i)) == split->label(i), "a label is not the value of its expression");
      std::string text;
      listops::append_release_text(split->bytes(i), text);
      std::vector<uint8_t> ids;
      std::string_view unknown;
      require(listops::tokenize(text, ids, unknown) && std::ranges::equal(ids, split->bytes(i)),
              "a row changes when it is written and read");
    }
  });
  const bool strictly = accepts([&] {
    const auto split = listops::read_split(folder, Split::kTrain, {.max_length = 3, .strict = true});
    require(split->size() == rows, "strictly, other rows are read");
    SplitBounds cut = bounds;
    cut.max_length = 3;
    require_split(*split, cut);
  });
  require(strictly == (read && skipped == 0), "strict does not refuse exactly the files with bad rows");
  accepts([&] { require(listops::read_split(folder, Split::kTrain, {.limit = 1})->size() == 1, "limit 1"); });
}

}  // namespace lra::fuzz
