// Retrieval files, which are indexed block by block: wherever the blocks end, the rows are the same.
#include "datasets/retrieval/folder.h"
#include "datasets/retrieval/reader.h"
#include "tests/fuzz/target.h"

namespace lra::fuzz {

namespace {

bool same(const std::vector<Skipped>& a, const std::vector<Skipped>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Skipped& x, const Skipped& y) {
    return x.reason == y.reason && x.count == y.count && x.first == y.first;
  });
}

}  // namespace

void retrieval_rows(Bytes bytes) {
  const std::filesystem::path folder =
      scratch_file("retrieval/" + retrieval::file_name(Split::kTrain), text_of(bytes)).parent_path();
  const SplitBounds bounds{.vocabulary = 257, .classes = 2};
  std::unique_ptr<retrieval::PairRows> whole;
  const auto read = [&](const retrieval::ReadOptions& options) {
    return retrieval::read_split(folder, Split::kTrain, options);
  };
  const bool good = accepts([&] {
    whole = read({.max_length = 0});
    require(whole->size() > 0, "an empty training split is accepted");
    require_split(*whole, bounds);
  });
  const bool in_blocks = accepts([&] {
    const auto rows = read({.max_length = 0, .block = 1 + bytes.size() / 3});
    require(good && split_hash(*rows) == split_hash(*whole) && same(rows->skipped(), whole->skipped()),
            "rows depend on the size of blocks");
  });
  require(in_blocks == good, "acceptance depends on the size of blocks");
  const bool strictly = accepts([&] {
    const auto rows = read({.max_length = 3, .strict = true});
    SplitBounds cut = bounds;
    cut.max_length = 3;
    require_split(*rows, cut);
  });
  require(strictly == (good && whole->skipped().empty()), "strict does not refuse exactly the files with bad rows");
  const bool one = accepts([&] { require(read({.limit = 1})->size() == 1, "limit 1"); });
  require(one == good, "with a limit, another file is accepted");
}

}  // namespace lra::fuzz
