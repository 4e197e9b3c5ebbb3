#include "tasks/run/backend.h"

#include "lib/ops/bfloat16.h"
#include "lib/training/ranks.h"
#include "lib/util/check.h"

namespace lra {

std::unique_ptr<BatchModel> make_backend(const std::string& backend, const std::string& precision,
                                         const ModelConfig& config) {
  if (backend == "cuda") return make_batch_model(config, precision, Ranks::number_on_this_machine());
  if (precision == "tf32") throw UsageError("--precision tf32: only with --backend cuda");
  if (precision_named(precision) == Precision::kBfloat16) require_bfloat16();
  return nullptr;
}

Precision host_precision(const std::string& precision, const BatchModel* device) {
  return device == nullptr ? precision_named(precision) : Precision::kFloat32;
}

}  // namespace lra
