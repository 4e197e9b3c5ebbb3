// Dropout decisions in vectors (Highway, compiled once a target): the 16 Philox4x32-7 blocks (Salmon et al. 2011) of a
// group of 128 columns, as lib/ops/dropout.h defines them, side by side in lanes.
//
// Included from inside foreach_target files, after hwy/highway.h; the functions lie in lra::HWY_NAMESPACE.
#if defined(LRA_OPS_PHILOX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LRA_OPS_PHILOX_INL_H_
#undef LRA_OPS_PHILOX_INL_H_
#else
#define LRA_OPS_PHILOX_INL_H_
#endif

#include <cstdint>
#include <cstring>

#include "hwy/highway.h"
#include "lib/ops/dropout.h"

HWY_BEFORE_NAMESPACE();
namespace lra {
namespace HWY_NAMESPACE {

constexpr uint32_t kPhiloxMultiplier0 = 0xD2511F53u, kPhiloxMultiplier1 = 0xCD9E8D57u;
constexpr uint32_t kPhiloxWeyl0 = 0x9E3779B9u, kPhiloxWeyl1 = 0xBB67AE85u;

// Calls keep(column, mask) for every run of Lanes(d) columns in the group (column from 0 to 127, in no special order);
// lane i of mask = column + i is kept. d: float lanes, at most 16 of them. threshold: dropout_threshold of the rate, at
// least 1. The key comes by value: behind a reference its words would be read again after every store of mask bytes.
//
// Words live in 64-bit lanes, of which a 32 x 32 -> 64 bit product reads the low half only; so a product is at once
// the next word (low half) and, shifted, the high half: six instructions a round for as many blocks as 64-bit lanes.
#if HWY_TARGET != HWY_SCALAR
template <class D, class Keep>
HWY_INLINE void dropout_group(D d, const DropoutKey key, uint32_t threshold, uint32_t row, uint32_t group, Keep keep) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::RebindToUnsigned<D> du;
  const hn::RebindToSigned<D> di;
  const hn::RepartitionToWide<decltype(du)> dw;
  using W = hn::VFromD<decltype(dw)>;
  const uint32_t lanes = static_cast<uint32_t>(hn::Lanes(d));
  const auto m0 = hn::Set(du, kPhiloxMultiplier0);
  const auto m1 = hn::Set(du, kPhiloxMultiplier1);
  const auto multiply = [&](auto m, W w) HWY_ATTR { return hn::MulEven(hn::BitCast(du, w), m); };
  const auto limit = hn::Set(di, static_cast<int32_t>(threshold) - 1);

  // Round 1 by hand: words 1 to 3 of the counter are the same in all lanes.
  const uint64_t p1 = static_cast<uint64_t>(kPhiloxMultiplier1) * key.site;
  const W word0 = hn::Set(dw, static_cast<uint32_t>(p1 >> 32) ^ row ^ key.key[0]);
  const W word1 = hn::Set(dw, static_cast<uint32_t>(p1));
  const W after_high = hn::Set(dw, key.example ^ key.key[1]);

