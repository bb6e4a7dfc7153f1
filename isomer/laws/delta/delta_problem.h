#pragma once
// Random calls of delta for its tests: one description, drawn in float or double with the same numbers, run in any form on dense
// or strided memory.
#include <limits>
#include <string>
#include <vector>

#include "isomer/base/rng.h"
#include "isomer/base/tensor.h"
#include "isomer/laws/delta/delta.h"
#include "isomer/laws/delta/delta_law.h"
#include "isomer/laws/random.h"
#include "isomer/laws/testing.h"

namespace isomer::delta_test {

enum class Kind { plain, gated, kda, rwkv7 };
inline constexpr Kind kKinds[] = {Kind::plain, Kind::gated, Kind::kda, Kind::rwkv7};
inline std::string name_of(Kind kind) {
  const char* names[] = {"plain", "gated", "kda", "rwkv7"};
  return names[int(kind)];
}
using isomer::name_of;

inline double number(const Tensor& x, Index i) {
  return x.type() == Type::f32 ? double(x.data<float>()[i]) : x.data<double>()[i];
}
inline void put(const Tensor& x, Index i, double value) {
  if (x.type() == Type::f32)
    x.data<float>()[i] = float(value);
  else
    x.data<double>()[i] = value;
}

struct Problem {
  Kind kind = Kind::plain;
  Index T = 5, H = 2, K = 9, V = 35;
  double decay = 1;      // of all tokens; 1: drawn
  bool extreme = false;  // some gates are 0, −50, −1e4, −inf, or 0.5

  [[nodiscard]] Tensors inputs(Type type) const {
    Case what{.sizes = {{"B", 1}, {"T", T}, {"H", H}, {"K", K}, {"V", V}}, .unit_rows = {"k", "a", "b"}};
    what.with = {"initial_state", kind == Kind::rwkv7 ? "a" : "beta"};
    if (kind == Kind::rwkv7) what.with.emplace_back("b");
    if (kind == Kind::gated) what.with.emplace_back("log_decay");
    if (kind == Kind::kda || kind == Kind::rwkv7) what.with.emplace_back("log_decay:B T H K");
    Tensors in = random_inputs(delta_law(), what, type, 7);
    if (kind == Kind::plain) return in;
    const double rare[] = {0, -50, -1e4, -std::numeric_limits<double>::infinity(), 0.5};
    Rng rng(3);
    const Tensor& gates = in.at("log_decay");
    for (Index i = 0; i < gates.size(); ++i) {
      if (decay != 1) put(gates, i, decay);
      if (extreme && rng.below(9) == 0) put(gates, i, rare[rng.below(5)]);
    }
    return in;
  }
};

template <class T>
DeltaInputs<T> typed(const Tensors& in) {
  const auto four = [&](const char* name) { return in.contains(name) ? in.at(name).view<const T, 4>() : View<const T, 4>{}; };
  DeltaInputs<T> x{.q = four("q"), .k = four("k"), .v = four("v"), .a = four("a"), .b = four("b")};
  x.initial_state = four("initial_state");
  if (in.contains("beta")) x.beta = in.at("beta").view<const T, 3>();
  if (!in.contains("log_decay")) return x;
  if (in.at("log_decay").shape().size() == 4)
    x.key_log_decay = four("log_decay");
  else
    x.log_decay = in.at("log_decay").view<const T, 3>();
  return x;
}

struct Manner {
  bool strided = false, tape = true;
};

/// Arrays of the manner's layout; they live as long as this does.
template <class T>
struct Arrays {
  laws_test::Layout layout;
  std::vector<std::vector<T>> memory = {};

  template <std::size_t R>
  View<T, int(R)> make(const std::array<Index, R>& shape) {
    return laws_test::make_view<T, int(R)>(shape, layout, memory.emplace_back());
  }
  template <int R>
  View<const T, R> copy(const View<const T, R>& from) {
    if (!from.present()) return from;
    const View<T, R> to = make(from.shape);
    const T* next = from.data;
    laws_test::each(to, [&](T& x) { x = *next++; });
    return to;
  }
  template <int R>
  static Tensor dense(const View<T, R>& view) {
    Tensor x(type_of<T>, std::vector<Index>(view.shape.begin(), view.shape.end()));
    T* next = x.data<T>();
    laws_test::each(view, [&](T y) { *next++ = y; });
    return x;
  }
};

/// Outputs and gradients of everything.
template <class T>
Tensors run_typed(const Tensors& in, const DeltaOptions& options, Form form, const Manner& how, Context& context) {
  Arrays<T> memory{how.strided ? laws_test::Layout::strided : laws_test::Layout::dense};
  DeltaInputs<T> x = typed<T>(in);
  for (View<const T, 4>* v : {&x.q, &x.k, &x.v, &x.key_log_decay, &x.a, &x.b, &x.initial_state}) *v = memory.copy(*v);
  for (View<const T, 3>* v : {&x.beta, &x.log_decay}) *v = memory.copy(*v);
  const Index H = x.q.shape[2];
  const View<T, 4> o = memory.make(std::array{x.q.shape[0], x.q.shape[1], H, x.v.shape[3]});
  const View<T, 4> last = memory.make(std::array{x.q.shape[0], H, x.q.shape[3], x.v.shape[3]});
  DeltaTape<T> tape;
  delta<T>(x, options, form, {.o = o, .final_state = last, .tape = how.tape ? &tape : nullptr}, context);
  Tensors out;
  out["o"] = memory.dense(o), out["final_state"] = memory.dense(last);
  if (!in.contains("grad_o")) return out;
  DeltaGradients<T> grad{.q = memory.make(x.q.shape), .k = memory.make(x.k.shape), .v = memory.make(x.v.shape)};
  grad.initial_state = memory.make(x.initial_state.shape);
  if (x.beta.present()) grad.beta = memory.make(x.beta.shape);
  if (x.log_decay.present()) grad.log_decay = memory.make(x.log_decay.shape);
  if (x.key_log_decay.present()) grad.key_log_decay = memory.make(x.key_log_decay.shape);
  if (x.a.present()) grad.a = memory.make(x.a.shape), grad.b = memory.make(x.b.shape);
  delta_vjp<T>(x, options, form,
               {.o = memory.copy(in.at("grad_o").view<const T, 4>()),
                .final_state = memory.copy(in.at("grad_final_state").view<const T, 4>()),
                .tape = how.tape ? &tape : nullptr},
               grad, context);
  const auto put_all = [&](const char* name, const auto& view) {
    if (view.present()) out[name] = memory.dense(view);
  };
  put_all("grad_q", grad.q), put_all("grad_k", grad.k), put_all("grad_v", grad.v), put_all("grad_beta", grad.beta);
  put_all("grad_log_decay", grad.log_decay), put_all("grad_log_decay", grad.key_log_decay);
  put_all("grad_a", grad.a), put_all("grad_b", grad.b), put_all("grad_initial_state", grad.initial_state);
  return out;
}

inline Tensors run(const Tensors& in, const DeltaOptions& options, Form form, const Manner& how, Context& context) {
  return in.at("q").type() == Type::f32 ? run_typed<float>(in, options, form, how, context)
                                        : run_typed<double>(in, options, form, how, context);
}

}  // namespace isomer::delta_test
