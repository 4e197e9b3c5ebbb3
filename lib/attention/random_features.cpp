#include "lib/attention/random_features.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "lib/util/check.h"

namespace lra {
namespace {

constexpr int64_t kMostFeatures = 65536;

std::vector<double> gaussian(Random& random, int64_t d) {
  std::vector<double> x(static_cast<size_t>(d));
  for (double& value : x) value = random.normal();
  return x;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0.0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Gaussian vectors made orthogonal to those before them, and of length 1: uniform among all such bases.
std::vector<std::vector<double>> orthonormal(Random& random, int64_t d) {
  std::vector<std::vector<double>> basis;
  while (std::ssize(basis) < d) {
    std::vector<double> x = gaussian(random, d);
    const double before = dot(x, x);
    for (int pass = 0; pass < 2; ++pass) {  // the second removes what rounding left
      for (const std::vector<double>& other : basis) {
        const double along = dot(x, other);
        for (size_t i = 0; i < x.size(); ++i) x[i] -= along * other[i];
      }
    }
    const double length = std::sqrt(dot(x, x));
    if (length <= 1e-8 * std::sqrt(before)) continue;  // nothing but rounding is left
    for (double& value : x) value /= length;
    basis.push_back(std::move(x));
  }
  return basis;
}

}  // namespace

AttentionOption random_features_option() {
  return {"features", AttentionOption::Kind::kInteger, "0", {}, "number of random features; 0: ⌊D ln D⌋"};
}

int64_t random_features(const AttentionSpec& spec, const AttentionShape& shape) {
  const int64_t features = spec.integer("features");
  if (features > 0) return features;
  return std::max<int64_t>(1, static_cast<int64_t>(shape.head_dim * std::log(static_cast<double>(shape.head_dim))));
}

void validate_random_features(const AttentionSpec& spec) {
  const int64_t features = spec.integer("features");
  if (features < 0 || features > kMostFeatures) {
    throw UsageError("attention {}: features={} must be 0 (chosen by the width of a head) to {}", spec.name, features,
                     kMostFeatures);
  }
}

std::function<void(Random&, std::span<float>)> start_orthogonal(int64_t d) {
  return [d](Random& random, std::span<float> rows) {
    std::vector<std::vector<double>> basis;
    for (int64_t first = 0; first < std::ssize(rows); first += d) {
      const int64_t in_block = first / d % d;
      if (in_block == 0) basis = orthonormal(random, d);
      const std::vector<double> length_of = gaussian(random, d);
      const double length = std::sqrt(dot(length_of, length_of));
      for (int64_t c = 0; c < d; ++c) rows[first + c] = static_cast<float>(length * basis[in_block][c]);
    }
  };
}

void redraw_orthogonal(std::array<uint32_t, 2> dropout_key, int layer, int64_t d, std::span<float> rows) {
  Random random(static_cast<uint64_t>(dropout_key[0]) << 32 | dropout_key[1], RandomStream::kDropout,
                static_cast<uint64_t>(layer));
  start_orthogonal(d)(random, rows);
}

}  // namespace lra
