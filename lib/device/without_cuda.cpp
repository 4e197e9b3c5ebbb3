// What stands in for a device in a build without CUDA.
#include "lib/device/batch_model.h"
#include "lib/util/check.h"

namespace lra {

std::unique_ptr<BatchModel> make_batch_model(const ModelConfig&, std::string_view, int) {
  throw InputError("--backend cuda: this program was built without CUDA; want one configured with -DLRA_CUDA=ON");
}

}  // namespace lra
