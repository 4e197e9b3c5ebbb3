#include "tasks/run/backend.h"

#include "lib/util/check.h"

namespace lra {

std::unique_ptr<BatchModel> make_backend(const BackendRequest& request, const ModelConfig& config) {
  if (request.backend != "cuda") {
    if (request.precision == "tf32") throw UsageError("--precision tf32: only with --backend cuda");
    return nullptr;
  }
  if (request.ranks > 1) throw UsageError("--backend cuda: done by one process, not by {} ranks", request.ranks);
  return make_batch_model(config, request.precision);
}

Precision host_precision(const std::string& precision, const BatchModel* device) {
  return device == nullptr ? precision_named(precision) : Precision::kFloat32;
}

}  // namespace lra
