// The laws as nodes: inputs by role, and the shape of what comes out.
#include "isomer/laws/attention/attention_law.h"
#include "isomer/laws/channel_decay/channel_decay_law.h"
#include "isomer/laws/delta/delta_law.h"
#include "isomer/laws/scalar_decay/scalar_decay_law.h"
#include "isomer/laws/scan/scan_law.h"
#include "isomer/laws/values.h"
#include "isomer/mixers/builder.h"

namespace isomer {

Value Builder::law(std::shared_ptr<const BoundLaw> law, std::initializer_list<std::pair<std::string_view, Value>> inputs) {
  graph::Law own{.law = std::move(law)};
  graph::Node all{.name = "o", .work = {}};
  for (const auto& [role, value] : inputs) {
    if (!value.present()) continue;
    own.add(role);
    all.inputs.push_back(value.node);
  }
  if (graph_.law.empty()) graph_.law = own.name();
  const BoundLaw& bound = *own.law;
  const Given given = own.given;
  all.work = std::move(own);
  const LawSizes sizes = graph::law_sizes(graph_, all, 1, 1);
  for (const auto& [role, value] : inputs)
    if (value.present())
      require_value(bound, given, bound.law().inputs()[std::size_t(bound.law().input(role))],
                    {1, 1, node(value).heads, node(value).size}, sizes);
  const ValueShape shape = output_shape(bound, given, sizes);
  all.heads = shape[2];
  all.size = shape[3];
  return add_node(std::move(all));
}

Value Builder::attention(const Attention& in, const AttentionOptions& options) {
  return law(std::make_shared<BoundAttention>(options),
             {{"q", in.q}, {"k", in.k}, {"v", in.v}, {"log_forget", in.log_forget}, {"gate", in.gate}, {"bias", in.bias}});
}

Value Builder::scalar_decay(const ScalarDecay& in, const ScalarDecayOptions& options) {
  return law(std::make_shared<BoundScalarDecay>(options),
             {{"q", in.q}, {"k", in.k}, {"v", in.v}, {"log_decay", in.log_decay}, {"log_input", in.log_input}});
}

Value Builder::channel_decay(const ChannelDecay& in, const ChannelDecayOptions& options) {
  return law(std::make_shared<BoundChannelDecay>(options),
             {{"q", in.q}, {"k", in.k}, {"v", in.v}, {"log_decay", in.log_decay}, {"bonus", in.bonus}});
}

Value Builder::delta(const Delta& in, const DeltaOptions& options) {
  return law(std::make_shared<BoundDelta>(options),
             {{"q", in.q}, {"k", in.k}, {"v", in.v}, {"beta", in.beta}, {"log_decay", in.log_decay}, {"a", in.a}, {"b", in.b}});
}

Value Builder::scan(const Scan& in) {
  return law(std::make_shared<BoundScan>(),
             {{"log_decay", in.log_decay}, {"x", in.x}, {"angle", in.angle}, {"x_imag", in.x_imag}});
}

Value Builder::scan_s6(const S6& in) {
  return law(std::make_shared<BoundScan>(), {{"x", in.x}, {"step", in.step}, {"a", in.a}, {"b", in.b}, {"c", in.c}, {"d", in.d}});
}

}  // namespace isomer
