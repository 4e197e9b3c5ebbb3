// Rows of the families that are affine in their scores once mean and deviation are known (nap.cpp, inline.cpp). kept:
// as ScoreTile::row_kept.
#pragma once

#include <cstdint>

namespace lra {

float row_mean(int64_t n, const float* x);
// Σ (x - mean)².
float row_squares(int64_t n, const float* x, float mean);
// x -> factor (x - mean) + add, 0 where dropped.
void row_affine(const uint8_t* kept, int64_t n, float mean, float factor, float add, float* x);

struct RowSums {
  float sum, along;
};
// Σ g and Σ g (x - mean) of the kept entries.
RowSums row_sums(const uint8_t* kept, int64_t n, const float* x, float mean, const float* g);
// g, where dropped taken as 0, -> factor (g - mean_g) - share (x - mean).
void row_pull_back(const uint8_t* kept, int64_t n, const float* x, float mean, float factor, float mean_g, float share,
                   float* g);

}  // namespace lra
