#pragma once
// Random calls of scan for its tests: one description, drawn in float or double with the same numbers, run in any form.
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "isomer/base/rng.h"
#include "isomer/laws/scan/scan.h"
#include "isomer/laws/testing.h"

namespace isomer::scan_test {

using laws_test::Layout;
using laws_test::Results;

enum class Kind { real, complex, s6 };
enum class Gates { usual, extreme };

struct Draw {
  Kind kind = Kind::real;
  Index B = 2, T = 19, C = 5, N = 3;  // N is the width of the plain scan
  std::vector<std::int64_t> offsets = {};
  bool initial = false, tape = true;
  Gates gates = Gates::usual;
  Layout layout = Layout::dense;
  Index chunk = 0;
  std::uint64_t seed = 1;

  [[nodiscard]] Index n() const { return offsets.empty() ? B : Index(offsets.size()) - 1; }
};

/// Arrays by name, dense or with every axis strided and the start misaligned; what lies between is NaN.
template <class T>
class Arrays {
 public:
  explicit Arrays(const Draw& draw) : draw_(draw) {}

  template <int R>
  View<T, R> make(const std::string& name, const std::array<Index, R>& shape) {
    return laws_test::make_view<T, R>(shape, draw_.layout, memory_[name]);
  }
  /// Drawn by f(rng), the same numbers for both types.
  template <int R>
  View<T, R> drawn(const std::string& name, const std::array<Index, R>& shape, const std::function<double(Rng&)>& f) {
    const View<T, R> view = make<R>(name, shape);
    Rng rng(draw_.seed, std::hash<std::string>()(name));
    laws_test::each(view, [&](T& x) { x = T(float(f(rng))); });
    return view;
  }
  template <int R>
  static void put(Results& to, const std::string& name, const View<T, R>& view) {
    if (view.present()) laws_test::each(view, [&, &all = to[name]](T x) { all.push_back(double(x)); });
  }

 private:
  const Draw& draw_;
  std::map<std::string, std::vector<T>> memory_;
};

inline double normal(Rng& rng) { return rng.normal(); }

/// The plain scan.
template <class T>
struct Plain {
  Draw draw;
  Arrays<T> arrays{draw};
  ScanInputs<T> in;

  explicit Plain(const Draw& d) : draw(d) {
    const bool complex = d.kind == Kind::complex;
    const auto decay = [&](Rng& rng) {
      const double extremes[] = {0, -50, -1e4, -std::numeric_limits<double>::infinity(), 0.5};
      const double usual = -std::abs(rng.normal()) * 0.2;
      return d.gates == Gates::extreme && rng.below(4) == 0 ? extremes[rng.below(5)] : usual;
    };
    const auto angle = [&](Rng& rng) { return rng.normal() * (d.gates == Gates::extreme && rng.below(4) == 0 ? 1e5 : 2); };
    in.log_decay = arrays.template drawn<3>("log_decay", {d.B, d.T, d.N}, decay);
    in.x = arrays.template drawn<3>("x", {d.B, d.T, d.N}, normal);
    if (complex) in.angle = arrays.template drawn<3>("angle", {d.B, d.T, d.N}, angle);
    if (complex) in.x_imag = arrays.template drawn<3>("x_imag", {d.B, d.T, d.N}, normal);
    if (d.initial) in.initial.state = arrays.template drawn<2>("initial_state", {d.n(), d.N}, normal);
    if (d.initial && complex) in.initial.imag = arrays.template drawn<2>("initial_imag", {d.n(), d.N}, normal);
    in.offsets = draw.offsets;
  }
  Results run(Form form, Context& context) {
    const auto tokens = [&](const std::string& name) { return arrays.template make<3>(name, in.x.shape); };
    const auto state = [&](const std::string& name) { return arrays.template make<2>(name, {draw.n(), draw.N}); };
    const bool complex = in.complex();
    ScanTape<T> tape;
    ScanOutputs<T> out{.h = tokens("h"), .tape = draw.tape ? &tape : nullptr};
    ScanCotangents<T> given{.h = arrays.template drawn<3>("grad_h", in.x.shape, normal), .tape = &tape};
    ScanGradients<T> grad{.log_decay = tokens("grad_log_decay"), .x = tokens("grad_x")};
    out.final_states.state = state("final_state");
    given.final_states.state = arrays.template drawn<2>("grad_final_state", {draw.n(), draw.N}, normal);
    grad.initial.state = state("grad_initial_state");
    if (complex) {
      out.h_imag = tokens("h_imag"), out.final_states.imag = state("final_imag");
      given.h_imag = arrays.template drawn<3>("grad_h_imag", in.x.shape, normal);
      given.final_states.imag = arrays.template drawn<2>("grad_final_imag", {draw.n(), draw.N}, normal);
      grad.angle = tokens("grad_angle"), grad.x_imag = tokens("grad_x_imag"), grad.initial.imag = state("grad_initial_imag");
    }
    scan(in, {draw.chunk}, form, out, context);
    scan_vjp(in, {draw.chunk}, form, given, grad, context);
    Results r;
    arrays.put(r, "h", out.h), arrays.put(r, "h_imag", out.h_imag);
    arrays.put(r, "final_state", out.final_states.state), arrays.put(r, "final_imag", out.final_states.imag);
    arrays.put(r, "grad_log_decay", grad.log_decay), arrays.put(r, "grad_x", grad.x);
    arrays.put(r, "grad_angle", grad.angle), arrays.put(r, "grad_x_imag", grad.x_imag);
    arrays.put(r, "grad_initial_state", grad.initial.state), arrays.put(r, "grad_initial_imag", grad.initial.imag);
    return r;
  }
};

template <class T>
struct S6 {
  Draw draw;
  Arrays<T> arrays{draw};
  ScanS6Inputs<T> in;

