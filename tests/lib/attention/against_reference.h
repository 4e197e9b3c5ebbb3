// A kernel's outputs and gradients against the plain reference in double and its central differences.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/lib/attention/attention_problem.h"
#include "tests/support/compare.h"

namespace lra {

// What of a result is held to the reference: the error allowed to numbers like `wanted`. Scores err by the length of a
// head; a power multiplies that error, the sums over keys add theirs. Where terms of about 1 cancel (a softmax over one
// key), what is left of them counts.
inline double allowed(const Problem& p, double magnitude) {
  return tolerance(p.precision == Precision::kFloat32 ? NumberType::kFloat32 : NumberType::kBfloat16,
                   p.n + 8 * p.shape.head_dim, std::max(magnitude, 1.0));
}

// One number that the loss depends on, in double, and its gradient as computed.
struct Coordinate {
  double* at;
  float gradient;
  std::string name;
};

inline std::vector<Coordinate> coordinates(DoubleProblem& expected, const Problem& p, const Result& got) {
  std::vector<Coordinate> all;
  const char* const names[] = {"dq", "dk", "dv", "dx"};
  for (size_t i = 0; i < expected.inputs.size(); ++i) {
    const auto column = static_cast<int64_t>(i) % (4 * p.width());
    all.push_back({&expected.inputs[i], got.d_inputs[i], names[column / p.width()]});
  }
  for (size_t t = 0; t < got.d_parameters.size(); ++t) {
    if (!p.kernel->parameters()[t].trained) continue;
    for (size_t i = 0; i < got.d_parameters[t].size(); ++i) {
      all.push_back({&expected.problem.parameters[t][i], got.d_parameters[t][i], p.kernel->parameters()[t].name});
    }
  }
  return all;
}

// What a rounding of every input moves a number by: how far float32 may be off where a row is ill-conditioned (a sum of
// sines near 0, say). Asked only where the usual allowance does not do.
inline double moved_by_rounding(DoubleProblem& problem, const std::function<double()>& number) {
  const std::vector<double> start = problem.inputs;
  const double before = number();
  double most = 0.0;
  for (int draw = 0; draw < 4; ++draw) {
    Random random(draw, RandomStream::kData);
    for (size_t i = 0; i < start.size(); ++i)
      problem.inputs[i] = start[i] * (1.0 + (random.uniform() - 0.5) / (1 << 23));
    most = std::max(most, std::abs(number() - before));
  }
  problem.inputs = start;
  return 16.0 * most;
}

inline void expect_near(DoubleProblem& problem, double got, const std::function<double()>& number, double limit,
                        const std::string& what) {
  const double wanted = number();
  if (std::abs(got - wanted) <= limit) return;
  const double more = moved_by_rounding(problem, number);
  ASSERT_NEAR(got, wanted, limit + more) << what;
}

// The gradient against central differences of the reference's loss: along some random directions through all
// coordinates, in which a single wrong number shows, and along some coordinates alone.
inline void expect_gradient(const Problem& p, const Result& got, int directions, int singles, const std::string& what) {
  const DoubleProblem constants(p);
  DoubleProblem expected(p);
  expected.problem.constants = &constants.problem;
  const std::vector<Coordinate> all = coordinates(expected, p, got);
  double largest_gradient = 0.0;
  for (const Coordinate& c : all) {
    ASSERT_TRUE(std::isfinite(c.gradient)) << what << " " << c.name;
    largest_gradient = std::max(largest_gradient, std::abs(static_cast<double>(c.gradient)));
  }
  Random random(7, RandomStream::kData);
  const double h = 1e-6;
  const auto slope = [&](const std::vector<std::pair<size_t, double>>& direction) {
    const auto loss_at = [&](double distance) {
      std::vector<double> start;
      for (const auto& [i, step] : direction) {
        start.push_back(*all[i].at);
        *all[i].at += distance * step;
      }
      const double loss = expected.loss();
      for (size_t number = 0; number < direction.size(); ++number) *all[direction[number].first].at = start[number];
      return loss;
    };
    return (loss_at(h) - loss_at(-h)) / (2 * h);
  };
  for (int number = 0; number < directions; ++number) {
    std::vector<std::pair<size_t, double>> direction;
    double along = 0.0;
    for (size_t i = 0; i < all.size(); ++i) {
      direction.emplace_back(i, random.normal());
      along += direction.back().second * all[i].gradient;
    }
    // Errors of the entries add up like a random walk.
    const double limit = allowed(p, largest_gradient) * std::sqrt(static_cast<double>(all.size()));
    expect_near(
        expected, along, [&] { return slope(direction); }, limit, what + " direction " + std::to_string(number));
  }
  for (int number = 0; number < singles; ++number) {
    const size_t i = singles >= std::ssize(all) ? static_cast<size_t>(number) % all.size()
                                                : random.below(static_cast<uint32_t>(all.size()));
    expect_near(
        expected, all[i].gradient,
        [&] {
          return slope({{i, 1.0}});
        },
        allowed(p, largest_gradient), what + " " + all[i].name + " entry " + std::to_string(i));
  }
}

inline void expect_reference(const Problem& p, int directions, int singles, const std::string& target) {
  const std::string what = p.spec.canonical() + " N=" + std::to_string(p.n) + " D=" + std::to_string(p.shape.head_dim) +
                           " dropout=" + std::to_string(p.dropout) + (p.training ? "" : " evaluation") + " on " +
                           target;
  const Result got = run(p);
  DoubleProblem expected(p);
  const std::vector<double> out = expected.out();
  const double limit = allowed(p, largest(out));
  if (!difference(got.out, out, limit).empty()) {
    for (size_t i = 0; i < out.size(); ++i) {
      if (std::abs(got.out[i] - out[i]) <= limit) continue;
      expect_near(
          expected, got.out[i], [&] { return expected.out()[i]; }, limit, what + " out " + std::to_string(i));
    }
  }
  expect_gradient(p, got, directions, singles, what);
}

}  // namespace lra
