#include "isomer/io/gguf_dequantise.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "isomer/base/error.h"

namespace isomer {

namespace {
constexpr Index kSmall = 32, kLarge = 256;

struct TypeInfo {
  GgufType type;
  const char* name;
  GgufBlock block;
};

// Of those that we do not dequantise the sizes, so that files with them are checked all the same.
constexpr TypeInfo kTypes[] = {
    {GgufType::f32, "F32", {1, 4}},          {GgufType::f16, "F16", {1, 2}},
    {GgufType::q4_0, "Q4_0", {kSmall, 18}},  {GgufType::q4_1, "Q4_1", {kSmall, 20}},
    {GgufType::q5_0, "Q5_0", {kSmall, 22}},  {GgufType::q5_1, "Q5_1", {kSmall, 24}},
    {GgufType::q8_0, "Q8_0", {kSmall, 34}},  {GgufType::q4_k, "Q4_K", {kLarge, 144}},
    {GgufType::q5_k, "Q5_K", {kLarge, 176}}, {GgufType::q6_k, "Q6_K", {kLarge, 210}},
    {GgufType::i64, "I64", {1, 8}},          {GgufType::f64, "F64", {1, 8}},
    {GgufType::bf16, "BF16", {1, 2}},        {GgufType(9), "Q8_1", {kSmall, 40}},
    {GgufType(10), "Q2_K", {kLarge, 84}},    {GgufType(11), "Q3_K", {kLarge, 110}},
    {GgufType(15), "Q8_K", {kLarge, 292}},   {GgufType(16), "IQ2_XXS", {kLarge, 66}},
    {GgufType(17), "IQ2_XS", {kLarge, 74}},  {GgufType(18), "IQ3_XXS", {kLarge, 98}},
    {GgufType(19), "IQ1_S", {kLarge, 50}},   {GgufType(20), "IQ4_NL", {kSmall, 18}},
    {GgufType(21), "IQ3_S", {kLarge, 110}},  {GgufType(22), "IQ2_S", {kLarge, 82}},
    {GgufType(23), "IQ4_XS", {kLarge, 136}}, {GgufType(24), "I8", {1, 1}},
    {GgufType(25), "I16", {1, 2}},           {GgufType(26), "I32", {1, 4}},
    {GgufType(29), "IQ1_M", {kLarge, 56}},   {GgufType(34), "TQ1_0", {kLarge, 54}},
    {GgufType(35), "TQ2_0", {kLarge, 66}},   {GgufType(39), "MXFP4", {kSmall, 17}},
};

const TypeInfo* find(GgufType type) {
  const auto* const found = std::ranges::find(kTypes, type, &TypeInfo::type);
  return found == std::end(kTypes) ? nullptr : found;
}

using Byte = unsigned char;

float half_at(const Byte* p) {
  F16 half{};
  std::memcpy(&half, p, sizeof(half));
  return to_float(half);
}

/// The lower and the upper four bits of 16 bytes are the two halves of 32 integers.
struct Q4_0 {
  static constexpr Index kNumbers = kSmall, kBytes = 18;
  static void block(const Byte* p, float* to) {
    const float d = half_at(p);
    for (Index i = 0; i < 16; ++i) to[i] = d * float(int(p[2 + i] & 15) - 8);
    for (Index i = 0; i < 16; ++i) to[16 + i] = d * float(int(p[2 + i] >> 4) - 8);
  }
};

struct Q4_1 {
  static constexpr Index kNumbers = kSmall, kBytes = 20;
  static void block(const Byte* p, float* to) {
    const float d = half_at(p), m = half_at(p + 2);
    for (Index i = 0; i < 16; ++i) to[i] = d * float(int(p[4 + i] & 15)) + m;
    for (Index i = 0; i < 16; ++i) to[16 + i] = d * float(int(p[4 + i] >> 4)) + m;
  }
};

/// The integers of Q5_0 and Q5_1: four bits as above, and the fifth of each from 32 bits.
std::array<int, kSmall> five_bits(const Byte* high, const Byte* low) {
  std::array<int, kSmall> q{};
  std::uint32_t bits = 0;
  std::memcpy(&bits, high, sizeof(bits));
  for (std::uint32_t i = 0; i < 16; ++i) q[i] = int(low[i] & 15) | int(bits >> i << 4 & 16);
  for (std::uint32_t i = 0; i < 16; ++i) q[16 + i] = int(low[i] >> 4) | int(bits >> (16 + i) << 4 & 16);
  return q;
}

struct Q5_0 {
  static constexpr Index kNumbers = kSmall, kBytes = 22;
  static void block(const Byte* p, float* to) {
    const float d = half_at(p);
    const auto q = five_bits(p + 2, p + 6);
    for (std::size_t i = 0; i < q.size(); ++i) to[i] = d * float(q[i] - 16);
  }
};

struct Q5_1 {
  static constexpr Index kNumbers = kSmall, kBytes = 24;
  static void block(const Byte* p, float* to) {
    const float d = half_at(p), m = half_at(p + 2);
    const auto q = five_bits(p + 4, p + 8);
    for (std::size_t i = 0; i < q.size(); ++i) to[i] = d * float(q[i]) + m;
  }
};

struct Q8_0 {
  static constexpr Index kNumbers = kSmall, kBytes = 34;
  static void block(const Byte* p, float* to) {
    const float d = half_at(p);
    const auto* q = reinterpret_cast<const signed char*>(p + 2);
    for (Index i = 0; i < kSmall; ++i) to[i] = float(int(q[i])) * d;
  }
};

/// Scales and minima of the eight groups of 32 numbers in Q4_K and Q5_K: six bits each in twelve bytes. The first four of each
/// are the lower bits of the bytes 0 to 3 and 4 to 7; their upper two bits and the bytes 8 to 11 make the other four.
struct Groups {
  std::array<float, 8> scale{}, minimum{};

