// The options --backend and --precision: where a run's batches are computed.
#pragma once

#include <memory>
#include <string>

#include "lib/device/batch_model.h"

namespace lra {

struct BackendRequest {
  std::string backend, precision;  // as the options have them
  int ranks = 1;
};

// Null for cpu. UsageError for what the backend does not do, InputError where there is no device.
std::unique_ptr<BatchModel> make_backend(const BackendRequest& request, const ModelConfig& config);

// That of products on the host, which has none to do where there is a device.
Precision host_precision(const std::string& precision, const BatchModel* device);

}  // namespace lra
