// Mixers with weights of their own: forward, backward, and streams over a state.
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "isomer/io/safetensors.h"
#include "isomer/mixers/preset.h"
#include "isomer/nn/init.h"
#include "isomer/nn/mixer.h"
#include "python/binding/contexts.h"
#include "python/binding/module.h"
#include "python/binding/named_arrays.h"

namespace isomer::python {

namespace {
using Options = std::map<std::string, std::string>;

/// What mixers run on. A tape stays with its context, whichever thread goes back through it, so there is one for all of them, and
/// they take turns.
struct Bench {
  std::mutex mutex;
  std::map<int, Context> contexts;

  Context& context(int threads) { return contexts.try_emplace(threads, threads).first->second; }
};

/// In a child after a fork a new one: the threads of the parent's are not there.
Bench& bench() {
  static std::mutex mutex;
  static std::map<unsigned, Bench> all;
  const std::lock_guard held(mutex);
  return all[fork_count()];
}

using Arrays = std::list<Borrowed>;
Arrays borrowed(const nb::list& arrays, const std::vector<std::string>& names) {
  Arrays all;
  require(nb::len(arrays) == names.size(), "mixer", "expected ", names.size(), " weights, got ", nb::len(arrays));
  std::size_t i = 0;
  for (const nb::handle array : arrays) all.emplace_back(names[i++], array);
  return all;
}

template <class T>
struct Weights;

/// A forward pass that waits for its backward pass.
template <class T>
struct MixerTape {
  MixerTape(std::shared_ptr<Weights<T>> own, Context& context) : weights(std::move(own)), tape(context) {}
  std::shared_ptr<Weights<T>> weights;
  Tape<T> tape;
  std::vector<std::int64_t> offsets = {};
  Var<T> x = {}, y = {};
  bool spent = false;

  void forward(const TensorView& in, std::vector<std::int64_t> packed) {
    tape.clear();
    spent = false;
    offsets = std::move(packed);
    // The caller's array may be gone, or moved, when backward comes.
    const View<T, 4> own = contiguous(tape.template keep<T>(in.size()), {in.shape[0], in.shape[1], 1, in.shape[2]});
    copy_numbers(in, {type_of<T>, reinterpret_cast<std::byte*>(own.data), 3, in.shape, {own.stride[0], own.stride[1], 1}});
    x = tape.input(own, true);
    y = weights->mixer.forward(tape, x, {.offsets = offsets});
  }
};

template <class T>
struct Weights {
  explicit Weights(const graph::Graph& graph) : mixer(graph, parameters, "") {
    for (const Parameter<T>& p : parameters.all()) names.push_back(p.name());
  }
  /// Takes the caller's numbers, unless they are these very ones.
  void assign(const Arrays& arrays) {
    auto from = arrays.begin();
    for (const Parameter<T>& p : parameters.all()) {
      const TensorView& view = (from++)->view();
      const MutableTensorView to = p.numbers();
      require(view.dims() == p.spec.shape, "mixer", "expected ", p.name(), " of shape ", text_of(p.spec.shape), ", got ",
              text_of(view.dims()));
      if (view.data != to.data || view.type != to.type) copy_numbers(view, to);
    }
  }
  Parameters<T> parameters;
  Mixer<T> mixer;
  std::vector<std::string> names;
  std::mutex idle_mutex;                            // a tape is given back whenever its graph ends
  std::vector<std::unique_ptr<MixerTape<T>>> idle;  // whose memory the next pass takes
};

void expect_tokens(const TensorView& x, Type type, Index width) {
  require(x.type == type, "mixer", "expected x in ", name_of(type), " as the weights, got ", name_of(x.type));
  require(x.rank == 3 && x.shape[2] == width, "mixer", "expected x [B, T, ", width, "], got ", text_of(x.dims()));
}

/// What a mixer remembers of the tokens it has seen.
template <class T>
class MixerStream {
 public:
  MixerStream(std::shared_ptr<Weights<T>> weights, MixerState<T> state)
      : weights_(std::move(weights)), state_(std::move(state)) {}
  nb::object prefill(nb::handle array, const nb::list& weights, int threads, nb::handle empty) {
    const Arrays own = borrowed(weights, weights_->names);
    const Borrowed x("x", array);
    expect_tokens(x.view(), type_of<T>, weights_->mixer.graph().width);
    Made made = make_array(empty, type_of<T>, x.view().dims());
    const View<const T, 3> from = x.view().template view<const T, 3>();
    const View<T, 4> in{const_cast<T*>(from.data),
                        {from.shape[0], from.shape[1], 1, from.shape[2]},
                        {from.stride[0], from.stride[1], from.stride[2], from.stride[2]}};
    advanced(state_, from.shape[1], [&](MixerState<T>& state) {
      Bench& at = bench();
      const std::lock_guard turn(at.mutex);
      weights_->assign(own);
      Tape<T> tape(at.context(threads), Record::no);
      const Var<T> y = weights_->mixer.prefill(tape, tape.input(in), state);
      copy_numbers(dense_view(type_of<T>, reinterpret_cast<const std::byte*>(y.value.data), x.view().dims()), made.view);
      return true;
    });
    return made.array;
  }
  [[nodiscard]] MixerStream copy() const { return *this; }
  void save(const std::string& path) const { state_.save(path); }
  [[nodiscard]] std::vector<std::int64_t> positions() const { return {state_.positions().begin(), state_.positions().end()}; }
  [[nodiscard]] Index bytes() const { return state_.bytes(); }

