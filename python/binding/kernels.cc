// Kernels that layers have beside a law, for arrays: products with weights, short convolution, rotation of pairs, gated norm. A
// kernel with its options is called as a law is, so that whatever carries laws carries kernels.
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/set.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "isomer/base/error.h"
#include "isomer/base/settings.h"
#include "isomer/kernels/conv/conv.h"
#include "isomer/kernels/elementwise/gated.h"
#include "isomer/kernels/elementwise/sum.h"
#include "isomer/kernels/gemm/gemm.h"
#include "isomer/kernels/norm/norm.h"
#include "isomer/kernels/rotary/rotary.h"
#include "isomer/laws/apply.h"
#include "python/binding/contexts.h"
#include "python/binding/module.h"
#include "python/binding/named_arrays.h"

namespace isomer::python {

namespace {
/// One call of a kernel, in the type of its arrays.
template <class T>
struct Call {
  const char* kernel;
  const NamedViews& in;
  const Settings& settings;
  const MakeTensor& make;  // gives no memory for what nobody wants
  Context& context;

  [[nodiscard]] bool has(const char* name) const { return in.contains(name); }
  /// An input, absent if it is not there.
  template <int R>
  [[nodiscard]] View<const T, R> input(const char* name) const {
    const auto found = in.find(name);
    if (found == in.end()) return {};
    const TensorView& x = found->second;
    require(x.type == type_of<T>, kernel, "expected ", name, " in ", name_of(type_of<T>), " as x, got ", name_of(x.type));
    require(x.rank == R, kernel, "expected ", name, " with ", R, " axes, got ", text_of(x.dims()));
    return x.view<const T, R>();
  }
  /// A vector, or a row for each head, as rows.
  [[nodiscard]] View<const T, 2> rows(const char* name) const {
    const auto found = in.find(name);
    if (found != in.end() && found->second.rank == 2) return input<2>(name);
    const View<const T, 1> x = input<1>(name);
    return {x.data, {1, x.shape[0]}, {x.shape[0], x.stride[0]}};
  }
  template <int R>
  [[nodiscard]] View<T, R> output(const char* name, const std::array<Index, R>& shape) const {
    return make(name, type_of<T>, {shape.begin(), shape.end()});
  }
  /// The gradient of an input, in its shape.
  template <int R>
  [[nodiscard]] View<T, R> gradient(const char* name) const {
    return has(name) ? View<T, R>(make("grad_" + std::string(name), type_of<T>, in.find(name)->second.dims())) : View<T, R>{};
  }
  [[nodiscard]] View<T, 2> row_gradient(const char* name) const {
    if (has(name) && in.find(name)->second.rank == 2) return gradient<2>(name);
    const View<T, 1> x = gradient<1>(name);
    return {x.data, {1, x.shape[0]}, {x.shape[0], x.stride[0]}};
  }
  [[nodiscard]] std::span<const std::int64_t> offsets() const {
    const auto found = in.find("offsets");
    if (found == in.end()) return {};
    const TensorView& x = found->second;
    require(x.type == Type::i64 && x.rank == 1 && x.size() > 0 && (x.stride[0] == 1 || x.size() == 1), kernel,
            "expected offsets [n + 1] as dense integers, got ", text_of(x.dims()));
    return {reinterpret_cast<const std::int64_t*>(x.data), std::size_t(x.size())};
  }
  /// y = 0 where no gradient has arrived.
  [[nodiscard]] View<const T, 4> arrived_or_zeros(const char* name, const std::array<Index, 4>& shape) const {
    if (has(name)) return input<4>(name);
    static const T zero = 0;
    return {&zero, shape, {}};
  }
};

/// o = x · weightᵀ + bias.
struct Linear {
  static constexpr const char* name = "linear";
  template <class T>
  static void forward(const Call<T>& call) {
    const View<const T, 2> x = call.template input<2>("x"), weight = call.template input<2>("weight");
    const View<const T, 1> bias = call.template input<1>("bias");
    require(weight.shape[1] == x.shape[1], name, "expected weight [outputs, ", x.shape[1], "], got [", weight.shape[0], ", ",
            weight.shape[1], "]");
    require(!bias.present() || bias.shape[0] == weight.shape[0], name, "expected bias [", weight.shape[0], "], got [",
            bias.shape[0], "]");
    const View<T, 2> o = call.template output<2>("o", {x.shape[0], weight.shape[0]});
    matmul(x, transposed(weight), o, call.context, {.bias = bias});
  }
  template <class T>
  static void backward(const Call<T>& call) {
    const View<const T, 2> x = call.template input<2>("x"), weight = call.template input<2>("weight");
    const Index rows = x.shape[0], outputs = weight.shape[0];
    const View<const T, 4> arrived = [&] {
      if (!call.has("grad_o")) return call.arrived_or_zeros("grad_o", {1, 1, rows, outputs});
      const View<const T, 2> dy = call.template input<2>("grad_o");
      return View<const T, 4>{dy.data, {1, 1, rows, outputs}, {0, 0, dy.stride[0], dy.stride[1]}};
    }();
    const View<const T, 2> dy{arrived.data, {rows, outputs}, {arrived.stride[2], arrived.stride[3]}};
    if (const View<T, 2> dx = call.template gradient<2>("x"); dx.present()) matmul(dy, weight, dx, call.context);
    if (const View<T, 2> dw = call.template gradient<2>("weight"); dw.present()) matmul(transposed(dy), x, dw, call.context);
    if (const View<T, 1> db = call.template gradient<1>("bias"); db.present())
      sum_to<T>({.x = arrived}, {db.data, {1, 1, 1, outputs}, {0, 0, 0, db.stride[0]}}, Accumulate::set, call.context);
  }
};

struct ShortConv {
  static constexpr const char* name = "short_conv";
  template <class T>
  static ConvInputs<T> inputs(const Call<T>& call) {
    return {.x = call.template input<3>("x"),
            .weight = call.template input<2>("weight"),
            .bias = call.rows("bias"),
            .state = call.template input<3>("initial_state"),
            .silu = read_bool(call.settings, "silu", false)};
  }
  template <class T>
  static void forward(const Call<T>& call) {
    const ConvInputs<T> in = inputs(call);
    const auto offsets = call.offsets();
    const Index n = offsets.empty() ? in.x.shape[0] : Index(offsets.size()) - 1, W = in.weight.shape[1], C = in.x.shape[2];
    require(W >= 1, name, "expected weight [C, at least 1], got [", in.weight.shape[0], ", ", W, "]");
    const View<T, 3> o = call.template output<3>("o", in.x.shape);
    conv<T>(in, offsets, {.y = o, .state = call.template output<3>("final_state", {n, W - 1, C})}, call.context);
  }
  template <class T>
  static void backward(const Call<T>& call) {
    const ConvInputs<T> in = inputs(call);
    static const T zero = 0;
    const View<const T, 3> dy = call.has("grad_o") ? call.template input<3>("grad_o") : View<const T, 3>{&zero, in.x.shape, {}};
    const ConvGradients<T> into{.dx = call.template gradient<3>("x"),
                                .dweight = call.template gradient<2>("weight"),
                                .dbias = call.row_gradient("bias"),
                                .dstate = call.template gradient<3>("initial_state")};
    conv_vjp<T>(in, call.offsets(), {.dy = dy, .dstate = call.template input<3>("grad_final_state")}, into, call.context);
  }
};

struct Rotary {
  static constexpr const char* name = "rotary";
  static RotaryPositions positions(const Settings& settings) {
    return {.base = read_number(settings, "base", 10000), .offset = read_size(settings, "position", 0)};
  }
  template <class T>
  static void forward(const Call<T>& call) {
    const View<const T, 4> x = call.template input<4>("x");
    const View<T, 4> o = call.template output<4>("o", x.shape);
    if (call.has("angle")) return rotary<T>(x, call.template input<4>("angle"), o, call.context);
    rotary<T>(x, positions(call.settings), o, call.context);
  }
  template <class T>
  static void backward(const Call<T>& call) {
    const View<const T, 4> x = call.template input<4>("x"), dy = call.arrived_or_zeros("grad_o", x.shape);
    const View<T, 4> dx = call.template gradient<4>("x");
    if (!call.has("angle")) return rotary_vjp<T>(dy, positions(call.settings), dx, call.context);
    rotary_vjp<T>(x, dy, call.template input<4>("angle"), {.dx = dx, .dangle = call.template gradient<4>("angle")}, call.context);
  }
};

/// norm(x) · f(gate), or norm(x · f(gate)).
struct GatedNorm {
  static constexpr const char* name = "gated_norm";
  template <class T>
  struct Read {
    explicit Read(const Call<T>& call)
        : x(call.template input<4>("x")),
          gate(call.template input<4>("gate")),
          parameters{call.rows("weight"), call.rows("bias")},
          gate_first(read_bool(call.settings, "gate_first", false)) {
      constexpr std::array<std::string_view, 3> kinds{"rms", "layer", "l2"}, gates{"silu", "sigmoid", "gelu"};
      constexpr std::array functions{Unary::silu, Unary::sigmoid, Unary::gelu};
      options.kind = Norm(read_choice(call.settings, "kind", kinds));
      options.eps = read_number(call.settings, "eps", options.kind == Norm::l2 ? 1e-12 : 1e-6);
      activation = functions[std::size_t(read_choice(call.settings, "activation", gates))];
    }
    View<const T, 4> x, gate;
    NormParameters<T> parameters;
    NormOptions options;
    Unary activation = Unary::silu;
    bool gate_first;
  };
  template <class T>
  static View<T, 4> scratch(const Call<T>& call, const std::array<Index, 4>& shape) {
    const Index size = shape[0] * shape[1] * shape[2] * shape[3];
    return contiguous(call.context.workspace().template take<T>(size), {shape[0], shape[1], shape[2], shape[3]});
  }
  template <class T>
  static void forward(const Call<T>& call) {
    const Read<T> in(call);
    const View<T, 4> o = call.template output<4>("o", in.x.shape);
    if (in.gate.present() && in.gate_first) {
      gated<T>(in.activation, in.gate, in.x, o, call.context);
      return norm<T>(o, in.parameters, in.options, o, call.context);
    }
    norm<T>(in.x, in.parameters, in.options, o, call.context);
    if (in.gate.present()) gated<T>(in.activation, in.gate, o, o, call.context);
  }
  template <class T>
  static void backward(const Call<T>& call) {
    const Read<T> in(call);
    const View<const T, 4> dy = call.arrived_or_zeros("grad_o", in.x.shape);
    NormGradients<T> into{.dweight = call.row_gradient("weight"), .dbias = call.row_gradient("bias")};
    const View<T, 4> dx = call.template gradient<4>("x"), dg = call.template gradient<4>("gate");
    const Workspace::Scope scope(call.context.workspace());
    if (!in.gate.present()) {
      into.dx = dx;
      norm_vjp<T>(in.x, dy, in.parameters, in.options, into, call.context);
    } else if (in.gate_first) {
      const View<T, 4> product = scratch(call, in.x.shape), dproduct = scratch(call, in.x.shape);
      gated<T>(in.activation, in.gate, in.x, product, call.context);
      into.dx = dproduct;
      norm_vjp<T>(product, dy, in.parameters, in.options, into, call.context);
      gated_vjp<T>(in.activation, in.gate, in.x, dproduct, {.dg = dg, .dx = dx}, call.context);
    } else {
      const View<T, 4> rows = scratch(call, in.x.shape);
      norm<T>(in.x, in.parameters, in.options, rows, call.context);
      // What is read may be overwritten: the normalised rows become their gradient.
      gated_vjp<T>(in.activation, in.gate, rows, dy, {.dg = dg, .dx = rows}, call.context);
      into.dx = dx;
      norm_vjp<T>(in.x, rows, in.parameters, in.options, into, call.context);
    }
  }
};

struct KernelTensor {
  const char* name;
  std::vector<std::vector<std::string>> axes;  // alternatives
  bool differentiable = true;
};

/// A kernel as what calls it by name knows of it.
struct Kernel {
  std::string name;
  std::vector<KernelTensor> inputs, outputs;
  std::vector<std::string> options;
  void (*forward)(const NamedViews&, const Settings&, const MakeTensor&, Context&);
  void (*backward)(const NamedViews&, const Settings&, const MakeTensor&, Context&);
};

/// Calls f with a number of the type of x.
template <class K, class F>
void typed(const NamedViews& in, F f) {
  const auto x = in.find("x");
  require(x != in.end(), K::name, "expected x, got none");
  require(computable(x->second.type), K::name, "expected x of type float32 or float64, got ", name_of(x->second.type));
  if (x->second.type == Type::f32) return f(float());
  return f(double());
}

template <class K>
Kernel kernel(std::vector<KernelTensor> inputs, std::vector<KernelTensor> outputs, std::vector<std::string> options) {
  return {.name = K::name,
          .inputs = std::move(inputs),
          .outputs = std::move(outputs),
          .options = std::move(options),
          .forward =
              [](const NamedViews& in, const Settings& settings, const MakeTensor& make, Context& context) {
                typed<K>(in, [&]<class T>(T) { K::forward(Call<T>{K::name, in, settings, make, context}); });
              },
          .backward =
              [](const NamedViews& in, const Settings& settings, const MakeTensor& make, Context& context) {
                typed<K>(in, [&]<class T>(T) { K::backward(Call<T>{K::name, in, settings, make, context}); });
              }};
}

const std::vector<Kernel>& kernels() {
  static const std::vector<Kernel> all{
      kernel<Linear>({{"x", {{"B", "K"}}}, {"weight", {{"N", "K"}}}, {"bias", {{"N"}}}}, {{"o", {{"B", "N"}}}}, {}),
      kernel<ShortConv>({{"x", {{"B", "T", "C"}}},
                         {"weight", {{"C", "W"}}},
                         {"bias", {{"C"}}},
                         {"initial_state", {{"n", "P", "C"}}},
                         {"offsets", {}, false}},
                        {{"o", {{"B", "T", "C"}}}, {"final_state", {{"n", "P", "C"}}}}, {"silu"}),
      kernel<Rotary>({{"x", {{"B", "T", "H", "D"}}}, {"angle", {{"B", "T", "A", "R"}}}}, {{"o", {{"B", "T", "H", "D"}}}},
                     {"base", "position"}),
      kernel<GatedNorm>({{"x", {{"B", "T", "H", "D"}}},
                         {"gate", {{"B", "T", "H", "D"}}},
                         {"weight", {{"D"}, {"H", "D"}}},
                         {"bias", {{"D"}, {"H", "D"}}}},
                        {{"o", {{"B", "T", "H", "D"}}}}, {"kind", "eps", "activation", "gate_first"})};
  return all;
}

/// A kernel with its options; its methods are those of a law's.
class BoundKernel {
 public:
  BoundKernel(const std::string& name, const std::map<std::string, std::string>& options)
      : kernel_(find(name)), settings_(options.begin(), options.end()) {
    require_known(kernel_.name, settings_, std::span<const std::string>(kernel_.options));
  }
  [[nodiscard]] nb::dict operator()(const nb::dict& arrays, const std::string& /*form*/, int threads, nb::handle empty,
                                    bool /*finite*/) const {
    const NamedArrays in(arrays);
    Outputs made(empty);
    Context& context = context_of(threads);
    {
      const Running running;
      kernel_.forward(in.views(), settings_, std::ref(made), context);
    }
    return made.take();
  }
  [[nodiscard]] nb::dict forward(const nb::dict& arrays, const std::string& form, int threads, nb::handle empty) const {
    nb::dict all = (*this)(arrays, form, threads, empty, false);
    all["tape"] = Tapes<void>::all().keep(nullptr);
    return all;
  }
  [[nodiscard]] nb::dict backward(const nb::dict& arrays, const nb::dict& /*outputs*/, const std::set<std::string>& wanted,
                                  const std::string& /*form*/, int threads, nb::handle empty, std::uintptr_t /*tape*/) const {
    const NamedArrays in(arrays);
    Outputs made(empty);
    Context& context = context_of(threads);
    const MakeTensor make = [&](const std::string& name, Type type, const std::vector<Index>& shape) {
      return wanted.contains(name) ? made(name, type, shape) : LawView{};
    };
    {
      const Running running;
      kernel_.backward(in.views(), settings_, make, context);
    }
    return made.take();
  }
  using NamedAxes = std::vector<std::pair<std::string, std::vector<std::string>>>;
  [[nodiscard]] NamedAxes outputs(const std::set<std::string>& /*names*/) const { return axes_of(kernel_.outputs); }
  [[nodiscard]] NamedAxes inputs(const std::set<std::string>& names) const {
    NamedAxes all;
    for (auto& [name, axes] : axes_of(kernel_.inputs))
      if (names.contains(name)) all.emplace_back(name, axes);
    return all;
  }