  for (uint32_t first = 0; first < 16; first += lanes) {
    const uint32_t base = 16 * group + first;
    // Blocks base, base + 2, … and base + 1, base + 3, …: together they fill the lanes of 32 bits.
    const W even = hn::BitCast(dw, hn::Add(hn::Iota(du, 0), hn::Set(du, base)));
    const W odd = hn::ShiftRight<32>(even);
    W p0_even = multiply(m0, even), p0_odd = multiply(m0, odd);
    W a0 = word0, a1 = word1, a2 = hn::Xor(hn::ShiftRight<32>(p0_even), after_high), a3 = p0_even;
    W b0 = word0, b1 = word1, b2 = hn::Xor(hn::ShiftRight<32>(p0_odd), after_high), b3 = p0_odd;
    uint32_t k0 = key.key[0], k1 = key.key[1];
    for (int round = 1; round < 7; ++round) {
      k0 += kPhiloxWeyl0, k1 += kPhiloxWeyl1;
      const W vk0 = hn::Set(dw, k0), vk1 = hn::Set(dw, k1);
      const W pa0 = multiply(m0, a0), pa1 = multiply(m1, a2);
      const W pb0 = multiply(m0, b0), pb1 = multiply(m1, b2);
      a0 = hn::Xor3(hn::ShiftRight<32>(pa1), a1, vk0), a1 = pa1;
      a2 = hn::Xor3(hn::ShiftRight<32>(pa0), a3, vk1), a3 = pa0;
      b0 = hn::Xor3(hn::ShiftRight<32>(pb1), b1, vk0), b1 = pb1;
      b2 = hn::Xor3(hn::ShiftRight<32>(pb0), b3, vk1), b3 = pb0;
    }
    const auto decide = [&](uint32_t word, W a, W b) HWY_ATTR {
      const auto bits = hn::OddEven(hn::BitCast(du, hn::ShiftLeft<32>(b)), hn::BitCast(du, a));
      const auto low = hn::BitCast(di, hn::And(bits, hn::Set(du, 0xFFFFu)));
      const auto high = hn::BitCast(di, hn::ShiftRight<16>(bits));
      keep(32 * word + first, hn::RebindMask(d, hn::Gt(low, limit)));
      keep(32 * word + 16 + first, hn::RebindMask(d, hn::Gt(high, limit)));
    };
    decide(0, a0, b0);
    decide(1, a1, b1);
    decide(2, a2, b2);
    decide(3, a3, b3);
  }
}
#else
// One lane: the definition itself.
template <class D, class Keep>
HWY_INLINE void dropout_group(D d, const DropoutKey key, uint32_t threshold, uint32_t row, uint32_t group, Keep keep) {
  for (uint32_t lane = 0; lane < 16; ++lane) {
    uint32_t word[4] = {16 * group + lane, row, key.site, key.example};
    uint32_t k0 = key.key[0], k1 = key.key[1];
    for (int round = 0; round < 7; ++round, k0 += kPhiloxWeyl0, k1 += kPhiloxWeyl1) {
      const uint64_t p0 = static_cast<uint64_t>(kPhiloxMultiplier0) * word[0];
      const uint64_t p1 = static_cast<uint64_t>(kPhiloxMultiplier1) * word[2];
      word[0] = static_cast<uint32_t>(p1 >> 32) ^ word[1] ^ k0;
      word[1] = static_cast<uint32_t>(p1);
      word[2] = static_cast<uint32_t>(p0 >> 32) ^ word[3] ^ k1;
      word[3] = static_cast<uint32_t>(p0);
    }
    for (uint32_t number = 0; number < 8; ++number) {
      const uint32_t bits = word[number / 2] >> (16 * (number % 2)) & 0xFFFFu;
      keep(16 * number + lane, hwy::HWY_NAMESPACE::Mask1<float>::FromBool(bits >= threshold));
    }
  }
}
#endif  // HWY_TARGET

// The bits of one group: 16 bytes, bit j % 8 of byte j / 8 = column j is kept; threshold at least 1.
// Writes up to 8 bytes more.
HWY_INLINE void dropout_group_bits(const DropoutKey key, uint32_t threshold, uint32_t row, uint32_t group,
                                   uint8_t* bits) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::CappedTag<float, 16> d;
  if constexpr (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3) {  // better targets have smaller numbers
    dropout_group(d, key, threshold, row, group,
                  [&](uint32_t column, auto mask) HWY_ATTR { hn::StoreMaskBits(d, mask, bits + column / 8); });
  } else {
    uint64_t words[2] = {0, 0};
    dropout_group(d, key, threshold, row, group, [&](uint32_t column, auto mask) HWY_ATTR {
      uint8_t bytes[8] = {};
      hn::StoreMaskBits(d, mask, bytes);
      uint64_t lanes;
      std::memcpy(&lanes, bytes, 8);
      words[column / 64] |= lanes << (column % 64);
    });
    for (int i = 0; i < 16; ++i) bits[i] = static_cast<uint8_t>(words[i / 8] >> (8 * (i % 8)));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace lra
HWY_AFTER_NAMESPACE();

#endif  // LRA_OPS_PHILOX_INL_H_
