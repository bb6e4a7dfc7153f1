// Models from their folders: logits and gradients, and streams over a state.
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "isomer/models/logits.h"
#include "isomer/models/prompt.h"
#include "isomer/models/saved_state.h"
#include "isomer/models/text_pairs.h"
#include "isomer/train/sample.h"
#include "python/binding/arrays.h"
#include "python/binding/contexts.h"
#include "python/binding/module.h"

namespace isomer::python {

namespace {
using Tokens = std::vector<std::int64_t>;
using Shared = std::shared_ptr<LoadedModel>;

/// A dense copy of an array.
Tensor tensor_of(const std::string& name, nb::handle array) {
  const Borrowed from(name, array);
  Tensor to(from.view().type, from.view().dims());
  copy_numbers(from.view(), mutable_view_of(to));
  return to;
}

nb::object array_of(const Tensor& tensor, nb::handle empty) {
  Made made = make_array(empty, tensor.type(), tensor.shape());
  copy_numbers(view_of(tensor), made.view);
  return made.array;
}

/// A stream: what the model remembers of the tokens it has seen.
class Stream {
 public:
  Stream(Shared model, ModelState<float> state) : model_(std::move(model)), state_(std::move(state)) {}

  /// Tokens of every sequence, [B, T] or of one; the logits after the last ones, [B, vocabulary].
  nb::object prefill(nb::handle tokens, int threads, nb::handle empty) {
    const Tensor all = tensor_of("tokens", tokens);
    check(all, all.size() % std::max<Index>(state_.batch(), 1) == 0 && all.size() > 0, "[B, T]");
    return logits(empty, all.size() / state_.batch(),
                  [&](ModelState<float>& state) { return model_->model.prefill(tape_of(threads), numbers(all), state); });
  }
  /// One token of each, [B].
  nb::object step(nb::handle tokens, int threads, nb::handle empty) {
    const Tensor all = tensor_of("tokens", tokens);
    check(all, all.size() == state_.batch(), "[B]");
    return logits(empty, 1, [&](ModelState<float>& state) { return model_->model.step(tape_of(threads), numbers(all), state); });
  }
  [[nodiscard]] Stream copy() const { return *this; }
  void save(const std::string& path) const { save_state(path, state_, *model_); }
  [[nodiscard]] Tokens positions() const { return {state_.positions().begin(), state_.positions().end()}; }
  [[nodiscard]] Index bytes() const { return state_.bytes(); }

 private:
  void check(const Tensor& tokens, bool fits, const char* shape) const {
    require(tokens.type() == Type::i64, "tokens", "expected integers, got ", name_of(tokens.type()));
    require(fits, "tokens", "expected ", shape, " for a state of B = ", state_.batch(), ", got ", text_of(tokens.shape()));
    const Index vocabulary = model_->model.config().vocabulary;
    for (const std::int64_t token : numbers(tokens))
      require(token >= 0 && token < vocabulary, "tokens", "expected numbers from 0 to ", vocabulary - 1, ", got ", token);
  }
  [[nodiscard]] static std::span<const std::int64_t> numbers(const Tensor& tokens) {
    return {tokens.data<std::int64_t>(), std::size_t(tokens.size())};
  }
  template <class F>
  nb::object logits(nb::handle empty, Index tokens, F run) {
    const View<const float, 2> last = advanced(state_, tokens, [&](auto& state) { return View<const float, 2>(run(state)); });
    Made made = make_array(empty, Type::f32, {last.shape[0], last.shape[1]});
    std::copy_n(last.data, last.size(), reinterpret_cast<float*>(made.view.data));
    return made.array;
  }

  Shared model_;
  ModelState<float> state_;
};

class LanguageModel {
 public:
  LanguageModel(const std::string& path, const std::string& weights)
      : loaded_([&] {
          const Running running;
          return load_model(path, weights == "bf16" ? Type::bf16 : Type::f32);
        }()) {}

  /// As the program's `logits`.
  nb::dict run(const nb::dict& arrays, bool stream, bool gradients, int threads, nb::handle empty) {
    Tensors in, out;
    for (const auto& [key, array] : arrays) {
      const std::string name = nb::cast<std::string>(key);
      in[name] = tensor_of(name, array);
    }
    {
      const Running running;
      out = logits_of(*loaded_, in, {.stream = stream, .gradients = gradients}, context_of(threads));
    }
    nb::dict made;
    for (const auto& [name, tensor] : out) made[name.c_str()] = array_of(tensor, empty);
    return made;
  }
  [[nodiscard]] Stream start(Index batch) const { return {loaded_, loaded_->model.start(batch)}; }
  [[nodiscard]] Stream load_state(const std::string& path) const { return {loaded_, isomer::load_state(path, *loaded_)}; }

