// The seam between attention families of the first kind, P = f(S, row statistics, n), and the driver that runs them.
// A family maps tiles of rows of scores to weights and back; it never sees padding (rows hold real keys only), and of
// dropout only the bits that the loops of row_loops-inl.h apply. All else is the driver's (tiled_kernel.h).
#pragma once

#include <cstdint>
#include <span>

#include "lib/attention/attention.h"

namespace lra {

// Scores of some queries (rows) with some keys (columns) of one head.
struct ScoreTile {
  int64_t keys;        // n, the entries of whole rows
  int64_t query, key;  // those of s(0, 0)
  int head;
  std::span<const float* const> parameters;  // as AttentionInput::parameters
  Matrix s;
  const uint8_t* kept;  // of attention dropout: bit j % 8 of byte j / 8 is entry j of a row; null: all are kept
  int64_t kept_stride;  // bytes between rows

  const uint8_t* row_kept(int64_t i) const { return kept == nullptr ? nullptr : kept + i * kept_stride; }
};

class ScoreActivation {
 public:
  virtual ~ScoreActivation() = default;

  // Whether tiles have to be whole rows: where weights depend on more of a row than what statistics gathered tile after
  // tile can tell.
  virtual bool whole_rows() const { return false; }

  // Floats a row that forward leaves for backward, at least 1. After forward_end the first is the row's factor.
  virtual int statistics() const = 0;

  // Forward of a block of rows: begin, then its tiles in the order of the keys, then end. statistics (rows,
  // statistics()), here and below.
  virtual void forward_begin(const ScoreTile& rows, float* statistics) const {}
  // s: scores x_j -> unscaled weights e_j, with P_j = statistics[0] * e_j at the end, and 0 where entries are dropped
  // (after they have counted in the statistics). The driver applies that factor to the output (D numbers) instead of
  // the row (n numbers). earlier (rows), 1 on entry: what the e_j of earlier tiles are to be multiplied with; below 1
  // where a running maximum has grown.
  virtual void forward(const ScoreTile& tile, float* statistics, float* earlier) const = 0;
  virtual void forward_end(const ScoreTile& rows, float* statistics) const = 0;

  // s: scores x_j -> e_j again, as they stand at the end of forward, 0 where dropped. g: statistics[0] * dL/dP'_j of
  // the weights P' after dropout, without its scale -> dL/dx_j. row_dots (rows): sum_j P'_j dL/dP'_j over whole rows.
  // d_parameters as AttentionGradients::d_parameters, added to.
  virtual void backward(const ScoreTile& tile, const float* statistics, const float* row_dots, Matrix g,
                        std::span<float* const> d_parameters) const = 0;
};

}  // namespace lra
