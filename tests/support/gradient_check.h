// Gradients against central differences (f(x + h) - f(x - h)) / 2h, in double.
#pragma once

#include <functional>
#include <span>
#include <string>

namespace lra {

// `loss` reads x; x is changed for the differences and left as it was. Returns what is wrong with `gradient`, or "".
// An error up to 1e-7 of (largest gradient entry + |loss|) is allowed: h = 1e-5 leaves about 1e-10 times the third
// derivative, and rounding about 1e-11 |loss|.

// Every entry by itself: 2 losses an entry.
std::string gradient_entry_difference(const std::function<double()>& loss, std::span<double> x,
                                      std::span<const double> gradient);
// The slope along random directions of length 1: 2 losses a direction.
std::string gradient_direction_difference(const std::function<double()>& loss, std::span<double> x,
                                          std::span<const double> gradient, int directions = 4);

// Fails the running test on the first of both that finds something.
void expect_gradient(const std::function<double()>& loss, std::span<double> x, std::span<const double> gradient,
                     const std::string& what);

}  // namespace lra
