// inline: o_i = mean v + phi(q_i) C / √K, C the covariance of phi(k) and v over the tokens seen (causal) or all of them (global,
// for images): weights sum to 1 and keep queries apart. A local residual Σ_j r_j∘v_j is added:
//   image    3 × 3 neighbourhood, r from the mean token of the image by a grouped network with the exact GELU (section 3.3 of the
//   source) mean     the last tokens, r from the running mean of tokens: the nearest that is causal dynamic  the last tokens, r
//   from the token itself static   a learned convolution
// The file's name is not that of the preset, which is a word of C++.
#include <cmath>
#include <string>

#include "isomer/base/error.h"
#include "isomer/mixers/parts.h"

namespace isomer::preset::inline_attention {

namespace {
struct Local {
  std::string kind;
  Index width, rows, columns;
};

/// Of values v [H, V].
Value residual(Builder& m, Value v, const Local& local) {
  const Index H = m.node(v).heads, V = m.node(v).size;
  if (local.kind == "static") return m.convolution("residual", v, {.width = local.width});
  require(m.width() % H == 0, m.preset(), "residual=", local.kind, " needs heads that divide the width ", m.width(), ", got ", H);
  Value in = m.x();
  if (local.kind != "dynamic")
    in = m.add_node({.work = graph::Mean{.causal = local.kind == "mean"}, .inputs = {in.node}, .size = m.width()});
  in = m.heads(in, H);
  const Index taps = local.kind == "image" ? 9 : local.width;
  const double bound = 1 / std::sqrt(double(m.width() / H));
  const graph::Init uniform{.kind = graph::Init::Kind::uniform, .a = -bound, .b = bound};
  const graph::HeadLinear network{.bias = true, .weight = uniform, .bias_init = uniform};
  const Value hidden = m.map(Unary::gelu_erf, m.head_linear("residual_in", in, m.width() / H, network));
  const Value r = m.named("r", m.head_linear("residual_out", hidden, taps * V, network));
  if (local.kind == "image")
    return m.add_node(
        {.work = graph::LocalImageSum{local.rows, local.columns}, .inputs = {v.node, r.node}, .heads = H, .size = V});
  return m.add_node({.work = graph::LocalSum{local.width}, .inputs = {v.node, r.node}, .heads = H, .size = V});
}

void build(Builder& m) {
  m.positions({"none", "learned", "rope", "selective-rope"});
  const auto [H, K, V] = m.head_sizes({});
  const bool causal = m.flag("causal", true, "over the tokens so far, or over all of them");
  const std::string phi = m.choice("phi", {"identity", "relu", "leaky-relu", "exp", "relu-affine"}, "feature map of q and k");
  const std::string local =
      m.choice("residual", {"mean", "dynamic", "static", "image", "none"}, "the local residual", causal ? "mean" : "none");
  const Index width = m.size("residual_width", 3, "tokens of the residual for sequences");
  const Index rows = m.size("rows", 0, "of the image", 0), columns = m.size("columns", 0, "of the image", 0);
  m.only_with(local == "mean" || local == "dynamic" || local == "static", "residual=mean, dynamic or static", {"residual_width"});
  m.only_with(local == "image", "residual=image", {"rows", "columns"});
  require(local != "image" || (rows > 0 && columns > 0), m.preset(), "residual=image needs rows and columns, got ", rows, " and ",
          columns);
  require(causal != (local == "image") || local == "none", m.preset(), "residual=", local,
          " needs causal=", causal ? "false" : "true", "; residual=", causal ? "mean" : "image", " is the nearest that works");
  const auto feature = [&, K = K](Value x) {
    if (phi == "relu") return m.map(Unary::relu, x);
    if (phi == "leaky-relu") return m.map(Unary::leaky_relu, x, {.a = 0.01});
    if (phi == "exp") return m.map(Unary::exp, m.affine(x, 0.2));
    if (phi == "relu-affine")
      return m.map(Unary::relu,
                   m.head_linear("features", x, K, {.bias = true, .weight = {.kind = graph::Init::Kind::identity, .a = 1}}));
    return x;
  };
  const Value q = m.named("q", feature(m.positioned(parts::project(m, "q", H, K, {.bias = true}))));
  const Value k = m.named("k", feature(m.positioned(parts::project(m, "k", H, K, {.bias = true}))));
  const Value v = parts::project(m, "v", H, V, {.bias = true});
  ScalarDecayOptions options{.normaliser = ScalarDecayOptions::Normaliser::subtract};
  if (!causal) options.direction = ScalarDecayOptions::Direction::global;
  Value o = m.scalar_decay({.q = q, .k = k, .v = v}, options);
  if (local != "none") o = m.add(o, residual(m, v, {local, width, rows, columns}));
  parts::output(m, o, {.bias = true});
}
}  // namespace

extern const Preset inline_attention{.name = "inline",
                                     .source = "Han et al. 2024, InLine (arXiv 2412.06590), eq. 5",
                                     .summary = "linear attention normalised by subtraction, with a local residual",
                                     .build = build};

}  // namespace isomer::preset::inline_attention
