#include "lib/attention/attention.h"

namespace lra {

double AttentionKernel::dense_flops(int64_t tokens, bool training) const {
  const double n = static_cast<double>(tokens);
  return (training ? 14.0 : 4.0) * n * n * shape_.head_dim * shape_.heads;
}

}  // namespace lra