 private:
  std::shared_ptr<Weights<T>> weights_;
  MixerState<T> state_;
};

class BoundMixer {
 public:
  BoundMixer(const std::string& preset, Index width, Index layer, Index layers, const Options& options)
      : graph_(
            build_mixer(preset, {.width = width, .layer = layer, .layers = layers}, Settings(options.begin(), options.end()))) {}

  /// Name, numbers and whether they are trained, of every weight: arrays of PyTorch over the mixer's own memory.
  [[nodiscard]] nb::list parameters(std::uint64_t seed) {
    nb::list all;
    const std::shared_ptr<Weights<float>> own = weights<float>();
    initialise(own->parameters, seed);
    for (const Parameter<float>& p : own->parameters.all()) {
      const std::vector<std::size_t> shape(p.spec.shape.begin(), p.spec.shape.end());
      const nb::capsule owner(new std::shared_ptr<Weights<float>>(own),
                              [](void* held) noexcept { delete static_cast<std::shared_ptr<Weights<float>>*>(held); });
      auto* numbers = reinterpret_cast<float*>(p.numbers().data);
      all.append(
          nb::make_tuple(p.name(), nb::ndarray<nb::pytorch, float>(numbers, shape.size(), shape.data(), owner), p.trained()));
    }
    return all;
  }

  /// y [B, T, width] and, if recorded, what backward() finds by its address.
  [[nodiscard]] nb::list forward(nb::handle x, const nb::list& weights, nb::handle offsets, int threads, bool record,
                                 nb::handle empty) {
    return typed(x, [&]<class T>(T, const Borrowed& in) {
      expect_tokens(in.view(), type_of<T>, graph_.width);
      const std::shared_ptr<Weights<T>> own = this->weights<T>();
      const Arrays numbers = borrowed(weights, own->names);
      std::vector<std::int64_t> packed = integers(offsets);
      Made y = make_array(empty, type_of<T>, in.view().dims());
      std::shared_ptr<MixerTape<T>> tape;
      {
        const Running running;
        Bench& at = bench();
        const std::lock_guard turn(at.mutex);
        own->assign(numbers);
        if (record) {
          tape = take<T>(own, at.context(threads));
          tape->forward(in.view(), std::move(packed));
          copy_out(tape->y, y);
        } else {
          Tape<T> plain(at.context(threads), Record::no);
          const View<T, 4> view = four_axes<T>(in.view());
          copy_out(own->mixer.forward(plain, plain.input(view), {.offsets = packed}), y);
        }
      }
      nb::list made;
      made.append(y.array);
      if (record) made.append(Tapes<MixerTape<T>>::all().keep(tape));
      return made;
    });
  }

  /// Gradients of x and of every weight, None for those that are not trained. The tape of the forward pass has all that this
  /// takes; `self` may be null, and is asked where that tape is not found.
  [[nodiscard]] static nb::list backward(BoundMixer* self, nb::handle dy, nb::handle x, const nb::list& weights,
                                         nb::handle offsets, int threads, nb::handle empty, std::uintptr_t address) {
    return typed(x, [&]<class T>(T, const Borrowed& in) {
      std::shared_ptr<MixerTape<T>> tape = Tapes<MixerTape<T>>::all().find(address);
      require(tape != nullptr || self != nullptr, "mixer",
              "expected a mixer that lives as long as its graph, got one that is gone");
      const std::shared_ptr<Weights<T>> own = tape != nullptr ? tape->weights : self->weights<T>();
      const Arrays numbers = borrowed(weights, own->names);
      const Borrowed arrived("grad", dy);
      require(arrived.view().dims() == in.view().dims(), "mixer", "expected a gradient of shape ", text_of(in.view().dims()),
              ", got ", text_of(arrived.view().dims()));
      std::vector<std::int64_t> packed = integers(offsets);
      std::vector<Made> made;
      made.push_back(make_array(empty, type_of<T>, in.view().dims()));
      for (const Parameter<T>& p : own->parameters.all())
        made.push_back(p.trained() ? make_array(empty, type_of<T>, p.spec.shape) : Made{nb::none(), {}});
      {
        const Running running;
        Bench& at = bench();
        const std::lock_guard turn(at.mutex);
        own->assign(numbers);
        if (tape == nullptr || tape->spent || &tape->tape.context() != &at.context(threads)) {
          tape = take<T>(own, at.context(threads));
          tape->forward(in.view(), std::move(packed));
        }
        go_back(*tape, arrived.view(), made);
      }
      nb::list all;
      for (const Made& one : made) all.append(one.array);
      return all;
    });
  }

