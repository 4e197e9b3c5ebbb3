// Functions of one score and their slopes, written once: for the references and Jacobians in double, and for the
// kernels of lib/device in float. The CPU's kernels have their own, in vectors. Formulas: polynomial (arXiv
// 2410.18613), sigmoid (2409.04431), relu-n and rela (2309.08586, 2104.07012), the periodic families (2108.07153).
#pragma once

#include <cmath>

#include "lib/util/host_device.h"

namespace lra {

template <class T>
struct ScoreValue {
  T value, slope;
};

template <class T>
LRA_BOTH T whole_power(T x, int power) {
  T y = 1;
  for (T square = x; power > 0; power /= 2, square *= square) {
    if (power % 2 == 1) y *= square;
  }
  return y;
}

// factor x^power, power at least 1
template <class T>
struct PowerMap {
  int power;
  T factor;
  LRA_BOTH ScoreValue<T> operator()(T x) const {
    const T lower = factor * whole_power(x, power - 1);
    return {lower * x, lower * static_cast<T>(power)};
  }
};

// factor σ(x + bias)
template <class T>
struct SigmoidMap {
  T factor, bias;
  LRA_BOTH ScoreValue<T> operator()(T x) const {
    const T one = 1, u = x + bias, e = std::exp(-std::abs(u));
    const T p = (u < 0 ? e : one) / (one + e), other = (u < 0 ? one : e) / (one + e);
    return {factor * p, factor * p * other};
  }
};

// factor relu(x), squared or not
template <class T>
struct ReluMap {
  bool square;
  T factor;
  LRA_BOTH ScoreValue<T> operator()(T x) const {
    if (!(x > 0)) return {0, 0};
    return square ? ScoreValue<T>{factor * x * x, factor * 2 * x} : ScoreValue<T>{factor * x, factor};
  }
};

// a(x) of the periodic families; omega is kSinConst's.
enum class Wave { kSin, kSinConst, kCos, kSin2, kSin2Shift, kSiren };
constexpr float kSirenFloor = 1e-3f;  // of 1 - sin x

template <class T>
struct WaveMap {
  Wave wave;
  T omega;

  LRA_BOTH T value(T x) const {
    const T one = 1, half = one / 2;
    switch (wave) {
      case Wave::kSin: return std::sin(x);
      case Wave::kSinConst: return one + std::sin(omega * x);
      case Wave::kCos: return std::cos(x);
      case Wave::kSin2: return std::sin(x) * std::sin(x);
      case Wave::kSin2Shift: return half + half * std::sin(2 * x);
      case Wave::kSiren: break;
    }
    const T sine = std::sin(x), less = one - sine, floor = kSirenFloor;
    return (one + sine) / (2 * (less < floor ? floor : less));
  }
  LRA_BOTH T slope(T x) const {
    switch (wave) {
      case Wave::kSin: return std::cos(x);
      case Wave::kSinConst: return omega * std::cos(omega * x);
      case Wave::kCos: return -std::sin(x);
      case Wave::kSin2: return std::sin(2 * x);
      case Wave::kSin2Shift: return std::cos(2 * x);
      case Wave::kSiren: break;
    }
    const T one = 1, less = one - std::sin(x), floor = kSirenFloor;
    return std::cos(x) / (less < floor ? 2 * floor : less * less);
  }
};

}  // namespace lra
