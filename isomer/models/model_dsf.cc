#include "isomer/models/model_dsf.h"

#include "isomer/base/error.h"

namespace isomer {

std::vector<ModelLaw> laws_of(const LoadedModel& loaded, const ModelInput& in, Context& context) {
  Parameters<double> parameters;
  const Model<double> model(loaded.model.config(), parameters);
  for (std::size_t layer = 0; layer < model.config().layers.size(); ++layer) {
    const graph::Graph& graph = model.block(Index(layer)).mixer().graph();
    require(graph::causal(graph), "model", "expected causal layers, got ", graph.preset, " of whole sequences in layer ", layer);
  }
  parameters.assign(loaded.parameters.tensors());
  return laws_of(model, in, context);
}

std::vector<ModelLaw> laws_of(const Model<double>& model, const ModelInput& in, Context& context) {
  Tape<double> tape(context, Record::no);
  std::vector<ModelLaw> all;
  model.visit_blocks(tape, in, [&](Index layer, Var<double> x, std::span<const Var<double>> taken) {
    const Block<double>& block = model.block(layer);
    for (LawCall& call : block.mixer().law_calls(tape, block.mixer_input(tape, x), {.taken = taken}))
      all.push_back({layer, std::move(call)});
  });
  return all;
}

}  // namespace isomer
