#include "datasets/pathfinder/lanczos.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "lib/util/check.h"

namespace lra::pathfinder {
namespace {

constexpr int kBits = 22;  // of a weight: 255 times a sum of weights still fits into 32 bits
constexpr double kLobes = 3.0;

double normalized_sinc(double x) {
  if (x == 0.0) return 1.0;
  return std::sin(std::numbers::pi * x) / (std::numbers::pi * x);
}

double lanczos(double x) { return std::abs(x) < kLobes ? normalized_sinc(x) * normalized_sinc(x / kLobes) : 0.0; }

}  // namespace

LanczosReduction::LanczosReduction(int from, int to) : from_(from), to_(to) {
  check(to >= 1 && from >= to, "a reduction from {} to {} pixels", from, to);
  const double scale = static_cast<double>(from) / to;
  const double support = kLobes * scale;
  for (int o = 0; o < to; ++o) {
    const double center = (o + 0.5) * scale;
    const int begin = std::max(0, static_cast<int>(center - support + 0.5));
    const int end = std::min(from, static_cast<int>(center + support + 0.5));
    std::vector<double> exact;
    for (int i = begin; i < end; ++i) exact.push_back(lanczos((i + 0.5 - center) / scale));
    const double sum = std::accumulate(exact.begin(), exact.end(), 0.0);
    Taps taps{begin, {}};
    for (const double weight : exact) {
      taps.weights.push_back(static_cast<int32_t>(std::lround(weight / sum * (1 << kBits))));
    }
    taps_.push_back(std::move(taps));
  }
}

std::vector<uint8_t> LanczosReduction::reduce_rows(std::span<const uint8_t> picture, int rows) const {
  std::vector<uint8_t> turned(static_cast<size_t>(rows) * static_cast<size_t>(to_));
  for (int row = 0; row < rows; ++row) {
    const uint8_t* pixels = picture.data() + static_cast<size_t>(row) * static_cast<size_t>(from_);
    for (int o = 0; o < to_; ++o) {
      const Taps& taps = taps_[static_cast<size_t>(o)];
      int32_t sum = 1 << (kBits - 1);
      for (size_t k = 0; k < taps.weights.size(); ++k)
        sum += taps.weights[k] * pixels[taps.begin + static_cast<int>(k)];
      turned[static_cast<size_t>(o) * static_cast<size_t>(rows) + static_cast<size_t>(row)] =
          static_cast<uint8_t>(std::clamp(sum >> kBits, 0, 255));
    }
  }
  return turned;
}

std::vector<uint8_t> LanczosReduction::operator()(std::span<const uint8_t> picture) const {
  check(picture.size() == static_cast<size_t>(from_) * static_cast<size_t>(from_), "a picture of another size");
  return reduce_rows(reduce_rows(picture, from_), to_);
}

}  // namespace lra::pathfinder
