#include "lib/device/ragged_batch.h"

#include <algorithm>

#include "lib/util/check.h"

namespace lra::device {
namespace {

// Whole vectors.
int64_t padded_length(int64_t length) { return (length + 7) / 8 * 8; }

}  // namespace

RowSums make_row_sums(std::span<const int32_t> target, int32_t largest, Scratch& scratch) {
  std::vector<int32_t> begin(static_cast<size_t>(largest) + 2, 0);
  for (const int32_t t : target) ++begin[static_cast<size_t>(t) + 1];
  for (size_t t = 1; t < begin.size(); ++t) begin[t] += begin[t - 1];

  std::vector<int32_t> order(target.size()), next(begin.begin(), begin.end() - 1);
  for (size_t i = 0; i < target.size(); ++i) {
    order[static_cast<size_t>(next[static_cast<size_t>(target[i])]++)] = static_cast<int32_t>(i);
  }
  std::vector<int32_t> first, used, parts;
  for (int32_t t = 0; t <= largest; ++t) {
    const int32_t end = begin[static_cast<size_t>(t) + 1];
    if (begin[static_cast<size_t>(t)] == end) continue;
    used.push_back(t);
    parts.push_back(static_cast<int32_t>(first.size()));
    for (int32_t at = begin[static_cast<size_t>(t)]; at < end; at += RowSums::kChunk) first.push_back(at);
  }
  RowSums sums;
  sums.rows = std::ssize(target), sums.chunks = std::ssize(first), sums.targets = std::ssize(used);
  parts.push_back(static_cast<int32_t>(first.size()));
  first.push_back(static_cast<int32_t>(target.size()));
  sums.order = scratch.upload(std::span<const int32_t>(order));
  sums.first = scratch.upload(std::span<const int32_t>(first));
  sums.target = scratch.upload(std::span<const int32_t>(used));
  sums.parts = scratch.upload(std::span<const int32_t>(parts));
  return sums;
}

RaggedBatch make_batch(std::span<const Example> examples, const BatchShape& shape, uint32_t first_example,
                       Scratch& scratch) {
  RaggedBatch batch;
  std::vector<int32_t> ids, places, sequence;
  std::vector<uint32_t> example;
  batch.first.push_back(0);
  batch.padded_first.push_back(0);
  const auto add = [&](const Sequence& s, uint32_t counter) {
    check(s.ids.size() == s.places.size(), "{} ids but {} places", s.ids.size(), s.places.size());
    const auto number = static_cast<int32_t>(example.size());
    const int32_t shift = shape.first_row ? 1 : 0;
    if (shape.first_row) ids.push_back(shape.vocabulary), places.push_back(0), sequence.push_back(number);
    for (size_t i = 0; i < s.ids.size(); ++i) {
      check(s.ids[i] > 0 && s.ids[i] < shape.vocabulary, "token id {} with a vocabulary of {}", s.ids[i],
            shape.vocabulary);
      check(s.places[i] >= 0 && s.places[i] + shift < shape.places, "place {} with {} positions", s.places[i],
            shape.places);
      ids.push_back(s.ids[i]), places.push_back(s.places[i] + shift), sequence.push_back(number);
    }
    example.push_back(counter);
    batch.length.push_back(std::ssize(ids) - batch.first.back());
    batch.longest = std::max(batch.longest, batch.length.back());
    batch.first.push_back(std::ssize(ids));
    batch.padded_first.push_back(batch.padded_first.back() + padded_length(batch.length.back()));
  };
  for (size_t i = 0; i < examples.size(); ++i) {
    const uint32_t counter = first_example + static_cast<uint32_t>(i);
    if (shape.pair) {
      add(examples[i].first, 2 * counter);
      add(examples[i].second, 2 * counter + 1);
    } else {
      add(examples[i].first, counter);
    }
  }
  batch.sequences = std::ssize(example), batch.tokens = std::ssize(ids);
  batch.ids = scratch.upload(std::span<const int32_t>(ids));
  batch.places = scratch.upload(std::span<const int32_t>(places));
  batch.sequence = scratch.upload(std::span<const int32_t>(sequence));
  batch.sequence_first = scratch.upload(std::span<const int64_t>(batch.first));
  batch.device_padded_first = scratch.upload(std::span<const int64_t>(batch.padded_first));
  batch.example = scratch.upload(std::span<const uint32_t>(example));
  if (shape.gradients) {
    batch.by_id = make_row_sums(ids, shape.vocabulary, scratch);
    batch.by_place = make_row_sums(places, shape.places - 1, scratch);
  }
  return batch;
}

RaggedBatch cut_batch(const RaggedBatch& batch, int64_t length, Scratch& scratch) {
  RaggedBatch cut;
  cut.first.push_back(0), cut.padded_first.push_back(0);
  for (const int64_t tokens : batch.length) {
    for (int64_t at = 0; at < tokens; at += length) {
      cut.length.push_back(std::min(length, tokens - at));
      cut.longest = std::max(cut.longest, cut.length.back());
      cut.first.push_back(cut.first.back() + cut.length.back());
      cut.padded_first.push_back(cut.padded_first.back() + padded_length(cut.length.back()));
    }
  }
  const std::vector<uint32_t> example(cut.length.size());
  cut.sequences = std::ssize(cut.length), cut.tokens = batch.tokens;
  cut.sequence_first = scratch.upload(std::span<const int64_t>(cut.first));
  cut.device_padded_first = scratch.upload(std::span<const int64_t>(cut.padded_first));
  cut.example = scratch.upload(std::span<const uint32_t>(example));
  return cut;
}

}  // namespace lra::device
