// Rows of entmax, for families that project what they have made of a row (prox_max.cpp). Formulas: entmax.cpp.
#pragma once

#include <cstdint>

#include "lib/attention/attention_ref.h"

namespace lra {

constexpr int64_t kEntmaxSlack = 64;  // floats of scratch beyond n: a whole vector is written

// s (n): scores -> weights, 0 where dropped (kept as ScoreTile::row_kept). scratch (n + kEntmaxSlack). statistics: 1,
// τ.
void entmax_row(float alpha, const uint8_t* kept, int64_t n, float* s, float* scratch, float* statistics);
// s as above again; g: gradient of the weights -> of the scores. Returns dL/dα if it is asked for.
float entmax_row_backward(float alpha, bool for_alpha, const uint8_t* kept, int64_t n, const float* statistics,
                          float* s, float* g);

namespace ref {
Row entmax(const Row& x, double alpha);
}  // namespace ref

}  // namespace lra
