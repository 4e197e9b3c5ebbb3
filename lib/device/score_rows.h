// The kernels of a family of score rows, made of its map of one row. Only sources that hold kernels (.cu) include this.
//
// A map is a small struct, copied to the device:
//   static constexpr int kNumbers;  // numbers a row adds to the gradients of parameters
//   static constexpr int kScratch;  // floats a key in row.scratch; may be left out: 0
//   Map bound(parameters) const;    // with the pointers it needs of them
//   void forward(const Team&, const ScoreRow&, float* s) const;   // s: scores -> weights, over row.n keys
//   void backward(const Team&, const ScoreRow&, float* s, float* g, float* numbers) const;
//       // s: scores -> weights; g: dL/dweights -> dL/dscores
// n is at least 1. What forward and backward leave behind a row's keys is overwritten.
#pragma once

#include <cmath>
#include <memory>
#include <utility>

#include "lib/device/dropout.h"
#include "lib/device/score_panel.h"
#include "lib/device/team.h"

namespace lra::device {

struct ScoreRow {
  int64_t n;       // keys
  int64_t tokens;  // N of its sequence
  int64_t sequence, query, head;
  int64_t first;   // row of its sequence's first token in the batch
  int64_t padded;  // floats of the row
  int64_t heads;
  bool training;
  float *s, *g, *scratch;
  const float* context;  // of the whole batch, as the panel's
  float* d_context;
};

// Row number `index` of a panel; n is 0 where its sequence has no such query.
LRA_KERNEL inline ScoreRow score_row(const ScorePanel& p, int64_t index, int row_scratch = 0) {
  ScoreRow row;
  row.sequence = p.begin + index / (p.heads * p.queries);
  row.head = index / p.queries % p.heads;
  const int64_t i = index % p.queries;
  row.query = p.first_query + i;
  row.first = p.sequence_first[row.sequence];
  row.tokens = p.sequence_first[row.sequence + 1] - row.first;
  row.n = row.query >= row.tokens ? 0 : p.causal ? row.query + 1 : row.tokens;
  row.padded = p.padded_first[row.sequence + 1] - p.padded_first[row.sequence];
  row.heads = p.heads;
  row.training = p.training;
  row.context = p.context;
  row.d_context = p.d_context;
  const int64_t at = (p.padded_first[row.sequence] - p.padded_first[p.begin]) * p.heads * p.queries +
                     (row.head * p.queries + i) * row.padded;
  row.s = p.s + at;
  row.g = p.g + at;
  row.scratch = p.scratch + at * row_scratch;
  return row;
}

// x *= dropout's factors, in place, over the row's keys.
LRA_KERNEL inline void drop_row(const Team& team, const DropoutMask& mask, uint32_t example, const ScoreRow& row,
                                float* x) {
  team.for_each(DropoutMask::units(row.n), [=](int64_t unit) {
    mask.of_unit(example, row.query, unit, row.n, [=](int64_t j, float factor) { x[j] *= factor; });
  });
}

LRA_KERNEL inline void clear_behind(const Team& team, const ScoreRow& row, float* x) {
  team.for_each(row.padded - row.n, [=](int64_t j) { x[row.n + j] = 0.0f; });
}

template <class Map>
LRA_KERNEL constexpr int scratch_of() {
  if constexpr (requires { Map::kScratch; }) {
    return Map::kScratch;
  } else {
    return 0;
  }
}

template <class Map>
class MappedRows final : public ScoreRows {
 public:
  explicit MappedRows(Map map) : map_(map) {}

  int numbers() const override { return Map::kNumbers; }
  int row_scratch() const override { return scratch_of<Map>(); }

  void forward(Device& device, const ScorePanel& panel, std::span<const float* const> parameters) const override {
    run_forward(device, panel, map_.bound(parameters));
  }
  void backward(Device& device, const ScorePanel& panel, std::span<const float* const> parameters) const override {
    run_backward(device, panel, map_.bound(parameters));
  }

  // Public for CUDA, which compiles lambdas in functions of public classes alone.
  static void run_forward(Device& device, const ScorePanel& panel, const Map& map) {
    const DropoutMask mask = mask_of(panel);
    launch(device, panel.rows(), threads_for(panel.longest), [=] LRA_KERNEL(Team & team) {
      const ScoreRow row = score_row(panel, team.block(), scratch_of<Map>());
      if (row.n == 0) return;
      map.forward(team, row, row.s);
      if (mask.threshold != 0) drop_row(team, of_head(mask, row), panel.example[row.sequence], row, row.s);
      clear_behind(team, row, row.s);
    });
  }
  static void run_backward(Device& device, const ScorePanel& panel, const Map& map) {
    const DropoutMask mask = mask_of(panel);
    launch(device, panel.rows(), threads_for(panel.longest), [=] LRA_KERNEL(Team & team) {
      const ScoreRow row = score_row(panel, team.block(), scratch_of<Map>());
      if (row.n == 0) return;
      if (mask.threshold != 0) drop_row(team, of_head(mask, row), panel.example[row.sequence], row, row.g);
      map.backward(team, row, row.s, row.g, panel.numbers + team.block() * Map::kNumbers);
      if (mask.threshold != 0) drop_row(team, of_head(mask, row), panel.example[row.sequence], row, row.s);
      clear_behind(team, row, row.s);
      clear_behind(team, row, row.g);
    });
  }

 private:
  static DropoutMask mask_of(const ScorePanel& p) {
    return {{p.dropout_key[0], p.dropout_key[1]}, p.dropout_site, p.dropout};
  }
  LRA_KERNEL static DropoutMask of_head(DropoutMask mask, const ScoreRow& row) {
    mask.site += static_cast<uint32_t>(row.head);
    return mask;
  }

  Map map_;
};

template <class Map>
std::unique_ptr<ScoreRows> mapped_rows(Map map) {
  return std::make_unique<MappedRows<Map>>(map);
}

}  // namespace lra::device
