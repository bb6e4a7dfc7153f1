// InLine on pictures: what the local residual, subtraction and a query's neighbours are worth to a small vision model. Two layers
// of width 32 on Fashion-MNIST, 7 x 7 patches of 4 x 4 pixels with learned positions; `tools/setup images` installs the pictures.
// The source has ImageNet, models of 6 to 90 million parameters and 300 epochs.
#include <algorithm>

#include "isomer/study/claims/sources.h"
#include "isomer/study/lab.h"
#include "isomer/study/trained.h"

namespace isomer::study {

namespace {

constexpr const char* kPictures = R"(
[model]
width = 32
positions = true
mlp = "gelu"
mlp_factor = 2
deviation = 0.1
[task]
name = "images"
[train]
steps = 1500
batch = 32
warmup = 40
eval_examples = 1000
eval_every = 300
)";

// ---------------------------------------------------------------------------------------------------------------------------
// What is looked at in a trained model.

constexpr Index kSide = 7, kTokens = kSide * kSide;
using Hidden = std::vector<std::uint8_t>;  // [query, key], 1: hidden

/// The keys at most `radius` rows and columns away, the query's own among them.
Hidden neighbours(Index radius) {
  Hidden hidden(std::size_t(kTokens * kTokens), 0);
  for (Index q = 0; q < kTokens; ++q)
    for (Index k = 0; k < kTokens; ++k)
      hidden[std::size_t(q * kTokens + k)] =
          std::max(std::abs(q / kSide - k / kSide), std::abs(q % kSide - k % kSide)) <= radius ? 1 : 0;
  return hidden;
}

/// For every query as many keys, anywhere.
Hidden shuffled(Hidden hidden) {
  Rng rng{7};
  for (Index q = 0; q < kTokens; ++q)
    for (Index k = kTokens - 1; k > 0; --k)
      std::swap(hidden[std::size_t(q * kTokens + k)],
                hidden[std::size_t(q * kTokens) + std::size_t(rng.below(std::uint64_t(k) + 1))]);
  return hidden;
}

/// Share of test pictures that are recognised while keys are hidden in every layer.
double accuracy(Session& session, const Hidden& hidden, Context& context) {
  constexpr Index kFirst = 7000, kBatch = 50, kCount = 1000;  // of those that evaluations do not see
  Tape<float> tape(context, Record::no);
  Batch batch;
  double right = 0;
  for (Index first = 0; first < kCount; first += kBatch) {
    session.task().fill(Split::test, std::uint64_t(kFirst + first), kBatch, batch);
    right += double(session.model().loss(tape, input_of(batch), {.hidden = hidden}).correct) / double(kCount);
    tape.clear();
  }
  return right;
}

/// The weight that the first layer gives to a query's 3 x 3 neighbourhood, over what equal weights would give it.
double attention_nearby(Session& session, Context& context) {
  Tape<float> tape(context, Record::no);
  Batch batch;
  session.task().fill(Split::test, 7000, 16, batch);
  const Hidden near = neighbours(1);
  double given = 0, equal = 0;
  session.model().visit_blocks(tape, input_of(batch), [&](Index layer, Var<float> x, std::span<const Var<float>> taken) {
    if (layer > 0) return;
    const Block<float>& block = session.model().block(layer);
    for (const LawCall& call : block.mixer().law_calls(tape, block.mixer_input(tape, x), {.taken = taken})) {
      const auto q = call.inputs.at("q").view<const double, 4>(), k = call.inputs.at("k").view<const double, 4>();
      for (Index b = 0; b < q.shape[0]; ++b)
        for (Index h = 0; h < q.shape[2]; ++h) {
          Matrix queries{kTokens, q.shape[3]}, keys{kTokens, q.shape[3]};
          for (Index t = 0; t < kTokens; ++t)
            for (Index c = 0; c < q.shape[3]; ++c) queries(t, c) = q(b, t, h, c), keys(t, c) = k(b, t, h, c);
          const Matrix weights = law_weights(call.law, call.settings, queries, keys, context);
          for (std::size_t i = 0; i < near.size(); ++i)
            if (near[i] != 0) given += weights.values[i], equal += 1 / double(kTokens);
        }
    }
  });
  return given / equal;
}

const Probe kLook{.name = "hidden keys, weights nearby", .measure = [](Session& session, Context& context) -> Numbers {
                    const Hidden three = neighbours(1), five = neighbours(2);
                    return {{"nothing hidden", accuracy(session, {}, context)},
                            {"3 x 3 hidden", accuracy(session, three, context)},
                            {"5 x 5 hidden", accuracy(session, five, context)},
                            {"9 anywhere hidden", accuracy(session, shuffled(three), context)},
                            {"25 anywhere hidden", accuracy(session, shuffled(five), context)},
                            {"attention nearby", attention_nearby(session, context)}};
                  }};

// ---------------------------------------------------------------------------------------------------------------------------

/// All see the whole picture.
Contender model(std::string name, const std::string& preset, const Settings& options) {
  Contender one{.name = std::move(name), .set = {"model.layers=" + preset + "*2"}, .rate = 1e-2};
  const auto add = [&](const std::string& key, const std::string& value) {
    one.set.push_back("mixer." + preset + "." + key + "=" + value);
  };
  add("heads", "2"), add("causal", "false");
  for (const auto& [key, value] : options) add(key, value);
  return one;
}

Contender softmax() { return model("softmax", "softmax", {{"position", "none"}}); }
Contender linear() { return model("linear attention", "linear-relu", {}); }
Contender plain() { return model("InLine", "inline", {{"phi", "relu"}, {"residual", "none"}}); }
Contender residual() {
  return model("InLine with the residual", "inline", {{"phi", "relu"}, {"residual", "image"}, {"rows", "7"}, {"columns", "7"}});
}

Comparison pictures(std::vector<Contender> models) {
  return {.recipe = kPictures,
          .quick = {"train.steps=200"},
          .models = std::move(models),
          .judged = Judged::after_equal_steps,  // as in the source
          .probe = &kLook};
}

constexpr const char* kAccuracy =
    "share of 2,000 test pictures of Fashion-MNIST that a model of two layers recognises after 1,500 steps of 32 pictures, the "
    "same number for all; learning rate searched";

Claim local_residual() {
  return trained(
      {.id = "inline.residual",
       .statement = "The local residual, a 3 x 3 sum of values with weights made of the whole picture, improves InLine.",
       .quantity = std::string(kAccuracy) + "; quick: 200 steps at one learning rate",
       .rule = greater("InLine with the residual", "InLine", 0.01),
       .published = {{.name = "what makes large windows pay; InLine-Swin-T with the residual, window 56",
                      .value = 0.824,
                      .where = "table of windows"}},
       .figure = {.kind = "bars", .y = "accuracy", .caption = "What the local residual adds to InLine."},
       .unclear =
           "size: the residual adds about the point that the rule asks for, in twenty seeds; learned positions of 49 squares "
           "already tell two layers what is near. The steps were raised from 500 to 1,500 for it"},
      pictures({plain(), residual()}));
}

Claim against_softmax() {
  return trained({.id = "inline.pictures",
                  .statement = "InLine with its residual recognises pictures better than softmax attention.",
                  .quantity = kAccuracy,
                  .rule = greater("InLine with the residual", "softmax", 0),
                  .published = {{.name = "InLine-DeiT-T on ImageNet", .value = 0.745, .where = "table of ImageNet results"},
                                {.name = "DeiT-T on ImageNet", .value = 0.722, .where = "table of ImageNet results"}},
                  .figure = {.kind = "bars",
                             .y = "accuracy",
                             .caption = "InLine with its residual beside softmax, the interval over seeds."},
                  .full_only = true},
                 pictures({softmax(), residual()}));
}

Claim subtraction() {
  return trained(
      {.id = "inline.subtraction",
       .statement = "With the same features (relu) and no residual, subtraction recognises pictures better than division.",
       .quantity = kAccuracy,
       .rule = greater("InLine", "linear attention", 0.005),
       .published = {{.name = "better for each of four feature maps", .where = "table of kernels, direction only"}},
       .figure = {.kind = "bars", .y = "accuracy", .caption = "The same features, divided and subtracted."},
       .otherwise =
           "size and data: on clothes in 49 squares twenty seeds of both are within half a point of each other, and the source's "
           "gain is of ImageNet; the steps were raised from 500 to 1,500 for it",
       .unclear = "size: seeds differ by as much as the rule asks for",
       .full_only = true},
      pictures({linear(), plain()}));
}

Claim masking() {
  return trained(
      {.id = "inline.masking",
       .statement = "Hiding the 3 x 3 tokens around a query hurts more than hiding as many anywhere.",
       .quantity = "share of 1,000 test pictures that a trained model recognises while, in every layer, each query "
                   "does not see the 3 x 3 "
                   "keys around it, or as many keys drawn anywhere; the figure has 5 x 5 too",
       .rule = all_of({greater("softmax, 9 anywhere hidden", "softmax, 3 x 3 hidden", 0.01),
                       greater("InLine, 9 anywhere hidden", "InLine, 3 x 3 hidden", 0.01)}),
       .published = {{.name = "much more", .where = "table of masking, direction only"}},
       .figure = {.kind = "lines",
                  .x = "keys hidden",
                  .y = "accuracy",
                  .caption = "Where the lines of a model part, its neighbours matter more to a query than as many other keys."},
       .otherwise = "size: 9 of 49 squares are too few to be missed, whichever they are, and the rule asks for 3 x 3; the figure "
                    "shows the effect at 25 keys, where neighbours cost more than as many others in both models. The source has "
                    "196 squares",
       .unclear = "size: 49 squares instead of the source's 196; the figure shows the effect at 25 keys",
       .full_only = true},
      pictures({softmax(), plain()}), [](const std::vector<Comparison::Chosen>& chosen, Evidence& found) {
        for (const auto& one : chosen)
          for (const CellResult* run : one.runs) {
            const auto value = [&](const char* what) { return run->diverged ? 0.0 : run->numbers.at(what); };
            const std::string& name = one.model->name;
            for (const char* what : {"3 x 3 hidden", "9 anywhere hidden"}) found.add(name + ", " + what, value(what));
            found.add("what " + name + " loses with 3 x 3", value("nothing hidden") - value("3 x 3 hidden"));
            for (const auto& [series, points] :
                 {std::pair{", neighbours", std::array{"nothing hidden", "3 x 3 hidden", "5 x 5 hidden"}},
                  std::pair{", anywhere", std::array{"nothing hidden", "9 anywhere hidden", "25 anywhere hidden"}}})
              for (std::size_t i = 0; i < 3; ++i) found.add(name + series, std::array{0.0, 9.0, 25.0}[i], value(points[i]));
          }
      });
}

Claim masking_softmax() {
  return trained(
      {.id = "inline.masking-softmax",
       .statement = "Softmax loses more than InLine without its 3 x 3 neighbours.",
       .quantity = "share of 1,000 test pictures that a trained model recognises less when each query does not see the 3 x "
                   "3 keys around it in any layer",
       .rule = greater("what softmax loses", "what InLine loses", 0.01),
       .published = {{.name = "softmax loses more", .where = "table of masking, direction only"}},
       .figure = {.kind = "bars", .y = "accuracy lost", .caption = "What each loses without the 3 x 3 keys around a query."},
       .units = {{"softmax", "accuracy"}, {"InLine", "accuracy"}},
       .otherwise = "size: both lose less than a point, since clothes in 49 squares are told apart without neighbours",
       .unclear = "size: clothes in 49 squares are told apart without neighbours",
       .full_only = true},
      pictures({softmax(), plain()}), [](const std::vector<Comparison::Chosen>& chosen, Evidence& found) {
        for (const auto& one : chosen)
          for (const CellResult* run : one.runs)
            found.add("what " + one.model->name + " loses",
                      run->diverged ? 0 : run->numbers.at("nothing hidden") - run->numbers.at("3 x 3 hidden"));
      });
}

Claim nearby() {
  Comparison looked = pictures({softmax(), linear(), plain()});
  looked.reading = number("attention nearby", 1);
  return trained(
      {.id = "inline.nearby",
       .statement = "In the first layer softmax looks at its neighbours; linear attention and InLine hardly do.",
       .quantity = "weight of the 3 x 3 keys around a query in the first layer of a trained model, over what equal "
                   "weights would give them",
       .rule = all_of({greater("softmax", "InLine", 0.2), greater("softmax", "linear attention", 0.2)}),
       .published = {{.name = "softmax well above chance in shallow layers, the others near it",
                      .where = "figure of local attention, direction only"}},
       .figure = {.kind = "bars",
                  .y = "weight over chance",
                  .caption = "How much the first layer looks at its neighbours; 1 is as much as at any other token."},
       .otherwise =
           "size: on 49 squares two layers learn to look past the neighbours; the source has 12 layers and more on ImageNet",
       .unclear = "size: two layers on 49 squares; the source has 12 layers and more on ImageNet",
       .full_only = true},
      std::move(looked));
}

}  // namespace

std::vector<Claim> in_line_pictures() {
  return {local_residual(), against_softmax(), subtraction(), masking(), masking_softmax(), nearby()};
}

}  // namespace isomer::study
