// The linear forms of nap and inline (lib/attention/centred_linear.h) on a device.
#pragma once

#include <memory>

#include "lib/device/attention.h"

namespace lra::device {

std::unique_ptr<Attention> inline_linear(const AttentionShape& shape);
// Parameters: gain (H), bias (H).
std::unique_ptr<Attention> nap_linear(const AttentionShape& shape);

}  // namespace lra::device
