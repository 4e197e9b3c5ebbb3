// Random ListOps expressions with the settings of the Long Range Arena (Tay et al. 2021): trees of at most ten levels,
// operators with two to ten arguments, kept when 500 < length < 2000.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "datasets/example.h"

namespace lra::listops {

inline constexpr int kMaxDepth = 10;      // the root is at depth 1; nodes at depth 10 are digits
inline constexpr int kMaxArguments = 10;  // at least 2
inline constexpr int kTooShort = 500;     // lengths strictly between: every operator, digit and closing bracket is one
inline constexpr int kTooLong = 2000;

struct GeneratorOptions {
  int64_t train = 96000;
  int64_t validation = 2000;
  int64_t test = 2000;
  uint64_t seed = 0;
  int threads = 0;  // 0: all that this process may use. No effect on what is generated
};

// Takes the trees in order, first all of train, then validation, then test. No tree comes twice.
using TreeSink = std::function<void(Split split, std::span<const uint8_t> ids, int32_t label)>;
// Trees given to the sink so far, of all that will be.
using GeneratorProgress = std::function<void(int64_t done, int64_t total)>;

// Candidate t is a function of (seed, t) alone, and the kept ones go to the sink in the order of t: the data depends on
// the seed and the three sizes only. Sink and progress are called from the calling thread; what they throw ends the
// work.
void generate(const GeneratorOptions& options, const TreeSink& sink, const GeneratorProgress& progress = {});

}  // namespace lra::listops
