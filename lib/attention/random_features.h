// What families with random features share: how many there are, and how directions are drawn.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>

#include "lib/attention/attention.h"

namespace lra {

// The option features=M; 0: floor(D ln D), at least 1.
AttentionOption random_features_option();
int64_t random_features(const AttentionSpec& spec, const AttentionShape& shape);
// UsageError where the count does not fit.
void validate_random_features(const AttentionSpec& spec);

// Rows of D numbers in blocks of D orthogonal ones, their lengths those of Gaussian vectors (Yu et al. 2016, arXiv
// 1610.09072): each row is N(0, I) by itself.
std::function<void(Random&, std::span<float>)> start_orthogonal(int64_t d);
// Such rows for a layer in a training step, a function of the step's dropout key: all examples of the step and its
// backward pass have the same.
void redraw_orthogonal(std::array<uint32_t, 2> dropout_key, int layer, int64_t d, std::span<float> rows);

}  // namespace lra
