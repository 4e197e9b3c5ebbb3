// form=auto of families that have a quadratic and an exact linear form: for each sequence the cheaper one, the
// quadratic one where weights are dropped (the linear form has no entries of P to drop).
#pragma once

#include <memory>

#include "lib/attention/attention.h"

namespace lra {

// linear for sequences longer than `above` tokens. Both have the same parameters.
std::unique_ptr<AttentionKernel> choose_form(std::unique_ptr<AttentionKernel> quadratic,
                                             std::unique_ptr<AttentionKernel> linear, int64_t above);

}  // namespace lra
