#include "isomer/models/logits.h"

#include <algorithm>
#include <cmath>

#include "isomer/base/error.h"
#include "isomer/base/suggest.h"
#include "isomer/kernels/loss/loss.h"
#include "isomer/laws/layout.h"
#include "isomer/models/model_dsf.h"

namespace isomer {

namespace {
constexpr std::int64_t kIgnored = -100;

/// Of a type, with so many axes.
const Tensor& expect(const Tensors& in, const char* name, Type type, const char* axes) {
  const auto found = in.find(name);
  require(found != in.end(), name, "expected ", name_of(type), " ", axes, ", found none");
  const Tensor& tensor = found->second;
  const auto rank = std::size_t(1 + std::count(axes, axes + std::string_view(axes).size(), ','));
  require(tensor.type() == type && tensor.shape().size() == rank, name, "expected ", name_of(type), " ", axes, ", got ",
          name_of(tensor.type()), " ", text_of(tensor.shape()));
  return tensor;
}

std::span<const std::int64_t> integers(const Tensor& tensor) { return {tensor.data<std::int64_t>(), std::size_t(tensor.size())}; }

std::span<const float> floats(const Tensor& tensor) { return {tensor.data<float>(), std::size_t(tensor.size())}; }

/// What a model reads of the tensors of a file.
class Request {
 public:
  Request(const ModelConfig& config, const Tensors& in) : config_(config) {
    refuse_unknown(in);
    if (config.vocabulary > 0)
      read_tokens(in);
    else if (in.contains("pixels"))
      read_pixels(in);
    else
      read_inputs(in);
    if (in.contains("types")) read_types(in);
    if (config.kind == ModelKind::table) read_known(in);
    if (in.contains("mask")) read_mask(in);
    if (in.contains("offsets")) read_offsets(in);
    if (in.contains("targets")) read_targets(in);
  }
  [[nodiscard]] const ModelInput& input() const { return input_; }
  [[nodiscard]] bool has_targets() const { return has_targets_; }

 private:
  void refuse_unknown(const Tensors& in) const {
    std::vector<std::string> known{config_.vocabulary > 0 ? "tokens" : "inputs", "targets"};
    const bool pictures = config_.kind == ModelKind::vision || (config_.kind == ModelKind::embedding && config_.features > 0);
    if (pictures && config_.convolutions.empty()) known.emplace_back("pixels");
    if (config_.types > 0) known.emplace_back("types");
    if (config_.kind == ModelKind::table) known.emplace_back("known");
    if (pooled()) known.emplace_back("mask");
    if (config_.kind == ModelKind::language) known.emplace_back("offsets");
    for (const auto& [name, tensor] : in)
      require(std::ranges::find(known, name) != known.end(), "logits", "a ", name_of(config_.kind), " model reads no ", name,
              did_you_mean(name, known));
    require(!(in.contains("pixels") && in.contains("inputs")), "logits", "expected pixels or inputs, got both");
  }

  /// Is there one label for a sequence, or are all tokens seen, so that padding must be told?
  [[nodiscard]] bool pooled() const {
    if (!config_.convolutions.empty()) return false;
    return config_.kind == ModelKind::masked || (!labels_tokens(config_.kind) && config_.kind != ModelKind::regression);
  }

  void read_tokens(const Tensors& in) {
    const Tensor& tokens = expect(in, "tokens", Type::i64, "[B, T]");
    input_.B = tokens.shape()[0];
    input_.T = tokens.shape()[1];
    input_.tokens = integers(tokens);
    for (const std::int64_t token : input_.tokens)
      require(token >= 0 && token < config_.vocabulary, "tokens", "expected tokens from 0 to ", config_.vocabulary - 1, ", got ",
              token);
  }

  void read_inputs(const Tensors& in) {
    const Tensor& inputs = expect(in, "inputs", Type::f32, "[B, T, features]");
    require(inputs.shape()[2] == config_.features, "inputs", "expected vectors of ", config_.features, " numbers, got ",
            inputs.shape()[2]);
    input_.B = inputs.shape()[0];
    input_.T = inputs.shape()[1];
    input_.inputs = floats(inputs);
    expect_finite("inputs", input_.inputs);
  }

