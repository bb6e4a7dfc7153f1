#pragma once
// What is known of the elementwise functions, in one place.
#include <array>
#include <string_view>
#include <utility>

#include "isomer/kernels/elementwise/binary.h"
#include "isomer/kernels/elementwise/unary.h"

namespace isomer {

struct FunctionInfo {
  std::string_view name;    // in files: it stays as it is
  std::string_view symbol;  // in equations; empty: written in another way than f(x)
  double flops;             // of one number; a transcendental function counts 10
  bool bends = true;        // does the slope depend on x?
  bool gate = false;        // may it be that of a gate (gated.h)?
};

/// The name of an enumerator as the compiler writes it, "[… V = isomer::Unary::exp; …]"; empty for a value without one, which is
/// written as a cast.
template <auto V>
[[nodiscard]] consteval auto enumerator_name() {
  std::string_view text = __PRETTY_FUNCTION__;
  text.remove_prefix(text.find("V = ") + 4);
  text = text.substr(0, text.find_first_of(";]"));
  return text.starts_with('(') ? std::string_view() : text.substr(text.rfind(':') + 1);
}
/// Are these the names of all enumerators of E, in their order?
template <class E, std::size_t... I>
[[nodiscard]] consteval bool are_names_of(const std::array<std::string_view, sizeof...(I)>& names, std::index_sequence<I...>) {
  return ((names[I] == enumerator_name<E(I)>()) && ...) && enumerator_name<E(sizeof...(I))>().empty();
}

/// In the order of Unary.
inline constexpr std::array<FunctionInfo, 24> kUnaries{{
    {"identity", "", 0, false},
    {"affine", "", 2, false},
    {"exp", "exp", 10},
    {"log", "log", 10},
    {"sigmoid", "sigmoid", 10, true, true},
    {"log_sigmoid", "log sigmoid", 10},
    {"silu", "silu", 10, true, true},
    {"tanh", "tanh", 10},
    {"softplus", "softplus", 10},
    {"relu", "relu", 1},
    {"leaky_relu", "leaky_relu", 1},
    {"elu_plus_one", "elu1", 10},
    {"gelu", "gelu", 10, true, true},
    {"softcap", "", 10},
    {"one_minus_exp", "", 10},
    {"sqrt_one_minus_exp2", "", 10},
    {"square", "", 1},
    {"sqrt", "sqrt", 1},
    {"reciprocal", "", 1},
    {"sin", "sin", 10},
    {"cos", "cos", 10},
    {"max_with", "", 1},
    {"min_with", "", 1},
    {"gelu_erf", "gelu_erf", 10},
}};
static_assert(are_names_of<Unary>(
                  [] {
                    std::array<std::string_view, kUnaries.size()> names;
                    for (std::size_t i = 0; i < names.size(); ++i) names[i] = kUnaries[i].name;
                    return names;
                  }(),
                  std::make_index_sequence<kUnaries.size()>()),
              "every function is in the table, in the order of Unary");

/// In the order of Binary.
inline constexpr std::array<std::string_view, 3> kBinaries{"add", "subtract", "multiply"};
static_assert(are_names_of<Binary>(kBinaries, std::make_index_sequence<kBinaries.size()>()),
              "every function is in the table, in the order of Binary");

[[nodiscard]] constexpr const FunctionInfo& info_of(Unary f) { return kUnaries[std::size_t(f)]; }
[[nodiscard]] constexpr std::string_view name_of(Unary f) { return info_of(f).name; }
[[nodiscard]] constexpr std::string_view name_of(Binary f) { return kBinaries[std::size_t(f)]; }

/// The functions that gates have.
[[nodiscard]] constexpr bool is_gate(Unary f) { return info_of(f).gate; }

}  // namespace isomer