  explicit Groups(const Byte* p) {
    const float d = half_at(p), m = half_at(p + 2);
    const Byte* s = p + 4;
    for (std::size_t j = 0; j < 4; ++j) {
      scale[j] = d * float(s[j] & 63);
      minimum[j] = m * float(s[4 + j] & 63);
      scale[4 + j] = d * float((s[8 + j] & 15) | (s[j] >> 6 << 4));
      minimum[4 + j] = m * float((s[8 + j] >> 4) | (s[4 + j] >> 6 << 4));
    }
  }
};

/// Each 32 bytes hold two groups, one in their lower, one in their upper four bits.
struct Q4_K {
  static constexpr Index kNumbers = kLarge, kBytes = 144;
  static void block(const Byte* p, float* to) {
    const Groups groups(p);
    for (std::size_t j = 0; j < 8; j += 2) {
      const Byte* q = p + 16 + 16 * j;
      float* out = to + 32 * j;
      const float d0 = groups.scale[j], m0 = groups.minimum[j], d1 = groups.scale[j + 1], m1 = groups.minimum[j + 1];
      for (Index i = 0; i < 32; ++i) out[i] = d0 * float(int(q[i] & 15)) - m0;
      for (Index i = 0; i < 32; ++i) out[32 + i] = d1 * float(int(q[i] >> 4)) - m1;
    }
  }
};

/// As Q4_K; the fifth bits of group j are bit j of 32 bytes.
struct Q5_K {
  static constexpr Index kNumbers = kLarge, kBytes = 176;
  static void block(const Byte* p, float* to) {
    const Groups groups(p);
    const Byte* high = p + 16;
    for (std::size_t j = 0; j < 8; j += 2) {
      const Byte* q = p + 48 + 16 * j;
      float* out = to + 32 * j;
      const float d0 = groups.scale[j], m0 = groups.minimum[j], d1 = groups.scale[j + 1], m1 = groups.minimum[j + 1];
      for (Index i = 0; i < 32; ++i) out[i] = d0 * float(int(q[i] & 15) | (int(high[i]) >> j & 1) << 4) - m0;
      for (Index i = 0; i < 32; ++i) out[32 + i] = d1 * float(int(q[i] >> 4) | (int(high[i]) >> (j + 1) & 1) << 4) - m1;
    }
  }
};

/// Two halves of 128 numbers, each four groups of 32: lower four bits as 64 bytes, upper two bits as 32 bytes; a signed scale
/// for every 16 numbers.
struct Q6_K {
  static constexpr Index kNumbers = kLarge, kBytes = 210;
  static void block(const Byte* p, float* to) {
    const float d = half_at(p + 208);
    for (Index half = 0; half < 2; ++half) {
      const Byte *low = p + 64 * half, *high = p + 128 + 32 * half;
      const auto* scales = reinterpret_cast<const signed char*>(p + 192 + 8 * half);
      for (int group = 0; group < 4; ++group) {
        const Byte* q = low + 32 * (group % 2);
        const int shift = group < 2 ? 0 : 4;
        float* out = to + 128 * half + 32 * group;
        const float d0 = d * float(scales[2 * group]), d1 = d * float(scales[2 * group + 1]);
        const auto number = [&](Index i) {
          return float(((int(q[i]) >> shift & 15) | (int(high[i]) >> 2 * group & 3) << 4) - 32);
        };
        for (Index i = 0; i < 16; ++i) out[i] = d0 * number(i);
        for (Index i = 16; i < 32; ++i) out[i] = d1 * number(i);
      }
    }
  }
};

template <class Q>
void all_blocks(const Byte* from, Index blocks, float* to) {
  for (Index n = 0; n < blocks; ++n) Q::block(from + n * Q::kBytes, to + n * Q::kNumbers);
}

template <class Q>
void all_blocks(const Byte* from, Index blocks, Bf16* to) {
  std::array<float, Q::kNumbers> numbers;
  for (Index n = 0; n < blocks; ++n) {
    Q::block(from + n * Q::kBytes, numbers.data());
    std::transform(numbers.begin(), numbers.end(), to + n * Q::kNumbers, to_bf16);
  }
}

template <class To>
void dequantise_as(GgufType type, const std::byte* bytes, Index blocks, To* to) {
  const auto* from = reinterpret_cast<const Byte*>(bytes);
  switch (type) {
    case GgufType::q4_0: return all_blocks<Q4_0>(from, blocks, to);
    case GgufType::q4_1: return all_blocks<Q4_1>(from, blocks, to);
    case GgufType::q5_0: return all_blocks<Q5_0>(from, blocks, to);
    case GgufType::q5_1: return all_blocks<Q5_1>(from, blocks, to);
    case GgufType::q8_0: return all_blocks<Q8_0>(from, blocks, to);
    case GgufType::q4_k: return all_blocks<Q4_K>(from, blocks, to);
    case GgufType::q5_k: return all_blocks<Q5_K>(from, blocks, to);
    case GgufType::q6_k: return all_blocks<Q6_K>(from, blocks, to);
    default: ISOMER_ASSERT(false, "only quantised types are dequantised");
  }
}
}  // namespace

std::string name_of(GgufType type) {
  const TypeInfo* const info = find(type);
  return info == nullptr ? "type " + std::to_string(std::uint32_t(type)) : info->name;
}

std::optional<GgufBlock> block_of(GgufType type) {
  const TypeInfo* const info = find(type);
  return info == nullptr ? std::nullopt : std::optional(info->block);
}

std::optional<Type> plain_type(GgufType type) {
  switch (type) {
    case GgufType::f32: return Type::f32;
    case GgufType::f16: return Type::f16;
    case GgufType::bf16: return Type::bf16;
    case GgufType::f64: return Type::f64;
    case GgufType::i64: return Type::i64;
    default: return std::nullopt;
  }
}

bool quantised(GgufType type) {
  constexpr GgufType types[] = {GgufType::q4_0, GgufType::q4_1, GgufType::q5_0, GgufType::q5_1,
                                GgufType::q8_0, GgufType::q4_k, GgufType::q5_k, GgufType::q6_k};
  return std::ranges::find(types, type) != std::end(types);
}

void dequantise(GgufType type, const std::byte* from, Index blocks, float* to) { dequantise_as(type, from, blocks, to); }
void dequantise(GgufType type, const std::byte* from, Index blocks, Bf16* to) { dequantise_as(type, from, blocks, to); }

}  // namespace isomer
