// A batch as a device takes it: the rows of all sequences one after another, without padding. Pointers are the
// device's.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lib/device/memory.h"
#include "lib/model/example.h"

namespace lra::device {

// Sums of rows by a target (the gradient of an embedding): rows that share a target, in their order, in chunks.
struct RowSums {
  static constexpr int64_t kChunk = 64;
  int64_t rows = 0, chunks = 0, targets = 0;
  const int32_t* order = nullptr;   // (rows) rows by target
  const int32_t* first = nullptr;   // (chunks + 1) of a chunk's rows in order
  const int32_t* target = nullptr;  // (targets)
  const int32_t* parts = nullptr;   // (targets + 1) of a target's first chunk
};

// target[i] in [0, largest] for each row i.
RowSums make_row_sums(std::span<const int32_t> target, int32_t largest, Scratch& scratch);

struct RaggedBatch {
  int64_t sequences = 0, tokens = 0;
  int64_t longest = 0;          // sequence
  std::vector<int64_t> length;  // of the sequences, on the host
  std::vector<int64_t> first;   // (sequences + 1) rows, on the host
  // (sequences + 1) as first, of lengths rounded up to whole vectors, on the host: where rows of scores lie.
  std::vector<int64_t> padded_first;

  const int32_t* ids = nullptr;                  // (tokens) a learned first row has the id `vocabulary`
  const int32_t* places = nullptr;               // (tokens)
  const int32_t* sequence = nullptr;             // (tokens)
  const int64_t* sequence_first = nullptr;       // (sequences + 1)
  const int64_t* device_padded_first = nullptr;  // (sequences + 1)
  const uint32_t* example = nullptr;             // (sequences) in dropout counters
  RowSums by_id, by_place;                       // with gradients only
};

struct BatchShape {
  int32_t vocabulary, places;
  bool pair = false;       // both sequences of an example, side by side
  bool first_row = false;  // a learned row before the tokens, at place 0
  bool gradients = false;
};

// first_example: place of the first one in the global batch.
RaggedBatch make_batch(std::span<const Example> examples, const BatchShape& shape, uint32_t first_example,
                       Scratch& scratch);

// The same rows, every sequence cut into ones of at most `length` tokens: what attention within blocks needs. Without
// ids, row sums, and examples for dropout.
RaggedBatch cut_batch(const RaggedBatch& batch, int64_t length, Scratch& scratch);

}  // namespace lra::device