  void read_known(const Tensors& in) {
    const Tensor& known = expect(in, "known", Type::f32, "[B, n]");
    require(known.shape()[0] == input_.B, "known", "expected labels of ", input_.B, " tables, got ", known.shape()[0]);
    input_.known = floats(known);
    expect_finite("known", input_.known);
  }

  void read_pixels(const Tensors& in) {
    const Tensor& pixels = expect(in, "pixels", Type::f32, "[B, C, H, W]");
    const View<const float, 4> x = pixels.view<const float, 4>();
    const Index C = x.shape[1], H = x.shape[2], W = x.shape[3];
    const Index patch = C > 0 ? Index(std::llround(std::sqrt(double(config_.features) / double(C)))) : 0;
    require(C > 0 && C * patch * patch == config_.features, "pixels", "expected channels whose squares have ", config_.features,
            " numbers, got ", C, " channels");
    require(H % patch == 0 && W % patch == 0, "pixels", "expected a height and width that ", patch, " divides, got ", H, " and ",
            W);
    const Index across = W / patch;
    input_.B = x.shape[0];
    input_.T = H / patch * across;
    if (config_.positions) expect_size(H, W, patch);
    expect_finite("pixels", floats(pixels));
    for (Index b = 0; b < input_.B; ++b)
      for (Index t = 0; t < input_.T; ++t)
        for (Index c = 0; c < C; ++c)
          for (Index i = 0; i < patch * patch; ++i)
            patches_.push_back(x(b, c, t / across * patch + i / patch, t % across * patch + i % patch));
    input_.inputs = patches_;
  }

  /// Each learned position is one of a place in pictures of the size that the model was made for.
  void expect_size(Index H, Index W, Index patch) const {
    const Index places = config_.length - (config_.class_token ? 1 : 0), across = Index(std::llround(std::sqrt(double(places))));
    if (across * across == places)
      require(H == across * patch && W == H, "pixels", "expected pictures of ", across * patch, " x ", across * patch,
              " pixels, got ", H, " x ", W);
    else
      require(input_.T == places, "pixels", "expected pictures of ", places, " squares, got ", input_.T);
  }

  static void expect_finite(const char* name, std::span<const float> numbers) {
    for (const float x : numbers) require(std::isfinite(x), name, "expected numbers, got ", x);
  }

  void read_mask(const Tensors& in) {
    const Tensor& mask = expect(in, "mask", Type::i64, "[B, T]");
    require(mask.shape() == std::vector<Index>{input_.B, input_.T}, "mask", "expected ", text_of({input_.B, input_.T}), ", got ",
            text_of(mask.shape()));
    for (Index b = 0; b < input_.B; ++b) {
      const std::span<const std::int64_t> row = integers(mask).subspan(std::size_t(b * input_.T), std::size_t(input_.T));
      const Index length = std::ranges::find(row, 0) - row.begin();
      const bool ones = std::all_of(row.begin(), row.begin() + length, [](std::int64_t x) { return x == 1; });
      const bool zeros = std::all_of(row.begin() + length, row.end(), [](std::int64_t x) { return x == 0; });
      require(ones && zeros && length > 0, "mask",
              "expected at least one 1 and then 0 up to the end of each sequence, got others in ", b);
      lengths_.push_back(length);
    }
    input_.lengths = lengths_;
  }

  void read_types(const Tensors& in) {
    const Tensor& types = expect(in, "types", Type::i64, "[B, T]");
    require(types.shape() == std::vector<Index>{input_.B, input_.T}, "types", "expected ", text_of({input_.B, input_.T}),
            ", got ", text_of(types.shape()));
    input_.types = integers(types);
  }

  void read_offsets(const Tensors& in) {
    const Tensor& offsets = expect(in, "offsets", Type::i64, "[n + 1]");
    require(offsets.size() > 1, "offsets", "expected those of at least one sequence, got ", text_of(offsets.shape()));
    input_.offsets = integers(offsets);
    (void)sequences("offsets", input_.B, input_.T, input_.offsets);
  }

