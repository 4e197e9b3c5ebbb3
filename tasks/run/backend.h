// The options --backend and --precision: where a run's batches are computed.
#pragma once

#include <memory>
#include <string>

#include "lib/device/batch_model.h"

namespace lra {

// Null for cpu; of several processes on a machine each has a device of its own, as far as there are. UsageError for
// what the backend does not do, InputError where there is no device, or the processor can't compute in this precision.
std::unique_ptr<BatchModel> make_backend(const std::string& backend, const std::string& precision,
                                         const ModelConfig& config);

// That of products on the host, which has none to do where there is a device.
Precision host_precision(const std::string& precision, const BatchModel* device);

}  // namespace lra
