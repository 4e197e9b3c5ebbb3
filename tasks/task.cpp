#include "tasks/task.h"

#include <fmt/format.h>

namespace lra {

std::string Task::text(std::span<const int32_t> ids) const {
  // Bytes, as Text and Retrieval number them: id = byte + 1.
  std::string text;
  for (const int32_t id : ids) {
    const int byte = id - 1;
    if (byte >= 0x20 && byte < 0x7f && byte != '\\') {
      text += static_cast<char>(byte);
    } else {
      text += fmt::format("\\x{:02x}", byte);
    }
  }
  return text;
}

}  // namespace lra