  void read_targets(const Tensors& in) {
    has_targets_ = true;
    if (config_.kind == ModelKind::regression) {
      const Tensor& targets = expect(in, "targets", Type::f32, "[B, outputs]");
      expect_shape(targets, {input_.B, config_.outputs});
      input_.targets = floats(targets);
      return;
    }
    const bool of_tokens = labels_tokens(config_.kind);
    const Tensor& targets = expect(in, "targets", Type::i64, of_tokens ? "[B, T]" : "[B]");
    expect_shape(targets, of_tokens ? std::vector<Index>{input_.B, input_.T} : std::vector<Index>{input_.B});
    input_.labels = integers(targets);
    for (const std::int64_t label : input_.labels)
      require(label == kIgnored || (label >= 0 && label < labels_of(config_)), "targets", "expected labels from 0 to ",
              labels_of(config_) - 1, " or ", kIgnored, ", got ", label);
    require(std::ranges::any_of(input_.labels, [](std::int64_t label) { return label != kIgnored; }), "targets",
            "expected at least one that counts, got ", kIgnored, " everywhere");
  }

  static void expect_shape(const Tensor& targets, const std::vector<Index>& shape) {
    require(targets.shape() == shape, "targets", "expected ", text_of(shape), ", got ", text_of(targets.shape()));
  }

