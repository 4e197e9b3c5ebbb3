#include "datasets/listops/generator.h"

#include <array>
#include <future>
#include <unordered_set>
#include <vector>

#include "datasets/listops/tokens.h"
#include "lib/util/check.h"
#include "lib/util/cpu.h"
#include "lib/util/files.h"
#include "lib/util/rng.h"

namespace lra::listops {
namespace {

// Trees kept out of a range of candidates, in their order.
struct Kept {
  std::vector<uint8_t> ids;
  std::vector<size_t> ends;
  std::vector<int32_t> labels;
};

// Draws one tree, token by token, and its value with it.
class TreeGrower {
 public:
  TreeGrower(Random random, std::vector<uint8_t>& ids) : random_(random), ids_(ids), start_(ids.size()) {}

  // The value of the tree; -1 as soon as the tree is too long to be kept.
  int grow_root() { return grow_operator(1); }
  size_t length() const { return ids_.size() - start_; }

 private:
  // A node is a digit with probability 3/4; one draw decides this and which digit.
  int grow(int depth) {
    if (depth == kMaxDepth) return put_digit(random_.below(10));
    const uint32_t draw = random_.below(40);
    return draw < 30 ? put_digit(draw % 10) : grow_operator(depth);
  }

  int put_digit(uint32_t digit) {
    ids_.push_back(static_cast<uint8_t>(kFirstDigit + digit));
    return static_cast<int>(digit);
  }

  int grow_operator(int depth) {
    const auto op = static_cast<uint8_t>(kMax + random_.below(4));
    const auto arguments = static_cast<int>(2 + random_.below(kMaxArguments - 1));
    ids_.push_back(op);
    std::array<uint8_t, kMaxArguments> values;
    for (int i = 0; i < arguments; ++i) {
      const int value = length() < kTooLong ? grow(depth + 1) : -1;
      if (value < 0) return -1;
      values[static_cast<size_t>(i)] = static_cast<uint8_t>(value);
    }
    ids_.push_back(kClose);
    return apply_operator(op, std::span(values).first(static_cast<size_t>(arguments)));
  }

  Random random_;
  std::vector<uint8_t>& ids_;
  size_t start_;
};

Kept grow_range(uint64_t seed, uint64_t begin, uint64_t end) {
  Kept kept;
  for (uint64_t t = begin; t < end; ++t) {
    const size_t start = kept.ids.size();
    // A root that is a digit is never long enough: drawing only operator roots leaves the kept trees as they were.
    TreeGrower grower(Random(seed, RandomStream::kData, t), kept.ids);
    const int value = grower.grow_root();
    if (value >= 0 && grower.length() > kTooShort && grower.length() < kTooLong) {
      kept.ends.push_back(kept.ids.size());
      kept.labels.push_back(value);
    } else {
      kept.ids.resize(start);
    }
  }
  return kept;
}

}  // namespace

void generate(const GeneratorOptions& options, const TreeSink& sink, const GeneratorProgress& progress) {
  check(options.train >= 0 && options.validation >= 0 && options.test >= 0, "a negative number of trees");
  const int64_t total = options.train + options.validation + options.test;
  const auto threads = static_cast<uint64_t>(options.threads > 0 ? options.threads : default_threads());
  constexpr uint64_t kRange = 2048;  // candidates a thread takes at a time

  // 64 bits tell trees apart: a chance equality would only leave out one tree in 10^9 runs.
  std::unordered_set<uint64_t> seen;
  int64_t done = 0;
  const auto take = [&](const Kept& kept) {
    size_t begin = 0;
    for (size_t i = 0; i < kept.ends.size() && done < total; ++i) {
      const std::span<const uint8_t> ids(kept.ids.data() + begin, kept.ends[i] - begin);
      begin = kept.ends[i];
      if (!seen.insert(hash_bytes({reinterpret_cast<const char*>(ids.data()), ids.size()})).second) continue;
      const Split split = done < options.train                        ? Split::kTrain
                          : done < options.train + options.validation ? Split::kValidation
                                                                      : Split::kTest;
      sink(split, ids, kept.labels[i]);
      ++done;
    }
  };

  uint64_t next = 0;
  const auto start_round = [&] {
    std::vector<std::future<Kept>> ranges;
    for (uint64_t i = 0; i < threads; ++i, next += kRange) {
      ranges.push_back(std::async(std::launch::async, grow_range, options.seed, next, next + kRange));
    }
    return ranges;
  };
  // The next round grows while this one is written.
  std::vector<std::future<Kept>> round = start_round();
  while (done < total) {
    std::vector<std::future<Kept>> following = start_round();
    for (std::future<Kept>& range : round) take(range.get());
    if (progress) progress(done, total);
    round = std::move(following);
  }
}

}  // namespace lra::listops
