// lln-diag (lib/attention/lln_diag.cpp) on a device.
#pragma once

#include <memory>

#include "lib/device/attention.h"

namespace lra::device {

std::unique_ptr<Attention> make_lln_diag(const AttentionSpec& spec, const AttentionShape& shape);

}  // namespace lra::device
