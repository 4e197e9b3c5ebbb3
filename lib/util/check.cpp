#include "lib/util/check.h"

namespace lra {

std::string shown(std::string_view bytes, size_t longest) {
  std::string result;
  for (const char c : bytes.substr(0, longest)) {
    if (c >= 0x20 && c < 0x7f) {
      result += c;
    } else {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return bytes.size() > longest ? result + "..." : result;
}

}  // namespace lra
