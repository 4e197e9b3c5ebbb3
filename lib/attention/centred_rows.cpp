#include "lib/attention/centred_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/attention/centred_rows.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h stands first.
#include <hwy/highway.h>

#include "lib/attention/row_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lra {
namespace HWY_NAMESPACE {

float row_mean(int64_t n, const float* x) {
  RowVector sum = hn::Zero(RowTag());
  for_each_vector(n, [&](auto access, int64_t j) HWY_ATTR { sum = hn::Add(sum, access.load(x + j, 0.0f)); });
  return sum_of(sum) / static_cast<float>(n);
}

// Σ (x - mean)².
float row_squares(int64_t n, const float* x, float mean) {
  const RowVector m = hn::Set(RowTag(), mean);
  RowVector sum = hn::Zero(RowTag());
  for_each_vector(n, [&](auto access, int64_t j) HWY_ATTR {
    const RowVector c = access.only(hn::Sub(access.load(x + j, 0.0f), m));
    sum = hn::MulAdd(c, c, sum);
  });
  return sum_of(sum);
}

// x -> factor (x - mean) + add, 0 where dropped.
void row_affine(const uint8_t* kept, int64_t n, float mean, float factor, float add, float* x) {
  const RowTag d;
  const RowVector m = hn::Set(d, mean), f = hn::Set(d, factor), a = hn::Set(d, add);
  for_each_vector(kept, n, [&](auto access, int64_t j) HWY_ATTR {
    access.store(access.keep(hn::MulAdd(f, hn::Sub(access.load(x + j, 0.0f), m), a), j), x + j);
  });
}

// Σ g and Σ g (x - mean) of the kept entries.
void row_sums(const uint8_t* kept, int64_t n, const float* x, float mean, const float* g, float* sum, float* along) {
  const RowTag d;
  const RowVector m = hn::Set(d, mean);
  RowVector s = hn::Zero(d), a = hn::Zero(d);
  for_each_vector(kept, n, [&](auto access, int64_t j) HWY_ATTR {
    const RowVector v = access.keep(access.load(g + j, 0.0f), j);
    s = hn::Add(s, v);
    a = hn::MulAdd(v, hn::Sub(access.load(x + j, 0.0f), m), a);
  });
  *sum = sum_of(s);
  *along = sum_of(a);
}

// g -> factor (g - mean_g) - share (x - mean).
void row_pull_back(const uint8_t* kept, int64_t n, const float* x, float mean, float factor, float mean_g, float share,
                   float* g) {
  const RowTag d;
  const RowVector m = hn::Set(d, mean), f = hn::Set(d, factor), mg = hn::Set(d, mean_g), sh = hn::Set(d, share);
  for_each_vector(kept, n, [&](auto access, int64_t j) HWY_ATTR {
    const RowVector v = access.keep(access.load(g + j, 0.0f), j), c = hn::Sub(access.load(x + j, 0.0f), m);
    access.store(hn::NegMulAdd(sh, c, hn::Mul(f, hn::Sub(v, mg))), g + j);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace lra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lra {

HWY_EXPORT(row_mean);
HWY_EXPORT(row_squares);
HWY_EXPORT(row_affine);
HWY_EXPORT(row_sums);
HWY_EXPORT(row_pull_back);

float row_mean(int64_t n, const float* x) { return HWY_DYNAMIC_DISPATCH(row_mean)(n, x); }

float row_squares(int64_t n, const float* x, float mean) { return HWY_DYNAMIC_DISPATCH(row_squares)(n, x, mean); }

void row_affine(const uint8_t* kept, int64_t n, float mean, float factor, float add, float* x) {
  HWY_DYNAMIC_DISPATCH(row_affine)(kept, n, mean, factor, add, x);
}

RowSums row_sums(const uint8_t* kept, int64_t n, const float* x, float mean, const float* g) {
  RowSums sums;
  HWY_DYNAMIC_DISPATCH(row_sums)(kept, n, x, mean, g, &sums.sum, &sums.along);
  return sums;
}

void row_pull_back(const uint8_t* kept, int64_t n, const float* x, float mean, float factor, float mean_g, float share,
                   float* g) {
  HWY_DYNAMIC_DISPATCH(row_pull_back)(kept, n, x, mean, factor, mean_g, share, g);
}

}  // namespace lra
#endif
