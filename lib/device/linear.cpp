#include "lib/device/ops.h"

namespace lra::device {

Product product(ConstMatrix a, Transpose ta, ConstMatrix b, Transpose tb, Matrix c, float alpha, float beta) {
  return {.m = c.rows,
          .n = c.cols,
          .k = ta == Transpose::kNo ? a.cols : a.rows,
          .a = a,
          .b = b,
          .c = c,
          .ta = ta,
          .tb = tb,
          .alpha = alpha,
          .beta = beta};
}

void linear_backward(Context c, ConstMatrix x, ConstMatrix weight, ConstMatrix dy, Matrix dx, Matrix d_weight,
                     float* d_bias, Write dx_write) {
  if (dy.rows == 0) return;
  const float beta = dx_write == Write::kAdd ? 1.0f : 0.0f;
  c.device.multiply(product(dy, Transpose::kYes, x, Transpose::kNo, d_weight, 1.0f, 1.0f));
  if (d_bias != nullptr) add_column_sums(c, dy, d_bias);
  if (!dx.empty()) c.device.multiply(product(dy, Transpose::kNo, weight, Transpose::kNo, dx, 1.0f, beta));
}

}  // namespace lra::device
