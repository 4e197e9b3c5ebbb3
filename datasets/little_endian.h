// Whole numbers in files of ours: little endian on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace lra {

template <class Integer>
void put(std::string& bytes, Integer value) {
  for (size_t i = 0; i < sizeof(Integer); ++i) bytes += static_cast<char>(static_cast<uint64_t>(value) >> (8 * i));
}

template <class Integer>
Integer get(const char* bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < sizeof(Integer); ++i) value |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  return static_cast<Integer>(value);
}

}  // namespace lra
