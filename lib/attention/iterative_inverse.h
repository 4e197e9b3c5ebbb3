// The approximate inverse of the Nyströmformer (Xiong et al. 2021, arXiv 2102.03902; Razavi et al. 2014):
//   Z ← Z (13 I - MZ (15 I - MZ (7 I - MZ))) / 4
// in six steps from M^T over its largest column sum; and the way back through all of it, that maximum too.
#pragma once

#include "lib/tensor/arena.h"
#include "lib/tensor/view.h"

namespace lra {

class IterativeInverse {
 public:
  static constexpr int kSteps = 6;

  // M (L, L), entries above 0. It and the arena's memory have to last.
  IterativeInverse(ConstMatrix m, Arena& arena);

  ConstMatrix result() const { return z_[kSteps]; }
  // dm (L, L) += the gradient of M from dz, that of the result, which is used up.
  void backward(Matrix dz, Matrix dm, Arena& arena) const;

 private:
  Matrix square(Arena& arena) const { return arena.matrix(m_.rows, m_.rows); }
  // x = M Z and the three brackets, from the inside.
  void brackets_of(int step) const;

  ConstMatrix m_;
  Matrix x_, b1_, b2_, b3_;  // scratch
  Matrix z_[kSteps + 1];
  float* column_sums_;
  float largest_ = 0.0f;
};

}  // namespace lra
