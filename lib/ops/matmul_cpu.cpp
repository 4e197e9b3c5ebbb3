// Matrix products by oneDNN's sgemm (its C interface is the same in versions 2 and 3). At the widths of these networks
// (64 … 512) it beats the matmul primitive, and needs no memory descriptors or primitives a call.
#include <dnnl.h>

#include "lib/ops/matmul.h"
#include "lib/util/check.h"

namespace lra {

void matmul(ConstMatrix a, Transpose ta, ConstMatrix b, Transpose tb, Matrix c, Write write, float alpha) {
  const int64_t m = ta == Transpose::kNo ? a.rows : a.cols;
  const int64_t k = ta == Transpose::kNo ? a.cols : a.rows;
  const int64_t k_of_b = tb == Transpose::kNo ? b.rows : b.cols;
  const int64_t n = tb == Transpose::kNo ? b.cols : b.rows;
  check(k == k_of_b && m == c.rows && n == c.cols, "matmul of ({}, {}) and ({}, {}) into ({}, {})", m, k, k_of_b, n,
        c.rows, c.cols);
  if (m == 0 || n == 0) return;
  if (k == 0) {
    if (write == Write::kOver) {
      for (int64_t row = 0; row < m; ++row) {
        for (int64_t col = 0; col < n; ++col) c.row(row)[col] = 0.0f;
      }
    }
    return;
  }
  const dnnl_status_t status =
      dnnl_sgemm(ta == Transpose::kNo ? 'N' : 'T', tb == Transpose::kNo ? 'N' : 'T', m, n, k, alpha, a.data, a.stride,
                 b.data, b.stride, write == Write::kOver ? 0.0f : 1.0f, c.data, c.stride);
  check(status == dnnl_success, "dnnl_sgemm ({}, {}, {}) fails with status {}", m, n, k, static_cast<int>(status));
}

}  // namespace lra
