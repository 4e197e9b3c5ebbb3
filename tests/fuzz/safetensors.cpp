// The safetensors format, byte by byte.
#include "lib/tensor/safetensors.h"

#include "tests/fuzz/target.h"

namespace lra::fuzz {

void safetensors(Bytes bytes) {
  accepts([&] {
    const SafetensorsFile file = parse_safetensors(std::as_bytes(bytes), "input");
    size_t total = 0;
    for (const auto& [name, tensor] : file.tensors) {
      require(tensor.elements() >= 0 && tensor.bytes.size() == 4 * static_cast<size_t>(tensor.elements()),
              "a tensor does not fill its shape");
      if (tensor.dtype == "F32") {
        require(tensor.floats().size() == static_cast<size_t>(tensor.elements()), "floats are missing");
      } else {
        require(tensor.ints().size() == static_cast<size_t>(tensor.elements()), "integers are missing");
      }
      total += tensor.bytes.size();
    }
    require(total <= bytes.size(), "more data than the file holds");
  });
}

}  // namespace lra::fuzz
