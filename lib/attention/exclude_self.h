// The modifier +xsa: each output loses its part along the token's own value, z_i = y_i - (y_i·v_i) v_i / |v_i|² a head,
// |v_i|² at least 1e-8 (arXiv 2603.09078).
#pragma once

#include "lib/attention/attention_ref.h"
#include "lib/attention/output_map.h"

namespace lra {

std::unique_ptr<OutputMap> exclude_self(const AttentionShape& shape);

namespace ref {
// out (N, H*D) in place.
void exclude_self(const AttentionProblem& problem, Row& out);
}  // namespace ref

}  // namespace lra