  explicit S6(const Draw& d) : draw(d) {
    const auto step = [&](Rng& rng) {
      const double extremes[] = {0, 30, 1e4, 1e-6}, usual = 0.3 * std::abs(rng.normal());
      return d.gates == Gates::extreme && rng.below(4) == 0 ? extremes[rng.below(4)] : usual;
    };
    in.x = arrays.template drawn<3>("x", {d.B, d.T, d.C}, normal);
    in.step = arrays.template drawn<3>("step", {d.B, d.T, d.C}, step);
    in.a = arrays.template drawn<2>("a", {d.C, d.N}, [](Rng& rng) { return -4 * rng.uniform(); });
    in.b = arrays.template drawn<3>("b", {d.B, d.T, d.N}, normal);
    in.c = arrays.template drawn<3>("c", {d.B, d.T, d.N}, normal);
    if (d.initial) in.d = arrays.template drawn<1>("d", {d.C}, normal);
    if (d.initial) in.initial_state = arrays.template drawn<3>("initial_state", {d.n(), d.C, d.N}, normal);
    in.offsets = draw.offsets;
  }
  Results run(Form form, Context& context) {
    const std::array<Index, 3> states{draw.n(), draw.C, draw.N};
    const auto like = [&](const std::string& name, const auto& x) { return arrays.template make<3>(name, x.shape); };
    ScanTape<T> tape;
    const ScanS6Outputs<T> out{
        .o = like("o", in.x), .final_state = arrays.template make<3>("final_state", states), .tape = draw.tape ? &tape : nullptr};
    const ScanS6Cotangents<T> given{.o = arrays.template drawn<3>("grad_o", in.x.shape, normal),
                                    .final_state = arrays.template drawn<3>("grad_final_state", states, normal),
                                    .tape = &tape};
    const ScanS6Gradients<T> grad{.x = like("grad_x", in.x),
                                  .step = like("grad_step", in.x),
                                  .a = arrays.template make<2>("grad_a", in.a.shape),
                                  .b = like("grad_b", in.b),
                                  .c = like("grad_c", in.c),
                                  .d = arrays.template make<1>("grad_d", {draw.C}),
                                  .initial_state = arrays.template make<3>("grad_initial_state", states)};
    scan_s6(in, {draw.chunk}, form, out, context);
    scan_s6_vjp(in, {draw.chunk}, form, given, grad, context);
    Results r;
    arrays.put(r, "o", out.o), arrays.put(r, "final_state", out.final_state);
    arrays.put(r, "grad_x", grad.x), arrays.put(r, "grad_step", grad.step), arrays.put(r, "grad_a", grad.a);
    arrays.put(r, "grad_b", grad.b), arrays.put(r, "grad_c", grad.c), arrays.put(r, "grad_d", grad.d);
    arrays.put(r, "grad_initial_state", grad.initial_state);
    return r;
  }
};

template <class T>
Results run(const Draw& draw, Form form, Context& context) {
  if (draw.kind == Kind::s6) return S6<T>(draw).run(form, context);
  return Plain<T>(draw).run(form, context);
}

}  // namespace isomer::scan_test
