#include <array>
#include <cmath>

#include "isomer/base/error.h"
#include "isomer/mixers/parts.h"

namespace isomer::parts {

double logit_clamp(Builder& m) { return m.limit("clamp", "the largest logit; what is above is cut to it"); }

namespace {
/// Keys and values of one vector for all heads (DeepSeek-V2, arXiv 2405.04434, eq. 9-11, 15), here without positions.
struct Latent {
  Index rank = 0, common = 0;
};
struct KeysAndValues {
  Value k, v;
};

Latent latent_of(Builder& m, Index key) {
  Latent latent;
  latent.rank = m.size("latent", 0, "size of the normed vector that keys and values are made of; 0: they are of the input", 0);
  latent.common = m.size("common_key", 0, "latent: the last channels of a key that all heads share, of the input itself", 0);
  m.only_with(latent.rank > 0, "latent", {"common_key"});
  require(latent.common < key, "common_key", "expected a number below key=", key, ", got ", latent.common);
  return latent;
}

KeysAndValues latent_keys(Builder& m, const Latent& latent, const Builder::HeadSizes& sizes) {
  const auto [H, K, V] = sizes;
  const Index own = K - latent.common;
  const Value down = m.linear("kv_down", m.x(), latent.rank + latent.common);
  const Value low = m.normalise("kv_norm", m.slice(down, 0, latent.rank), {.kind = Norm::rms, .weight = true, .shared = true});
  const Value up = m.heads(m.linear("kv", low, H * (own + V)), H);
  Value k = m.slice(up, 0, own);
  if (latent.common > 0) {
    const Value ones = m.affine(m.slice(k, 0, 1), 0, 1);
    k = m.concat({k, m.multiply(ones, m.slice(down, latent.rank, latent.common))});
  }
  return {m.named("k", k), m.named("v", m.slice(up, own, V))};
}
/// The buckets of T5 (Raffel et al. 2020): the nearest distances have one each, those farther away share them on a scale of
/// logarithms up to `farthest`, computed in float as transformers does. Both sides have as many if tokens see what is behind
/// them.
struct Buckets {
  Index count, farthest;
  bool causal;

