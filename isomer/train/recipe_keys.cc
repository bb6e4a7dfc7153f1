#include "isomer/train/recipe_keys.h"

namespace isomer {

namespace {
constexpr double kHuge = 1e300;

void bind_model(ModelRecipe& m, Binder& b) {
  b.text("model.from", m.from);
  const bool fresh = m.from.empty();
  if (fresh) {
    b.choice("model.kind", m.kind, {"auto", "language", "classifier", "encoder", "vision", "regression"});
    b.size("model.width", m.width, 1);
  }
  b.list("model.layers", m.layers);
  if (fresh) {
    b.size("model.repeat", m.repeat, 1);
    b.choice("model.mlp", m.mlp, {"none", "gelu", "swiglu", "channel-mix"});
    b.number("model.mlp_factor", m.mlp_factor, 0, kHuge);
    b.choice("model.norm", m.norm, {"rms", "layer"});
    b.flag("model.tied", m.tied);
  }
  b.number("model.dropout", m.dropout, 0, 0.99);
  if (!fresh) return;
  b.number("model.logit_cap", m.logit_cap, 0, kHuge);
  b.choice("model.positions", m.positions, {"auto", "true", "false"});
  b.number("model.deviation", m.deviation, 0, kHuge);
  b.number("model.qk_identity", m.qk_identity, 0, kHuge);
}
}  // namespace

void bind(Recipe& r, Binder& b) {
  bind_model(r.model, b);
  TrainRecipe& t = r.train;
  Index seed = Index(t.seed);
  b.size("train.steps", t.steps, 1);
  b.size("train.batch", t.batch, 1);
  b.size("train.accumulate", t.accumulate, 1);
  b.number("train.lr", t.lr, 0, kHuge);
  b.choice("train.optimiser", t.optimiser, {"adamw", "sgd"});
  b.number("train.beta1", t.beta1, 0, 1);
  b.number("train.beta2", t.beta2, 0, 1);
  b.number("train.eps", t.eps, 0, kHuge);
  b.number("train.weight_decay", t.weight_decay, 0, kHuge);
  b.number("train.momentum", t.momentum, 0, 1);
  b.choice("train.schedule", t.schedule, {"constant", "cosine", "linear", "wsd"});
  b.size("train.warmup", t.warmup, 0);
  b.number("train.final_lr", t.final_lr, 0, 1);
  b.number("train.clip", t.clip, 0, kHuge);
  b.size("train.seed", seed, 0);
  b.flag("train.recompute", t.recompute);
  b.size("train.short_window", t.short_window, 0);
  b.number("train.short_probability", t.short_probability, 0, 1);
  b.number("train.anneal", t.anneal, 0, 1);
  b.size("train.log_every", t.log_every, 0);
  b.size("train.eval_every", t.eval_every, 0);
  b.size("train.save_every", t.save_every, 0);
  b.number("train.save_minutes", t.save_minutes, 0, kHuge);
  b.size("train.eval_examples", t.eval_examples, 1);
  b.size("train.keep", t.keep, 1);
  b.flag("train.keep_best", t.keep_best);
  b.number("train.stop_at", t.stop_at, 0, kHuge);
  b.text("train.freeze", t.freeze);
  b.size("train.patience", t.patience, 0);
  b.text("train.start", t.start);
  t.seed = std::uint64_t(seed);
}

}  // namespace isomer