  /// The vectors of texts, [texts, width].
  nb::object embed(const std::vector<std::string>& texts, int threads, nb::handle empty) {
    std::vector<std::vector<float>> vectors;
    {
      const Running running;
      vectors = embeddings_of(loaded_->model, tokenizer(), texts, context_of(threads), loaded_->most_tokens);
    }
    Made made = make_array(empty, Type::f32, {std::ssize(vectors), width()});
    float* to = reinterpret_cast<float*>(made.view.data);
    for (const std::vector<float>& vector : vectors) to = std::ranges::copy(vector, to).out;
    return made.array;
  }

  [[nodiscard]] Tokens encode(const std::string& text, bool special) const {
    return special ? tokenizer().encode_input(text).tokens : tokenizer().encode(text);
  }
  [[nodiscard]] Tokens prompt(const std::string& text, bool chat, bool first) const {
    return prompt_tokens(*loaded_, text, {.chat = chat, .first = first});
  }
  /// `next`: they follow others.
  [[nodiscard]] nb::bytes decode(const Tokens& tokens, bool next) const {
    const std::string text = next ? tokenizer().decode_next(tokens) : tokenizer().decode(tokens);
    return nb::bytes(text.data(), text.size());
  }
  [[nodiscard]] Tokens ends() const { return loaded_->ends; }
  [[nodiscard]] bool is_text() const { return loaded_->tokenizer != nullptr && loaded_->tokenizer->is_text(); }
  [[nodiscard]] std::string kind() const { return std::string(name_of(loaded_->model.config().kind)); }
  [[nodiscard]] Index vocabulary() const { return loaded_->model.config().vocabulary; }
  [[nodiscard]] Index width() const { return loaded_->model.config().width; }
  [[nodiscard]] std::vector<std::string> layers() const {
    std::vector<std::string> all;
    for (const LayerConfig& layer : loaded_->model.config().layers) all.push_back(layer.preset);
    return all;
  }
  [[nodiscard]] std::string left_out() const { return isomer::left_out(*loaded_); }
  void save(const std::string& folder) const { save_model(folder, *loaded_); }

 private:
  [[nodiscard]] const Tokenizer& tokenizer() const {
    if (loaded_->tokenizer == nullptr) throw Error("expected a model of tokens, got one of vectors");
    return *loaded_->tokenizer;
  }
  Shared loaded_;
};

/// Draws tokens; `logits` are those of one sequence.
std::int64_t draw(Sampler& sampler, nb::handle logits) {
  const Borrowed view("logits", logits);
  require(view.view().type == Type::f32 && view.view().rank == 1 && view.view().stride[0] == 1, "logits",
          "expected one row of float32 numbers");
  return sampler({reinterpret_cast<const float*>(view.view().data), std::size_t(view.view().size())});
}
}  // namespace

void bind_models(nb::module_& module) {
  nb::class_<Stream>(module, "Stream")
      .def("prefill", &Stream::prefill, nb::arg("tokens"), nb::arg("threads"), nb::arg("empty"))
      .def("step", &Stream::step, nb::arg("tokens"), nb::arg("threads"), nb::arg("empty"))
      .def("copy", &Stream::copy)
      .def("save", &Stream::save, nb::arg("path"))
      .def_prop_ro("positions", &Stream::positions)
      .def_prop_ro("bytes", &Stream::bytes);
  nb::class_<LanguageModel>(module, "Model")
      .def(nb::init<const std::string&, const std::string&>(), nb::arg("path"), nb::arg("weights"))
      .def("run", &LanguageModel::run, nb::arg("arrays"), nb::arg("stream"), nb::arg("gradients"), nb::arg("threads"),
           nb::arg("empty"))
      .def("start", &LanguageModel::start, nb::arg("batch"))
      .def("load_state", &LanguageModel::load_state, nb::arg("path"))
      .def("embed", &LanguageModel::embed, nb::arg("texts"), nb::arg("threads"), nb::arg("empty"))
      .def("encode", &LanguageModel::encode, nb::arg("text"), nb::arg("special"))
      .def("prompt", &LanguageModel::prompt, nb::arg("text"), nb::arg("chat"), nb::arg("first"))
      .def("decode", &LanguageModel::decode, nb::arg("tokens"), nb::arg("next"))
      .def("save", &LanguageModel::save, nb::arg("folder"))
      .def_prop_ro("is_text", &LanguageModel::is_text)
      .def_prop_ro("ends", &LanguageModel::ends, "Tokens that end what the model says.")
      .def_prop_ro("kind", &LanguageModel::kind)
      .def_prop_ro("left_out", &LanguageModel::left_out)
      .def_prop_ro("layers", &LanguageModel::layers)
      .def_prop_ro("vocabulary", &LanguageModel::vocabulary)
      .def_prop_ro("width", &LanguageModel::width);
  nb::class_<Sampler>(module, "Sampler")
      .def(
          "__init__",
          [](Sampler* self, double temperature, Index top_k, double top_p, std::uint64_t seed) {
            new (self) Sampler({.temperature = temperature, .top_k = top_k, .top_p = top_p}, seed);
          },
          nb::arg("temperature"), nb::arg("top_k"), nb::arg("top_p"), nb::arg("seed"))
      .def("__call__", &draw, nb::arg("logits"));
}

}  // namespace isomer::python
