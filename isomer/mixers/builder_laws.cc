// The laws as nodes: inputs by role, and the shape of what comes out.
#include <algorithm>

#include "isomer/base/error.h"
#include "isomer/mixers/builder.h"

namespace isomer {

Value Builder::law(graph::Law law, std::initializer_list<std::pair<const char*, Value>> inputs, Index heads, Index size) {
  graph::Node all{.name = "o", .work = {}, .heads = heads, .size = size};
  for (const auto& [role, value] : inputs) {
    if (!value.present()) continue;
    law.roles.emplace_back(role);
    all.inputs.push_back(value.node);
  }
  if (graph_.law.empty()) graph_.law = graph::name_of(law);
  all.work = std::move(law);
  return add_node(std::move(all));
}

Value Builder::attention(const Attention& in, const AttentionOptions& options) {
  const Index heads = std::max({node(in.q).heads, node(in.k).heads, node(in.v).heads});
  return law({options, {}}, {{"q", in.q}, {"k", in.k}, {"v", in.v}, {"log_forget", in.log_forget}, {"gate", in.gate}}, heads,
             node(in.v).size);
}

Value Builder::scalar_decay(const ScalarDecay& in, const ScalarDecayOptions& options) {
  const Index heads = std::max({node(in.q).heads, node(in.k).heads, node(in.v).heads});
  return law({options, {}}, {{"q", in.q}, {"k", in.k}, {"v", in.v}, {"log_decay", in.log_decay}, {"log_input", in.log_input}},
             heads, node(in.v).size);
}

Value Builder::channel_decay(const ChannelDecay& in, const ChannelDecayOptions& options) {
  const Index heads = std::max({node(in.q).heads, node(in.k).heads, node(in.v).heads});
  return law({options, {}}, {{"q", in.q}, {"k", in.k}, {"v", in.v}, {"log_decay", in.log_decay}, {"bonus", in.bonus}}, heads,
             node(in.v).size);
}

Value Builder::delta(const Delta& in, const DeltaOptions& options) {
  const Index heads = std::max({node(in.q).heads, node(in.k).heads, node(in.v).heads});
  return law({options, {}},
             {{"q", in.q}, {"k", in.k}, {"v", in.v}, {"beta", in.beta}, {"log_decay", in.log_decay}, {"a", in.a}, {"b", in.b}},
             heads, node(in.v).size);
}

Value Builder::scan(const Scan& in) {
  const bool complex = in.angle.present() || in.x_imag.present();
  return law({ScanOptions{}, {}}, {{"log_decay", in.log_decay}, {"x", in.x}, {"angle", in.angle}, {"x_imag", in.x_imag}}, 1,
             node(in.x).size * (complex ? 2 : 1));
}

Value Builder::scan_s6(const S6& in) {
  return law({graph::ScanS6Options{}, {}}, {{"x", in.x}, {"step", in.step}, {"a", in.a}, {"b", in.b}, {"c", in.c}, {"d", in.d}},
             1, node(in.x).size);
}

}  // namespace isomer
