// Loops over one row in vectors, with a masked vector for what is left: included once a Highway target.
// A body is called as body(access, j) for the entries from j on; access loads and stores one vector of them.

// Per-target include guard
#if defined(LRA_ATTENTION_ROW_LOOPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LRA_ATTENTION_ROW_LOOPS_INL_H_
#undef LRA_ATTENTION_ROW_LOOPS_INL_H_
#else
#define LRA_ATTENTION_ROW_LOOPS_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace lra {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using RowTag = hn::ScalableTag<float>;
using RowVector = hn::Vec<RowTag>;

// A whole vector of entries.
struct WholeVector {
  HWY_INLINE RowVector load(const float* p, float fill) const { return hn::LoadU(RowTag(), p); }
  HWY_INLINE void store(RowVector v, float* p) const { hn::StoreU(v, RowTag(), p); }
  // v where there are entries, 0 elsewhere.
  HWY_INLINE RowVector only(RowVector v) const { return v; }
};

// The last few entries; lanes beyond them load as `fill` and are not stored.
struct PartVector {
  hn::Mask<RowTag> mask;
  HWY_INLINE RowVector load(const float* p, float fill) const {
    return hn::IfThenElse(mask, hn::MaskedLoad(mask, RowTag(), p), hn::Set(RowTag(), fill));
  }
  HWY_INLINE void store(RowVector v, float* p) const { hn::BlendedStore(v, mask, RowTag(), p); }
  HWY_INLINE RowVector only(RowVector v) const { return hn::IfThenElseZero(mask, v); }
};

template <class Body>
HWY_INLINE void for_each_vector(int64_t n, const Body& body) {
  const RowTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t j = 0;
  for (; j + lanes <= n; j += lanes) body(WholeVector(), j);
  if (j < n) body(PartVector{hn::FirstN(d, static_cast<size_t>(n - j))}, j);
}

}  // namespace HWY_NAMESPACE
}  // namespace lra
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
