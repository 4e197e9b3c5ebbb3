// How numbers are compared in all tests: every tolerance comes from one function, and a comparison of nothing, of
// different sizes or with NaN fails. A failure prints the worst place and a line that runs this test alone.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace lra {

enum class NumberType { kBfloat16, kFloat32, kFloat64 };

// Absolute error allowed to a value computed in `type` by sums of up to `reduction_length` terms (1: elementwise),
// where values or terms are about as large as `magnitude`: (16 + length) roundings of it. The 16 stands for the
// elementary operations and functions around the sum. kBfloat16: terms are products of numbers that were rounded to 8
// bits, sums are float32: 32 of those roundings, however long the sum, since they are as often up as down.
double tolerance(NumberType type, int64_t reduction_length, double magnitude);

// Largest |x|, what tolerance() takes as magnitude; 0 of nothing.
double largest(std::span<const float> x);
double largest(std::span<const double> x);

// What is wrong with `actual`, one line, or "" when every |actual - expected| <= tolerance. Infinities must agree.
std::string difference(std::span<const float> actual, std::span<const double> expected, double tolerance);
std::string difference(std::span<const double> actual, std::span<const double> expected, double tolerance);
std::string difference(std::span<const float> actual, std::span<const float> expected, double tolerance);

// Fails the running test with `what`, difference() and a line that repeats it.
void expect_close(std::span<const float> actual, std::span<const double> expected, double tolerance,
                  const std::string& what);
void expect_close(std::span<const double> actual, std::span<const double> expected, double tolerance,
                  const std::string& what);
void expect_close(std::span<const float> actual, std::span<const float> expected, double tolerance,
                  const std::string& what);

// "program --gtest_filter=Suite.Test" of the running test.
std::string repro_line();

}  // namespace lra
