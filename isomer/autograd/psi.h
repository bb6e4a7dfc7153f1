#pragma once
// LUNA's ψ as an op (kernels/psi): every number of u becomes L numbers.
//   u [B, T, H, m]; w1, b1 [1, 1, L or 1, J], w2 [1, 1, L, J], b2 [1, 1, 1, L] → y [B, T, H, m·L], ψ_l of u_i at i·L + l
#include "isomer/autograd/tape.h"
#include "isomer/kernels/psi/psi.h"

namespace isomer::ops {

template <class T>
struct PsiVars {
  Var<T> w1, b1, w2, b2;
};

template <class T>
[[nodiscard]] Var<T> psi(Tape<T>& tape, Var<T> u, const PsiVars<T>& parameters, PsiOptions options = {});

}  // namespace isomer::ops