  const ModelConfig& config_;
  ModelInput input_;
  std::vector<float> patches_;
  std::vector<Index> lengths_;
  bool has_targets_ = false;
};

/// [B, T, 1, D] as a tensor [B, T, D], or [B, D] where there is one for a sequence.
Tensor copy_of(Var<float> x, bool of_tokens) {
  ISOMER_ASSERT(x.value.stride[3] == 1 && x.value.stride[1] == x.dim(3), "an op's value is dense");
  const std::vector<Index> shape =
      of_tokens ? std::vector<Index>{x.dim(0), x.dim(1), x.dim(3)} : std::vector<Index>{x.dim(0), x.dim(3)};
  Tensor copy(Type::f32, shape);
  std::copy_n(x.value.data, x.value.size(), copy.data<float>());
  return copy;
}

Tensor scalar(double x) {
  Tensor tensor(Type::f32, {1});
  *tensor.data<float>() = float(x);
  return tensor;
}

/// Vector k of x becomes vector `to` of all.
void put(Var<float> x, Index k, Tensor& all, Index to) {
  const Index D = x.dim(3);
  std::copy_n(x.value.data + k * D, D, all.data<float>() + to * D);
}

Tensors streamed(const Model<float>& model, const Request& request, Context& context) {
  const ModelInput& in = request.input();
  require(in.B > 0 && in.T > 0, "tokens", "expected at least one token, got ", in.B, " sequences of ", in.T);
  const ModelConfig& config = model.config();
  const auto parts = sequences("offsets", in.B, in.T, in.offsets);
  Tape<float> tape(context, Record::no);
  ModelState<float> state = model.start(Index(parts.size()));
  Tensor hidden(Type::f32, {in.B, in.T, config.width}), logits(Type::f32, {in.B, in.T, labels_of(config)});
  std::vector<std::int64_t> tokens, offsets;
  std::vector<Index> places;
  for (Index t = 0; t < in.T; ++t) {
    tokens.clear();
    places.clear();
    offsets.assign(1, 0);
    for (const Sequence& part : parts) {
      if (t < part.length) {
        places.push_back(part.batch * in.T + part.first + t);
        tokens.push_back(in.tokens[std::size_t(places.back())]);
      }
      offsets.push_back(std::int64_t(tokens.size()));
    }
    if (tokens.empty()) break;
    // Packed sequences end one after the other.
    const bool all_go_on = tokens.size() == parts.size();
    const ModelOutput<float> out =
        model.logits(tape, tokens, state, all_go_on ? std::span<const std::int64_t>() : std::span<const std::int64_t>(offsets));
    for (std::size_t k = 0; k < places.size(); ++k) {
      put(out.hidden, Index(k), hidden, places[k]);
      put(out.logits, Index(k), logits, places[k]);
    }
    tape.clear();
  }
  Tensors all;
  if (request.has_targets()) {
    const Index rows = in.B * in.T, labels = labels_of(config);
    all.emplace("loss", scalar(cross_entropy<float>({logits.data<float>(), {rows, labels}, {labels, 1}},
                                                    {in.labels.data(), {rows}, {1}}, {}, 1, context)
                                   .mean));
  }
  all.emplace("hidden", std::move(hidden));
  all.emplace("logits", std::move(logits));
  return all;
}

void add_gradients(LoadedModel& loaded, const ModelInput& in, Context& context, Tensors& out) {
  Tape<float> tape(context);
  loaded.parameters.zero_gradients();
  (void)loaded.model.loss(tape, in);
  tape.backward();
  Tensors gradients;
  for (const Parameter<float>& p : loaded.parameters.all()) {
    Tensor gradient(Type::f32, p.spec.shape);
    const std::span<const float> numbers = p.gradient();
    std::fill_n(gradient.data<float>(), gradient.size(), 0.0f);
    std::ranges::copy(numbers, gradient.data<float>());
    gradients.emplace(p.name(), std::move(gradient));
  }
  if (const auto& from = loaded.foreign)
    gradients = put_weights(from->table, views_of(gradients), from->weights.views(), Putting::gradients);
  for (auto& [name, gradient] : gradients) out.emplace("grad." + name, std::move(gradient));
  loaded.parameters.zero_gradients();
}
void add_attention(const LoadedModel& loaded, const ModelInput& in, Context& context, Tensors& out) {
  require(in.T <= kLongestSystem, "logits", "expected at most ", kLongestSystem, " tokens, got ", in.T);
  require(in.offsets.empty(), "logits", "expected a sequence a row, got packed ones");
  for (const ModelLaw& law : laws_of(loaded, in, context)) {
    std::vector<float> all;
    Index heads = 0;
    for (Index b = 0; b < in.B; ++b) {
      const std::vector<DsfView> views = dsf_views(law.call, b);
      heads = Index(views.size());
      for (const DsfView& view : views) all.insert(all.end(), view.weights.begin(), view.weights.end());
    }
    Tensor matrices(Type::f32, {in.B, heads, in.T, in.T});
    std::ranges::copy(all, matrices.data<float>());
    out.emplace("attention.layers." + std::to_string(law.layer) + ".nodes." + std::to_string(law.call.node), std::move(matrices));
  }
}

void add_states(const LoadedModel& loaded, const ModelInput& in, Context& context, Tensors& out) {
  Tape<float> tape(context, Record::no);
  ModelState<float> state = loaded.model.start(in.offsets.empty() ? in.B : Index(in.offsets.size()) - 1);
  (void)loaded.model.prefill(tape, in.tokens, state, in.offsets);
  for (auto& [name, tensor] : state.tensors()) out.emplace("state." + name, std::move(tensor));
}
}  // namespace

Tensors logits_of(LoadedModel& loaded, const Tensors& in, const LogitsOptions& options, Context& context) {
  const Model<float>& model = loaded.model;
  require(!options.stream || model.config().kind == ModelKind::language, "logits",
          "expected a language model to stream, got one of kind ", name_of(model.config().kind));
  require(!(options.stream && options.gradients), "logits", "expected gradients of a batch, got a stream");
  const Request request(model.config(), in);
  require(!options.gradients || request.has_targets(), "logits", "expected targets to take gradients of their loss, found none");
  Tensors out;
  if (options.attention) add_attention(loaded, request.input(), context, out);
  if (options.states) add_states(loaded, request.input(), context, out);
  if (options.stream) {
    out.merge(streamed(model, request, context));
    return out;
  }
  Tape<float> tape(context, Record::no);
  const ModelOutput<float> all = model.logits(tape, request.input());
  out.emplace("hidden", copy_of(all.hidden, true));
  const bool embeds = model.config().kind == ModelKind::embedding;
  out.emplace(embeds ? "embedding" : "logits", copy_of(all.logits, labels_tokens(model.config().kind)));
  tape.clear();
  if (request.has_targets()) out.emplace("loss", scalar(model.loss(tape, request.input()).loss));
  if (options.gradients) add_gradients(loaded, request.input(), context, out);
  return out;
}

}  // namespace isomer
