// In which numbers the products of a model are computed.
#pragma once

#include <string_view>

namespace lra {

enum class Precision {
  kFloat32,
  // Operands of the encoder's products are rounded to bfloat16 (8 bits of mantissa, the exponents of float32), sums are
  // float32; so are statistics, elementwise functions, the classifier's head, weights and optimizer
  // (lib/ops/bfloat16.h).
  kBfloat16
};

// "float32" or "bfloat16".
inline Precision precision_named(std::string_view name) {
  return name == "bfloat16" ? Precision::kBfloat16 : Precision::kFloat32;
}

}  // namespace lra
