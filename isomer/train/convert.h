#pragma once
// Other mixers in a trained model. The q, k, v and o projections of a layer stay, with everything outside of its mixer; what the
// new mixer has of its own starts as its preset says.
//
//   const std::unique_ptr<Session> from = open_run("runs/a", context);
//   const Conversion plan = plan_conversion(*from, {.mixer = "luna", .overrides = {"train.steps=500"}});
//   Session to(plan.recipe, plan.model, context);
//   const std::vector<ConvertedParameter> fates = take_weights(*from, to, plan.layers);
//
// transfer.h then trains what is new to do what the old layers did.
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "isomer/train/session.h"

namespace isomer {

struct ConversionRequest {
  std::string mixer;
  std::vector<Index> layers = {};  // empty: all
  Overrides overrides = {};        // keys mixer.MIXER.…, train.… and task.…
};

struct Conversion {
  Recipe recipe;  // of the new model and of its fine-tuning
  ModelConfig model;
  std::vector<Index> layers;  // ascending
  // Options of the old mixers that are not as they are by themselves and that the new one does not have: "window=128".
  std::vector<std::string> dropped = {};
};

/// Needs no data. The new mixer has the heads, sizes and positions of the old ones unless the
/// overrides say otherwise. Throws Error for a layer that is not there, a mixer that keeps none of q, k and v (naming those that
/// keep them), layers whose sizes differ, and keys that have nothing to do with the conversion.
[[nodiscard]] Conversion plan_conversion(const Session& from, const ConversionRequest& request);

/// What became of a parameter of a converted mixer.
struct ConvertedParameter {
  enum class Fate : std::uint8_t { kept, repeated, fresh, dropped };
  Index layer = 0;   // −1: it is shared by layers
  std::string name;  // of the model
  std::vector<Index> shape;
  Fate fate = Fate::kept;
  graph::Init init = {};  // fresh: what it starts with
};
[[nodiscard]] std::string_view name_of(ConvertedParameter::Fate fate);

/// Gives the model of `to`, fresh from the plan's recipe, the weights of `from` wherever they fit: `repeated` are those of keys
/// and values that several heads shared and no longer do. Within one preset every parameter of the same shape is kept.
std::vector<ConvertedParameter> take_weights(Session& from, Session& to, std::span<const Index> layers);

}  // namespace isomer
