// Families that have a quadratic and an exact linear form. form=auto: for each sequence the cheaper one, the
// quadratic one where weights are dropped (the linear form has no entries of P to drop).
#pragma once

#include <memory>

#include "lib/attention/attention.h"

namespace lra {

// linear for sequences of so many tokens that it takes fewer operations, without gradients. Both have the same
// parameters.
std::unique_ptr<AttentionKernel> choose_form(std::unique_ptr<AttentionKernel> quadratic,
                                             std::unique_ptr<AttentionKernel> linear);

// linear, with norms and maps of quadratic, which has the same parameters.
std::unique_ptr<AttentionKernel> with_weights_of(std::unique_ptr<AttentionKernel> quadratic,
                                                 std::unique_ptr<AttentionKernel> linear);

}  // namespace lra
