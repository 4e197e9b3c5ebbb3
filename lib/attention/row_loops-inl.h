// Loops over one row in vectors, with a masked vector for what is left: included once a Highway target.
// A body is called as body(access, j) for the entries from j on; access loads and stores one vector of them, and knows
// which of them dropout keeps.

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

// Dropout of the entries j … of a row; without bits all are kept.
template <bool kSome>
struct Kept {
  const uint8_t* bits;

  HWY_INLINE RowVector keep(RowVector v, int64_t j) const {
    if constexpr (!kSome) return v;
    if constexpr (hn::MaxLanes(RowTag()) >= 8) {
      return hn::IfThenElseZero(hn::LoadMaskBits(RowTag(), bits + j / 8), v);
    } else {
      const uint8_t byte[8] = {static_cast<uint8_t>(bits[j / 8] >> (j % 8))};
      return hn::IfThenElseZero(hn::LoadMaskBits(RowTag(), byte), v);
    }
  }
};

// A whole vector of entries.
template <bool kSome>
struct WholeVector {
  Kept<kSome> kept;
  HWY_INLINE RowVector load(const float* p, float fill) const { return hn::LoadU(RowTag(), p); }
  HWY_INLINE void store(RowVector v, float* p) const { hn::StoreU(v, RowTag(), p); }
  // v where there are entries, 0 (or fill) elsewhere.
  HWY_INLINE RowVector only(RowVector v) const { return v; }
  HWY_INLINE RowVector only(RowVector v, float fill) const { return v; }
  // v where dropout keeps the entries from j on, 0 elsewhere.
  HWY_INLINE RowVector keep(RowVector v, int64_t j) const { return kept.keep(v, j); }
};

// The last few entries; lanes beyond them load as `fill` and are not stored.
template <bool kSome>
struct PartVector {
  Kept<kSome> kept;
  int64_t count;

  // Not all instruction sets can leave memory behind the entries alone: those go through a buffer.
  HWY_INLINE RowVector load(const float* p, float fill) const {
#if HWY_MEM_OPS_MIGHT_FAULT
    HWY_ALIGN float buffer[hn::MaxLanes(RowTag())];
    for (size_t i = 0; i < hn::Lanes(RowTag()); ++i) buffer[i] = static_cast<int64_t>(i) < count ? p[i] : fill;
    return hn::Load(RowTag(), buffer);
#else
    return hn::IfThenElse(mask(), hn::MaskedLoad(mask(), RowTag(), p), hn::Set(RowTag(), fill));
#endif
  }
  HWY_INLINE void store(RowVector v, float* p) const {
#if HWY_MEM_OPS_MIGHT_FAULT
    HWY_ALIGN float buffer[hn::MaxLanes(RowTag())];
    hn::Store(v, RowTag(), buffer);
    for (int64_t i = 0; i < count; ++i) p[i] = buffer[i];
#else
    hn::BlendedStore(v, mask(), RowTag(), p);
#endif
  }
  HWY_INLINE RowVector only(RowVector v) const { return hn::IfThenElseZero(mask(), v); }
  HWY_INLINE RowVector only(RowVector v, float fill) const {
    return hn::IfThenElse(mask(), v, hn::Set(RowTag(), fill));
  }
  HWY_INLINE RowVector keep(RowVector v, int64_t j) const { return kept.keep(v, j); }

 private:
  HWY_INLINE hn::Mask<RowTag> mask() const { return hn::FirstN(RowTag(), static_cast<size_t>(count)); }
};

template <bool kSome, class Body>
HWY_INLINE void for_each_vector_of(Kept<kSome> kept, int64_t n, const Body& body) {
  const RowTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t j = 0;
  for (; j + lanes <= n; j += lanes) body(WholeVector<kSome>{kept}, j);
  if (j < n) body(PartVector<kSome>{kept, n - j}, j);
}

// kept: the row's bits, or null where all are kept.
template <class Body>
HWY_INLINE void for_each_vector(const uint8_t* kept, int64_t n, const Body& body) {
  if (kept == nullptr) {
    for_each_vector_of(Kept<false>{nullptr}, n, body);
  } else {
    for_each_vector_of(Kept<true>{kept}, n, body);
  }
}

template <class Body>
HWY_INLINE void for_each_vector(int64_t n, const Body& body) {
  for_each_vector_of(Kept<false>{nullptr}, n, body);
}

// The largest of x (n) and `least`, in every lane. Four at a time: a maximum takes as long as four can be begun.
HWY_INLINE RowVector max_of(int64_t n, const float* x, RowVector least) {
  const RowTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  RowVector top0 = least, top1 = least, top2 = least, top3 = least;
  int64_t first = 0;
  for (; first + 4 * lanes <= n; first += 4 * lanes) {
    top0 = hn::Max(top0, hn::LoadU(d, x + first));
    top1 = hn::Max(top1, hn::LoadU(d, x + first + lanes));
    top2 = hn::Max(top2, hn::LoadU(d, x + first + 2 * lanes));
    top3 = hn::Max(top3, hn::LoadU(d, x + first + 3 * lanes));
  }
  for_each_vector(n - first, [&](auto access, int64_t j) HWY_ATTR {
    top0 = hn::Max(top0, access.load(x + first + j, hwy::LowestValue<float>()));
  });
  return hn::MaxOfLanes(d, hn::Max(hn::Max(top0, top1), hn::Max(top2, top3)));
}
HWY_INLINE RowVector max_of(int64_t n, const float* x) {
  return max_of(n, x, hn::Set(RowTag(), hwy::LowestValue<float>()));
}

// Smallest and largest of x (n).
HWY_INLINE void ends_of(int64_t n, const float* x, float* min, float* max) {
  const RowTag d;
  RowVector top = hn::Set(d, hwy::LowestValue<float>()), bottom = hn::Set(d, hwy::HighestValue<float>());
  for_each_vector(n, [&](auto access, int64_t j) HWY_ATTR {
    top = hn::Max(top, access.load(x + j, hwy::LowestValue<float>()));
    bottom = hn::Min(bottom, access.load(x + j, hwy::HighestValue<float>()));
  });
  *max = hn::GetLane(hn::MaxOfLanes(d, top));
  *min = hn::GetLane(hn::MinOfLanes(d, bottom));
}

HWY_INLINE float sum_of(RowVector v) { return hn::GetLane(hn::SumOfLanes(RowTag(), v)); }

}  // namespace HWY_NAMESPACE
}  // namespace lra
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
