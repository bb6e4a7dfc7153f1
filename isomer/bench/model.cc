#include "isomer/bench/model.h"

#include "isomer/base/rng.h"
#include "isomer/mixers/preset.h"
#include "isomer/models/cost.h"
#include "isomer/nn/init.h"

namespace isomer {

namespace {
constexpr std::uint64_t kSeed = 1;
// Slow enough for any mixer, so that a run of steps stays finite.
constexpr double kRate = 3e-4;
}  // namespace

ModelConfig bench_config(const std::string& preset, const BenchModelSizes& sizes) {
  ModelConfig config{.width = sizes.width, .mlp = MlpKind::gelu, .vocabulary = sizes.vocabulary};
  config.layers.assign(std::size_t(sizes.layers), {std::string(find_preset(preset).name)});
  return config;
}

BenchModel::BenchModel(const ModelConfig& config, Type storage) : parameters(storage), model(config, parameters) {
  initialise(parameters, kSeed);
}

std::vector<std::int64_t> BenchModel::draw(Index count, std::uint64_t stream) const {
  Rng rng(kSeed, stream);
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(count));
  for (std::int64_t& token : tokens) token = std::int64_t(rng.below(std::uint64_t(model.config().vocabulary)));
  return tokens;
}

BenchTraining::BenchTraining(const ModelConfig& config, Index batch, Index length, Context& context)
    : BenchModel(config),
      B(batch),
      T(length),
      tokens(draw(B * T, 1)),
      labels(draw(B * T, 2)),
      optimiser(parameters, {}),
      tape(context) {}

double BenchTraining::step() {
  const double loss = model.loss(tape, {.B = B, .T = T, .tokens = tokens, .labels = labels}).loss;
  tape.backward();
  tape.clear();
  (void)optimiser.step(kRate, tape.context());
  parameters.zero_gradients();
  return loss;
}

double BenchTraining::law_flops_per_token() const { return 3 * cost_of(model.config(), T).law_flops; }
double BenchTraining::flops_per_token() const { return 6 * double(parameters.trained_size()) + law_flops_per_token(); }

}  // namespace isomer