  [[nodiscard]] Index of(Index distance) const {
    const Index side = causal ? count : count / 2, own = std::max<Index>(side / 2, 1);
    const Index first = !causal && distance > 0 ? side : 0, away = std::abs(distance);
    if (away < own) return first + away;
    const float logarithm = std::log(float(away) / float(own)) / float(std::log(double(farthest) / double(own)));
    return first + std::min(own + Index(logarithm * float(side - own)), side - 1);
  }
};

/// A bias for each bucket of distances, which all layers share; absent when there is none. Of weights that are exponentials.
Value distance_bias(Builder& m, Index heads, const AttentionOptions& options) {
  if (options.kernel != AttentionOptions::Kernel::exp) return {};
  const bool t5 = m.choice("distance_bias", {"none", "t5"}, "logits get a learned number of each head and distance") == "t5";
  const bool causal = options.direction == AttentionOptions::Direction::causal;
  const Buckets buckets{m.size("buckets", 32, "distance_bias=t5: numbers of a head, for both sides", causal ? 2 : 4),
                        m.size("farthest", 128, "distance_bias=t5: from here on distances are the same", 2), causal};
  m.only_with(t5, "distance_bias=t5", {"buckets", "farthest"});
  if (!t5) return {};
  require(buckets.farthest > buckets.count, "farthest", "expected a number above buckets=", buckets.count, ", got ",
          buckets.farthest);
  require(options.sinks == 0, m.preset(), "distance_bias needs sinks=0, which is the nearest that works");
  const Index last = causal ? 0 : buckets.farthest;
  graph::Gather all;
  for (Index distance = -buckets.farthest; distance <= last; ++distance) all.places.push_back(buckets.of(distance));
  const Index N = Index(all.places.size());
  const Value own = m.shared_parameter("distance_bias", heads, buckets.count, graph::normal(0.02));
  return m.named("bias", m.add_node({.work = std::move(all), .inputs = {own.node}, .heads = heads, .size = N}));
}
}  // namespace

void attention_mixer(Builder& m, const AttentionMixer& what) {
  AttentionOptions options = what.options;
  const std::string position = m.positions({"rope", "none", "learned", "selective-rope"});
  const auto [H, K, V] = m.head_sizes({});
  const Index G = m.size("kv_heads", H, "heads of keys and values; each serves heads / kv_heads queries");
  require(H % G == 0, m.preset(), "expected kv_heads that divide heads=", H, ", got ", G);
  m.rope_of_models(K);
  const bool bias = m.flag("bias", false, "biases of q, k and v");
  const bool output_bias = m.flag("output_bias", false, "a bias of the output");
  const std::string qk_norm =
      m.choice("qk_norm", {"none", "head", "all"}, "RMS norm of queries and keys, of each head or of all");
  const double qk_norm_eps = m.number("qk_norm_eps", 1e-6, "what the norm of queries and keys adds under its root");
  m.only_with(qk_norm != "none", "a qk_norm", {"qk_norm_eps"});
  const Latent latent = latent_of(m, K);
  require(latent.rank == 0 || (position == "none" && G == H && !bias && qk_norm == "none"), m.preset(),
          "latent needs position=none, kv_heads=heads and neither bias nor qk_norm");
  const bool gated = m.flag("gate", false, "a sigmoid gate of each channel on the output");
  const double usual = 1 / std::sqrt(double(K)), scale = m.number("scale", usual, "of the products of queries and keys");
  if (scale != usual) options.scale = scale;
  const bool causal = m.flag("causal", true, "a token sees itself and those before");
  const bool decay =
      m.flag("decay", false, "weights of s for t fade by a linear gate / 1024 of each token s to t - 1 (may also grow)");
  options.clamp = logit_clamp(m);
  if (!causal) options.direction = AttentionOptions::Direction::bidirectional;
  require(causal || !decay, m.preset(), "decay=true needs causal=true");
  const Value by_distance = distance_bias(m, H, options);

  const auto feature = [&](const char* name, Value x) { return what.feature ? m.named(name, what.feature(x)) : x; };
  const auto featured = [&, K = K](const char* name, Index heads) {
    Value x = project(m, name, heads, K, {.bias = bias});
    const graph::Normalise norm{.kind = Norm::rms, .eps = qk_norm_eps, .weight = true, .shared = true};
    if (qk_norm == "head") x = m.normalise(std::string(name) + "_norm", x, norm);
    if (qk_norm == "all") x = m.heads(m.normalise(std::string(name) + "_norm", m.flat(x), norm), heads);
    return feature(name, m.positioned(x));
  };
  const Value q = featured("q", H);
  const KeysAndValues low = latent.rank > 0 ? latent_keys(m, latent, {H, K, V}) : KeysAndValues{};
  const Value k = latent.rank > 0 ? feature("k", low.k) : featured("k", G);
  const Value v = latent.rank > 0 ? low.v : project(m, "v", G, V, {.bias = bias});
  // The law's gates between s and t are those of s + 1 to t; the authors' are one token earlier.
  const auto fades = [&, H = H] {
    return m.shift(m.affine(m.heads(m.linear("decay", m.x(), H, {.bias = true}), H), 1.0 / 1024));
  };
  const Value fade = decay ? fades() : Value{};
  const auto law = [&](Value values, Sums kind, Value gate, double eps) {
    using Normaliser = AttentionOptions::Normaliser;
    // In the order of Sums.
    constexpr std::array kNormalisers{Normaliser::sum, Normaliser::none, Normaliser::count, Normaliser::gate,
                                      Normaliser::l2,  Normaliser::rms,  Normaliser::layer};
    options.normaliser = kNormalisers[std::size_t(kind)];
    options.eps = eps > 0 ? std::optional(eps) : std::nullopt;
    return m.attention({.q = q, .k = k, .v = values, .log_forget = fade, .gate = gate, .bias = by_distance}, options);
  };
  const bool odd = options.kernel == AttentionOptions::Kernel::taylor && options.order % 2 != 0;
  Value o = read_out(m, v, what.readout, {.heads = H, .laws_normalise = true, .positive = !odd, .causal = causal, .law = law});
  if (gated) o = parts::gated(m, Unary::sigmoid, o);
  output(m, m.flat(o), {.bias = output_bias});
}

}  // namespace isomer::parts
