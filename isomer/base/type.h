#pragma once
// The types of numbers that tensors and weights have.
#include <cstdint>

#include "isomer/base/bf16.h"
#include "isomer/base/f16.h"
#include "isomer/base/index.h"

namespace isomer {

/// BF16 and F16 are for storage: laws and kernels compute in F32 or F64.
enum class Type { f32, f64, bf16, f16, i64 };

template <class T>
inline constexpr Type type_of = sizeof(T) == 4 ? Type::f32 : Type::f64;
template <>
inline constexpr Type type_of<Bf16> = Type::bf16;
template <>
inline constexpr Type type_of<F16> = Type::f16;
template <>
inline constexpr Type type_of<std::int64_t> = Type::i64;

[[nodiscard]] constexpr Index bytes_of(Type type) {
  return type == Type::f32 ? 4 : type == Type::bf16 || type == Type::f16 ? 2 : 8;
}
/// As in safetensors files.
[[nodiscard]] constexpr const char* name_of(Type type) {
  constexpr const char* names[] = {"F32", "F64", "BF16", "F16", "I64"};
  return names[int(type)];
}
[[nodiscard]] constexpr bool floating(Type type) { return type != Type::i64; }
/// Is it a type of the arithmetic, F32 or F64?
[[nodiscard]] constexpr bool computable(Type type) { return type == Type::f32 || type == Type::f64; }

}  // namespace isomer
