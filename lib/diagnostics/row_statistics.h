// Sums over one row of attention weights that all norms are made of, vectorised: a row is visited once and gone.
// Internal to this room.
#pragma once

#include <cstdint>
#include <span>

namespace lra {

struct RowStatistics {
  double square_sum = 0.0;    // Σ p²
  double absolute_sum = 0.0;  // Σ |p|
  double entropy = 0.0;       // of |p| / Σ |p|, nats; 0 of a row of zeros
  double largest = 0.0;       // max |p|
  int64_t negative = 0;       // how many p < 0
};

RowStatistics row_statistics(std::span<const float> weights);

// max |x|, 0 of nothing.
double largest_magnitude(std::span<const float> x);

}  // namespace lra
