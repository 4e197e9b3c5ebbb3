// bfloat16 products by the tile instructions of AMX, where a processor has them: TDPBF16PS takes 16 rows of pairs and
// 16 pairs of rows at once, the layouts of lib/ops/bfloat16.h as they are. Internal to bfloat16_x86.cpp.
#pragma once

#include "lib/ops/bfloat16.h"

namespace lra {

// C (M, N) = A Xᵀ, N whole panels of 32 columns: operands as in bfloat16_matmul_panels, from the panel of column 0 of
// C.
void amx_matmul_panels(ConstPairMatrix a, const Bfloat16Pair* panels, Matrix c);
// C (M, N) = or += op(A) B, as bfloat16_matmul.
void amx_matmul(ConstPairMatrix a, Transpose ta, ConstPairMatrix b, Matrix c, Write write);

}  // namespace lra
