// The recurrences of the laws in ASCII.
#include <algorithm>
#include <cstdio>
#include <limits>

#include "isomer/mixers/equations.h"

namespace isomer {

namespace {
using Lines = std::vector<std::string>;

struct LawText {
  const graph::Law& law;

  [[nodiscard]] bool has(const char* role) const {
    return std::find(law.roles.begin(), law.roles.end(), role) != law.roles.end();
  }
  [[nodiscard]] static std::string number(double x) {
    char text[32];
    std::snprintf(text, sizeof text, "%.5g", x);
    return text;
  }
  /// "K^-1/2 ", "0.5 " or nothing.
  [[nodiscard]] static std::string factor(const std::optional<double>& scale) {
    if (!scale) return "K^-1/2 ";
    return *scale == 1 ? "" : number(*scale) + " ";
  }

  Lines operator()(const AttentionOptions& o) const {
    const bool taylor = o.kernel == AttentionOptions::Kernel::taylor;
    const bool causal = o.direction == AttentionOptions::Direction::causal;
    std::string seen = causal ? "s <= t" : "all s";
    const std::string last = std::to_string(o.window);
    if (o.window > 0) seen = causal ? "t - " + last + " < s <= t" : "|t - s| < " + last;
    if (o.sinks > 0) seen += " or s < " + std::to_string(o.sinks);
    std::string logit = factor(o.scale) + "q_t . k_s";
    if (o.clamp < std::numeric_limits<double>::infinity()) logit = "min(" + logit + ", " + number(o.clamp) + ")";
    std::string weight = "w_ts = " + (taylor ? "taylor" + std::to_string(o.order) : std::string("exp")) + "(" + logit + ")";
    if (has("log_forget")) weight += " exp(c_t - c_s),   c = running_sum(log_forget)";
    return {weight + ",   " + seen, "o_t = " + normalised(o.normaliser)};
  }
  [[nodiscard]] static std::string normalised(AttentionOptions::Normaliser n) {
    using enum AttentionOptions::Normaliser;
    const std::string sum_of = "sum_s w_ts v_s";
    switch (n) {
      case sum: return sum_of + " / sum_s w_ts";
      case l2: return "l2_norm(" + sum_of + ")";
      case rms: return "rms_norm(" + sum_of + ")";
      case layer: return "layer_norm(" + sum_of + ")";
      case count: return sum_of + " / count(s)";
      case gate: return "gate_t * " + sum_of + " / count(s)";
      case none: break;
    }
    return sum_of;
  }

  Lines operator()(const ScalarDecayOptions& o) const {
    using enum ScalarDecayOptions::Normaliser;
    const std::string scale = factor(o.scale), read = scale + "S' q";
    if (o.normaliser == subtract) {
      const char* over = o.direction == ScalarDecayOptions::Direction::global ? "all tokens" : "tokens s <= t";
      return {std::string("o = mean(v) + ") + scale + "q . covariance(k, v),   over " + over};
    }
    const std::string old = o.direction == ScalarDecayOptions::Direction::global ? ""
                            : has("log_decay")                                   ? "exp(log_decay) S + "
                                                                                 : "S + ";
    const std::string in = has("log_input") ? "exp(log_input) k v'" : "k v'";
    const std::string state =
        o.direction == ScalarDecayOptions::Direction::global ? "S = sum over all tokens of " + in : "S = " + old + in;
    if (o.normaliser == none) return {state, "o = " + read};
    const std::string norm = "n = S with v = 1";
    const std::string eps = o.eps > 0 ? " + " + number(o.eps) : "";
    const std::string below = o.normaliser == sum ? scale + "n . q" + eps : "max(|" + scale + "n . q|, 1)" + eps;
    return {state + ",   " + norm, "o = " + read + " / (" + below + ")"};
  }

  Lines operator()(const ChannelDecayOptions& o) const {
    const bool before = o.read == ChannelDecayOptions::Read::before;
    const std::string scale = factor(o.scale), state = "S = diag(exp(log_decay)) S + k v'";
    if (!before) return {state, "o = " + scale + "S' q"};
    const std::string now = has("bonus") ? " + (q . (bonus * k)) v" : "";
    return {"o = " + (scale.empty() || now.empty() ? scale + "S' q" + now : scale + "(S' q" + now + ")"), state};
  }

  Lines operator()(const DeltaOptions& o) const {
    const std::string read = "o = " + factor(o.scale) + "S' q";
    if (has("a")) return {"S = diag(exp(log_decay)) S + b (a' S) + k v'", read};
    const std::string old = has("log_decay") ? "diag(exp(log_decay)) S" : "S";
    Lines lines{"S = D - beta k (k' D - v'),   D = " + old, read};
    if (o.l2norm) lines.insert(lines.begin(), "q, k of length 1");
    return lines;
  }

  Lines operator()(const ScanOptions&) const {
    const bool complex = has("angle") || has("x_imag");
    if (!complex) return {"o = h = exp(log_decay) * h + in"};
    const std::string in = has("x_imag") ? "(in + i in_imag)" : "in";
    return {"h = exp(log_decay + i angle) * h + " + in, "o = [Re h, Im h]"};
  }

  Lines operator()(const graph::ScanS6Options&) const {
    return {"h = exp(step a) * h + (step * u) b'", has("d") ? "o = h c + d * u" : "o = h c"};
  }
};
}  // namespace

std::string law_symbol(const graph::Law& law, const std::string& role) {
  if (std::holds_alternative<graph::ScanS6Options>(law.options) && role == "x") return "u";
  if (std::holds_alternative<ScanOptions>(law.options) && role == "x") return "in";
  return role == "x_imag" ? "in_imag" : role;
}

Lines law_equations(const graph::Law& law) { return std::visit(LawText{law}, law.options); }

}  // namespace isomer