 private:
  static const Kernel& find(const std::string& name) {
    for (const Kernel& one : kernels())
      if (one.name == name) return one;
    fail("kernel", "expected linear, short_conv, rotary or gated_norm, got ", name);
  }
  static NamedAxes axes_of(const std::vector<KernelTensor>& tensors) {
    NamedAxes all;
    for (const KernelTensor& tensor : tensors)
      for (const std::vector<std::string>& axes : tensor.axes) all.emplace_back(tensor.name, axes);
    return all;
  }
  const Kernel& kernel_;
  Settings settings_;
};

nb::list all_kernels() {
  nb::list all;
  const auto described = [](const std::vector<KernelTensor>& tensors) {
    nb::list rows;
    for (const KernelTensor& tensor : tensors) {
      nb::dict row;
      row["name"] = tensor.name;
      row["differentiable"] = tensor.differentiable;
      rows.append(row);
    }
    return rows;
  };
  for (const Kernel& one : kernels()) {
    nb::dict row;
    row["name"] = one.name;
    row["inputs"] = described(one.inputs);
    row["outputs"] = described(one.outputs);
    all.append(row);
  }
  return all;
}
}  // namespace

void bind_kernels(nb::module_& module) {
  nb::class_<BoundKernel>(module, "BoundKernel", "A kernel with its options.")
      .def(nb::init<const std::string&, const std::map<std::string, std::string>&>(), nb::arg("kernel"), nb::arg("options"))
      .def("__call__", &BoundKernel::operator(), nb::arg("arrays"), nb::arg("form"), nb::arg("threads"), nb::arg("empty"),
           nb::arg("finite"))
      .def("forward", &BoundKernel::forward, nb::arg("arrays"), nb::arg("form"), nb::arg("threads"), nb::arg("empty"))
      .def("backward", &BoundKernel::backward, nb::arg("arrays"), nb::arg("outputs"), nb::arg("wanted"), nb::arg("form"),
           nb::arg("threads"), nb::arg("empty"), nb::arg("tape"))
      .def("outputs", &BoundKernel::outputs, nb::arg("names"))
      .def("inputs", &BoundKernel::inputs, nb::arg("names"));
  module.def("kernels", &all_kernels, "The tensors of every kernel.");
}

}  // namespace isomer::python