  template <class T>
  [[nodiscard]] MixerStream<T> start(Index batch) {
    const std::shared_ptr<Weights<T>> own = weights<T>();
    return {own, own->mixer.start(batch)};
  }
  template <class T>
  [[nodiscard]] MixerStream<T> load(const std::string& path) {
    const std::shared_ptr<Weights<T>> own = weights<T>();
    return {own, own->mixer.load(path)};
  }
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> options() const { return graph_.options; }
  [[nodiscard]] Options changed() const { return {graph_.changed.begin(), graph_.changed.end()}; }
  [[nodiscard]] bool causal() const { return graph::causal(graph_); }

 private:
  template <class T>
  [[nodiscard]] std::shared_ptr<Weights<T>> weights() {
    std::shared_ptr<Weights<T>>& own = std::get<std::shared_ptr<Weights<T>>>(weights_);
    if (own == nullptr) own = std::make_shared<Weights<T>>(graph_);
    return own;
  }
  template <class F>
  static nb::list typed(nb::handle x, F f) {
    const Borrowed in("x", x);
    const Type type = in.view().type;
    require(computable(type), "mixer", "expected x of type float32 or float64, got ", name_of(type));
    return type == Type::f32 ? f(float(), in) : f(double(), in);
  }
  static std::vector<std::int64_t> integers(nb::handle offsets) {
    if (offsets.is_none()) return {};
    const Borrowed from("offsets", offsets);
    require(from.view().type == Type::i64 && from.view().rank == 1, "mixer", "expected offsets [n + 1] of integers, got ",
            text_of(from.view().dims()));
    Tensor dense(Type::i64, from.view().dims());
    copy_numbers(from.view(), mutable_view_of(dense));
    return {dense.data<std::int64_t>(), dense.data<std::int64_t>() + dense.size()};
  }
  template <class T>
  static View<T, 4> four_axes(const TensorView& x) {
    return {const_cast<T*>(reinterpret_cast<const T*>(x.data)),
            {x.shape[0], x.shape[1], 1, x.shape[2]},
            {x.stride[0], x.stride[1], x.stride[2], x.stride[2]}};
  }
  template <class T>
  static void copy_out(const Var<T>& y, const Made& to) {
    const View<T, 4>& v = y.value;
    copy_numbers({type_of<T>,
                  reinterpret_cast<const std::byte*>(v.data),
                  3,
                  {v.shape[0], v.shape[1], v.shape[3]},
                  {v.stride[0], v.stride[1], v.stride[3]}},
                 to.view);
  }
  /// A tape that goes back to its weights when the last who knows it has gone.
  template <class T>
  static std::shared_ptr<MixerTape<T>> take(const std::shared_ptr<Weights<T>>& own, Context& context) {
    std::unique_ptr<MixerTape<T>> tape;
    const std::lock_guard held(own->idle_mutex);
    for (auto& idle : own->idle)
      if (idle != nullptr && &idle->tape.context() == &context) {
        tape = std::move(idle);
        break;
      }
    std::erase(own->idle, nullptr);
    if (tape == nullptr) tape = std::make_unique<MixerTape<T>>(own, context);
    tape->weights = own;
    return {tape.release(), [](MixerTape<T>* used) {
              std::unique_ptr<MixerTape<T>> back(used);
              // An idle tape must not keep the weights that keep it.
              const std::shared_ptr<Weights<T>> to = std::move(back->weights);
              const std::lock_guard held(to->idle_mutex);
              if (to->idle.size() < 4) to->idle.push_back(std::move(back));
            }};
  }
  template <class T>
  static void go_back(MixerTape<T>& tape, const TensorView& arrived, const std::vector<Made>& made) {
    Parameters<T>& parameters = tape.weights->parameters;
    parameters.zero_gradients();
    const View<T, 4> seed = tape.tape.seed(tape.y);
    copy_numbers(arrived, {type_of<T>,
                           reinterpret_cast<std::byte*>(seed.data),
                           3,
                           {seed.shape[0], seed.shape[1], seed.shape[3]},
                           {seed.stride[0], seed.stride[1], seed.stride[3]}});
    tape.spent = true;  // even if it is interrupted
    tape.tape.backward();
    copy_out<T>({View<T, 4>{const_cast<T*>(tape.tape.arrived(tape.x).data), tape.x.value.shape, tape.x.value.stride}}, made[0]);
    std::size_t i = 1;
    for (const Parameter<T>& p : parameters.all()) {
      const MutableTensorView& to = made[i++].view;
      if (!p.trained()) continue;
      const std::span<T> gradient = p.gradient();
      if (gradient.empty())
        std::fill_n(reinterpret_cast<T*>(to.data), to.size(), T(0));
      else
        copy_numbers(dense_view(type_of<T>, reinterpret_cast<const std::byte*>(gradient.data()), p.spec.shape), to);
    }
  }

