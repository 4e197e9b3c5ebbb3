// Damaged files for tests of readers: a few random changes, some of them to the bytes that mean something to the
// reader.
#pragma once

#include <string>
#include <string_view>

#include "lib/util/rng.h"

namespace lra {

inline std::string mutated(std::string bytes, std::string_view telling, Random& random) {
  const uint32_t changes = 1 + random.below(8);
  for (uint32_t i = 0; i < changes && !bytes.empty(); ++i) {
    const size_t at = random.below(static_cast<uint32_t>(bytes.size()));
    switch (random.below(5)) {
      case 0: bytes[at] = static_cast<char>(random.below(256)); break;
      case 1: bytes[at] = telling[random.below(static_cast<uint32_t>(telling.size()))]; break;
      case 2: bytes.erase(at, 1 + random.below(20)); break;
      case 3:
        bytes.insert(at, bytes.substr(random.below(static_cast<uint32_t>(bytes.size())), random.below(40)));
        break;
      default: bytes.resize(random.below(16) == 0 ? at : bytes.size()); break;
    }
  }
  return bytes;
}

}  // namespace lra
