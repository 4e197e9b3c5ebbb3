// The seam between attention families of the first kind, P = f(S, row statistics, n), and the driver that runs them.
// A family maps tiles of rows of scores to weights and back; it never sees padding (rows hold real keys only), and of
// dropout only the bits that the loops of row_loops-inl.h apply. All else is the driver's (tiled_kernel.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

#include "lib/attention/attention.h"

namespace lra {

// Scores of some queries (rows, at most kMostTileRows but for forward_begin and forward_end) with some keys (columns)
// of one head.
struct ScoreTile {
  int64_t tokens;      // N, of the sequence
  int64_t query, key;  // those of s(0, 0)
  int head;
  bool causal;                               // rows have the keys up to their query alone
  bool training;                             // as AttentionInput::training
  std::span<const float* const> parameters;  // as AttentionInput::parameters
  const float* context;                      // of the head, as prepare left it
  Matrix s;
  const uint8_t* kept;  // of attention dropout: bit j % 8 of byte j / 8 is entry j of a row; null: all are kept
  int64_t kept_stride;  // bytes between rows

  // n of row i, the entries of its whole row.
  int64_t keys(int64_t i) const { return causal ? query + i + 1 : tokens; }
  // Those of them that lie in this tile: its first columns(i) columns. What is behind them is nobody's to read or
  // write.
  int64_t columns(int64_t i) const { return causal ? std::clamp<int64_t>(keys(i) - key, 0, s.cols) : s.cols; }
  const uint8_t* row_kept(int64_t i) const { return kept == nullptr ? nullptr : kept + i * kept_stride; }
  // Row i as a tile of its own.
  ScoreTile row(int64_t i) const {
    ScoreTile one = *this;
    one.query += i;
    one.s = s.row_block(i, 1);
    one.kept = row_kept(i);
    return one;
  }
};

// Gradients that a family adds to while its rows are turned back.
struct RowGradients {
  std::span<float* const> parameters;  // twins of the parameters
  float* context;                      // twin of the context
};

class ScoreActivation {
 public:
  virtual ~ScoreActivation() = default;

  // Whether tiles have to be whole rows: where weights depend on more of a row than what statistics gathered tile after
  // tile can tell.
  virtual bool whole_rows() const { return false; }
  // Scores are this times q·k, D the width of a head.
  virtual double score_scale(int64_t head_dim) const;

  // Numbers that rows need besides their scores, of a head and the whole sequence (a number a token, say), made of the
  // inputs before the rows; and the way back: from the gradient of those numbers to those of the inputs (dq and dx are
  // added to) and of the parameters.
  virtual int64_t context_floats(int64_t tokens) const { return 0; }
  virtual void prepare(const AttentionInput& in, int head, float* context) const {}
  virtual void prepare_backward(const AttentionInput& in, int head, const float* context, const float* d_context,
                                const AttentionGradients& gradients) const {}

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
  virtual void backward(const ScoreTile& tile, const float* statistics, const float* row_dots, Matrix g,
                        const RowGradients& gradients) const = 0;

  // Σ_jk (∂p_j / ∂x_k)² of row i of a tile of whole rows, from its scores and weights (no dropout) and its statistics.
  virtual std::optional<double> jacobian_square(const ScoreTile& tile, int64_t i, const float* weights,
                                                const float* statistics) const = 0;
};

// Families whose P is f(S) through the tiled driver, with the option causal where it was given.
std::unique_ptr<AttentionKernel> make_tiled(const AttentionSpec& spec, const AttentionShape& shape,
                                            std::unique_ptr<ScoreActivation> activation,
                                            std::vector<KernelParameter> parameters = {});

}  // namespace lra
