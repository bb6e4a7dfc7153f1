#pragma once
// Random calls of scalar_decay for its tests: one description, drawn in float or double with the same numbers, run in any form.
#include "isomer/laws/scalar_decay/scalar_decay_draw.h"

namespace isomer::scalar_decay_test {

template <class T>
class Problem {
 public:
  explicit Problem(const Draw& setup) : s(setup) {
    const Index H = s.H();
    q.make({s.B, s.T, s.Gq, s.K}, s.layout);
    k.make({s.B, s.T, s.Gk, s.K}, s.layout);
    v.make({s.B, s.T, s.Gv, s.V}, s.layout);
    grad_o.make({s.B, s.T, H, s.V}, s.layout);
    // A divisor near zero would say nothing about the code: positive features, as a feature map gives them, where nothing bounds
    // it.
    const bool positive = s.normaliser == Normaliser::sum || (s.normaliser == Normaliser::max && s.input == Gate::extreme);
    normal(q, 0, positive), normal(k, s.key_mean, positive), normal(v, 0, false), normal(grad_o, 0, false);
    gate(decay, s.decay, true);
    gate(input, s.input, false);
    if (s.initial) {
      initial.make(s, true);
      normal(initial.state, 0, false), normal(initial.norm, 0, positive), normal(initial.value_sum, 0, false);
      normal(initial.max, 0, false);
      initial.count.each([&](T& x) { x = T(1 + rng.below(5)); });
    }
    grad_final.make(s, false);
    normal(grad_final.state, 0, false), normal(grad_final.norm, 0, false), normal(grad_final.value_sum, 0, false);
  }

  [[nodiscard]] ScalarDecayInputs<T> inputs() const {
    return {.q = q.view,
            .k = k.view,
            .v = v.view,
            .log_decay = decay.view,
            .log_input = input.view,
            .initial = initial.const_views(),
            .offsets = s.offsets};
  }

  /// Outputs and, if asked, gradients of everything.
  Results run(Form form, Context& context, bool gradients, bool with_tape = true) const {
    Results r;
    Array<T, 4> o;
    StateArrays<T> last;
    o.make({s.B, s.T, s.H(), s.V}, s.layout);
    last.make(s, true);
    ScalarDecayTape<T> tape;
    scalar_decay<T>(inputs(), s.options(), form, {.o = o.view, .final_states = last.views(), .tape = with_tape ? &tape : nullptr},
                    context);
    r["o"] = o.values();
    last.into(r, "final_");
    if (gradients) add_gradients(r, form, context, with_tape ? &tape : nullptr);
    return r;
  }

  void add_gradients(Results& r, Form form, Context& context, const ScalarDecayTape<T>* tape) const {
    Array<T, 4> dq, dk, dv;
    Array<T, 3> ddecay, dinput;
    StateArrays<T> first;
    dq.make(q.view.shape, s.layout), dk.make(k.view.shape, s.layout), dv.make(v.view.shape, s.layout);
    if (decay.view.present()) ddecay.make({s.B, s.T, s.H()}, s.layout);
    if (input.view.present()) dinput.make({s.B, s.T, s.H()}, s.layout);
    first.make(s, false);
    scalar_decay_vjp<T>(inputs(), s.options(), form, {.o = grad_o.view, .final_states = grad_final.const_views(), .tape = tape},
                        {.q = dq.view,
                         .k = dk.view,
                         .v = dv.view,
                         .log_decay = ddecay.view,
                         .log_input = dinput.view,
                         .initial = s.direction == Direction::causal ? first.views() : ScalarDecayStates<T>{}},
                        context);
    r["grad_q"] = dq.values(), r["grad_k"] = dk.values(), r["grad_v"] = dv.values();
    if (decay.view.present()) r["grad_log_decay"] = ddecay.values();
    if (input.view.present()) r["grad_log_input"] = dinput.values();
    if (s.direction == Direction::causal) first.into(r, "grad_initial_");
  }

  Draw s;
  Array<T, 4> q, k, v, grad_o;
  Array<T, 3> decay, input;
  StateArrays<T> initial, grad_final;
  Rng rng{s.seed};

 private:
  template <int R>
  void normal(Array<T, R>& x, double mean, bool positive) {
    x.each([&](T& e) {
      const double y = rng.normal();
      e = T(float(positive ? 0.1 + std::abs(y) : mean + y));
    });
  }
  void gate(Array<T, 3>& x, Gate kind, bool is_decay) {
    if (kind == Gate::none) return;
    x.make({s.B, s.T, s.H()}, s.layout);
    const double decays[] = {0, -50, -1e4, -std::numeric_limits<double>::infinity(), 0.5};
    const double inputs[] = {80, -80, 0, 30, -30};
    x.each([&](T& e) {
      double y = is_decay ? -std::abs(rng.normal()) * 0.2 : rng.normal();
      if (kind == Gate::extreme && rng.below(4) == 0) y = is_decay ? decays[rng.below(5)] : inputs[rng.below(5)];
      e = T(float(y));
    });
    if (kind != Gate::head) return;
    x.view.stride[0] = x.view.stride[1] = 0;
  }
};

}  // namespace isomer::scalar_decay_test
