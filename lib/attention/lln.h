// The linear log-normal kernel of lln.cpp, for what is built around it.
#pragma once

#include <memory>
#include <vector>

#include "lib/attention/attention.h"
#include "lib/attention/attention_ref.h"

namespace lra {

std::unique_ptr<AttentionKernel> make_lln(const AttentionSpec& spec, const AttentionShape& shape);

namespace ref {
// P of a head.
std::vector<Row> lln_weights(const AttentionProblem& problem, int head);
}  // namespace ref

}  // namespace lra
