#pragma once
// Random calls of channel_decay for its tests: one description, drawn in float or double with the same numbers, run in any form.
#include "isomer/base/rng.h"
#include "isomer/laws/channel_decay/channel_decay.h"
#include "isomer/laws/testing.h"

namespace isomer::channel_decay_test {

using laws_test::Array;
using laws_test::error_of;
using laws_test::Layout;
using laws_test::Results;
using Read = ChannelDecayOptions::Read;

enum class Gates { weak, extreme, strong };

struct Draw {
  Read read = Read::after;
  Gates gates = Gates::weak;
  Index B = 2, T = 19, Gq = 2, Gk = 2, Gv = 2, K = 5, V = 3;
  std::vector<std::int64_t> offsets = {};
  bool initial = false, bonus = true;  // a bonus is there only with Read::before
  Index chunk = 0;
  Layout layout = Layout::dense;
  std::uint64_t seed = 1;

  [[nodiscard]] Index H() const { return std::max({Gq, Gk, Gv}); }
  [[nodiscard]] Index n() const { return offsets.empty() ? B : Index(offsets.size()) - 1; }
  [[nodiscard]] bool has_bonus() const { return bonus && read == Read::before; }
  [[nodiscard]] ChannelDecayOptions options() const { return {.read = read, .chunk = chunk}; }
};

template <class T>
class Problem {
 public:
  explicit Problem(const Draw& setup) : s(setup) {
    const Index H = s.H();
    const auto normal = [&](auto& x) { x.each([&](T& e) { e = T(float(rng.normal())); }); };
    q.make({s.B, s.T, s.Gq, s.K}, s.layout), normal(q);
    k.make({s.B, s.T, s.Gk, s.K}, s.layout), normal(k);
    v.make({s.B, s.T, s.Gv, s.V}, s.layout), normal(v);
    grad_o.make({s.B, s.T, H, s.V}, s.layout), normal(grad_o);
    grad_final.make({s.n(), H, s.K, s.V}, s.layout), normal(grad_final);
    if (s.initial) initial.make({s.n(), H, s.K, s.V}, s.layout), normal(initial);
    if (s.has_bonus()) bonus.make({H, s.K}, s.layout), normal(bonus);
    decay.make({s.B, s.T, H, s.K}, s.layout);
    const double extremes[] = {0, -50, -1e4, -std::numeric_limits<double>::infinity(), 0.3, -3};
    decay.each([&](T& e) {
      double y = -std::abs(rng.normal()) * 0.2;
      if (s.gates == Gates::extreme && rng.below(4) == 0) y = extremes[rng.below(6)];
      if (s.gates == Gates::strong) y = -10 - 10 * rng.uniform();
      e = T(float(y));
    });
  }

  [[nodiscard]] ChannelDecayInputs<T> inputs() const {
    return {.q = q.view,
            .k = k.view,
            .v = v.view,
            .log_decay = decay.view,
            .bonus = bonus.view,
            .initial_state = initial.view,
            .offsets = s.offsets};
  }

  /// Outputs and, if asked, gradients of everything.
  Results run(Form form, Context& context, bool gradients, bool with_tape = true) const {
    Array<T, 4> o, last;
    o.make({s.B, s.T, s.H(), s.V}, s.layout);
    last.make({s.n(), s.H(), s.K, s.V}, s.layout);
    ChannelDecayTape<T> tape;
    channel_decay<T>(inputs(), s.options(), form, {.o = o.view, .final_state = last.view, .tape = with_tape ? &tape : nullptr},
                     context);
    Results r{{"o", o.values()}, {"final_state", last.values()}};
    if (gradients) add_gradients(r, form, context, with_tape ? &tape : nullptr);
    return r;
  }

  void add_gradients(Results& r, Form form, Context& context, const ChannelDecayTape<T>* tape) const {
    Array<T, 4> dq, dk, dv, ddecay, first;
    Array<T, 2> dbonus;
    dq.make(q.view.shape, s.layout), dk.make(k.view.shape, s.layout), dv.make(v.view.shape, s.layout);
    ddecay.make(decay.view.shape, s.layout);
    first.make({s.n(), s.H(), s.K, s.V}, s.layout);
    if (s.has_bonus()) dbonus.make({s.H(), s.K}, s.layout);
    channel_decay_vjp<T>(
        inputs(), s.options(), form, {.o = grad_o.view, .final_state = grad_final.view, .tape = tape},
        {.q = dq.view, .k = dk.view, .v = dv.view, .log_decay = ddecay.view, .bonus = dbonus.view, .initial_state = first.view},
        context);
    r["grad_q"] = dq.values(), r["grad_k"] = dk.values(), r["grad_v"] = dv.values();
    r["grad_log_decay"] = ddecay.values(), r["grad_initial_state"] = first.values();
    if (s.has_bonus()) r["grad_bonus"] = dbonus.values();
  }

  Draw s;
  Array<T, 4> q, k, v, decay, grad_o, initial, grad_final;
  Array<T, 2> bonus;
  Rng rng{s.seed};
};

}  // namespace isomer::channel_decay_test