  graph::Graph graph_;
  std::tuple<std::shared_ptr<Weights<float>>, std::shared_ptr<Weights<double>>> weights_;
};

template <class T>
void bind_stream(nb::module_& module, const char* name) {
  nb::class_<MixerStream<T>>(module, name)
      .def("prefill", &MixerStream<T>::prefill, nb::arg("x"), nb::arg("weights"), nb::arg("threads"), nb::arg("empty"))
      .def("copy", &MixerStream<T>::copy)
      .def("save", &MixerStream<T>::save, nb::arg("path"))
      .def_prop_ro("positions", &MixerStream<T>::positions)
      .def_prop_ro("bytes", &MixerStream<T>::bytes);
}

nb::dict read_tensors(const std::string& path, nb::handle empty) {
  Tensors tensors;
  {
    const Running running;
    tensors = read_safetensors(path);
  }
  nb::dict all;
  for (const auto& [name, tensor] : tensors) {
    const Type type = floating(tensor.type()) && !computable(tensor.type()) ? Type::f32 : tensor.type();
    Made made = make_array(empty, type, tensor.shape());
    copy_numbers(view_of(tensor), made.view);
    all[name.c_str()] = made.array;
  }
  return all;
}

void write_tensors(const std::string& path, const nb::dict& arrays) {
  const NamedArrays from(arrays);
  Tensors tensors;
  for (const auto& [name, view] : from.views()) {
    Tensor& own = tensors[name] = Tensor(view.type, view.dims());
    copy_numbers(view, mutable_view_of(own));
  }
  const Running running;
  write_safetensors(path, tensors);
}
}  // namespace

void bind_mixers(nb::module_& module) {
  nb::class_<BoundMixer>(module, "Mixer", "A preset with its options, and weights.")
      .def(nb::init<const std::string&, Index, Index, Index, const Options&>(), nb::arg("preset"), nb::arg("width"),
           nb::arg("layer"), nb::arg("layers"), nb::arg("options"))
      .def("parameters", &BoundMixer::parameters, nb::arg("seed"))
      .def("forward", &BoundMixer::forward, nb::arg("x"), nb::arg("weights"), nb::arg("offsets").none(), nb::arg("threads"),
           nb::arg("record"), nb::arg("empty"))
      .def("start_f32", &BoundMixer::start<float>, nb::arg("batch"))
      .def("start_f64", &BoundMixer::start<double>, nb::arg("batch"))
      .def("load_f32", &BoundMixer::load<float>, nb::arg("path"))
      .def("load_f64", &BoundMixer::load<double>, nb::arg("path"))
      .def_prop_ro("options", &BoundMixer::options)
      .def_prop_ro("changed", &BoundMixer::changed)
      .def_prop_ro("causal", &BoundMixer::causal);
  module.def("mixer_backward", &BoundMixer::backward, nb::arg("mixer").none(), nb::arg("grad"), nb::arg("x"), nb::arg("weights"),
             nb::arg("offsets").none(), nb::arg("threads"), nb::arg("empty"), nb::arg("tape"));
  bind_stream<float>(module, "MixerStreamF32");
  bind_stream<double>(module, "MixerStreamF64");
  module.def("read_tensors", &read_tensors, nb::arg("path"), nb::arg("empty"), "A safetensors file, BF16 and F16 as F32.");
  module.def("write_tensors", &write_tensors, nb::arg("path"), nb::arg("arrays"));
  module.def(
      "mixer_tapes", [] { return Tapes<MixerTape<float>>::all().count() + Tapes<MixerTape<double>>::all().count(); },
      "How many forward passes of mixers wait for their backward.");
}

}  // namespace isomer::python
