// What length costs a pre-trained model before and after its softmax has given way: SmolLM2-135M, which reads and writes,
// BERT-base and TabPFN; and what the first still finds in a long text.
#include <array>
#include <cmath>

#include "isomer/base/rng.h"
#include "isomer/models/pretrained.h"
#include "isomer/models/prompt.h"
#include "isomer/study/claims/conversions.h"
#include "isomer/study/claims/sources.h"
#include "isomer/study/lab.h"

namespace isomer::study {

namespace {
constexpr double kMega = 1e6;

struct Named {
  std::string name;
  std::unique_ptr<Session> session;
};

/// The model as it is, and with the layers of every contender.
std::vector<Named> before_and_after(std::unique_ptr<Session> softmax, const char* recipe, const std::vector<Contender>& models,
                                    Context& context) {
  std::vector<Named> all;
  all.push_back({"softmax", std::move(softmax)});
  for (const Contender& model : models) {
    const Recipe own = parse_recipe(parse_toml(recipe, "the claim's recipe"), model.set);
    all.push_back({model.name, convert_as(own, *all[0].session, context).session});
  }
  return all;
}

// ---------------------------------------------------------------------------------------------------------------------------
// A language model: every second layer linear, the others with short windows, as LoLCATs and SWAX have them.

constexpr const char* kDecoding = R"(
[task]
name = "text"
length = 8192
test_share = 0.2
)";
constexpr std::array<Index, 6> kLengths{256, 512, 1024, 2048, 4096, 8192};

std::vector<Contender> hybrids() {
  constexpr Index kLayers = 30, kWindow = 64;
  constexpr double kRate = 1e-4;
  return {with_windows("LUNA and windows", "luna", {"features=32"}, kLayers, kWindow, kRate),
          with_windows("Hedgehog and windows", "hedgehog", {}, kLayers, kWindow, kRate)};
}

/// Tokens in a second of processor time, and bytes, at every length.
struct Costs {
  std::array<double, kLengths.size()> reading = {}, writing = {}, state = {};
};
Costs costs_of(const Model<float>& model, std::span<const std::int64_t> text, Context& context) {
  constexpr Index kWritten = 16;
  Tape<float> tape(context, Record::no);
  ModelState<float> state = model.start(1);
  Costs found;
  Index read = 0;
  for (std::size_t i = 0; i < kLengths.size(); ++i) {
    const Index more = kLengths[i] - read;
    const ProcessorTime watch;
    (void)model.prefill(tape, text.subspan(std::size_t(read), std::size_t(more)), state);
    found.reading[i] = double(more) / watch.seconds();
    found.state[i] = double(state.bytes());
    ModelState<float> fork = state;
    const ProcessorTime again;
    for (Index t = 0; t < kWritten; ++t) (void)model.step(tape, text.subspan(std::size_t(t), 1), fork);
    found.writing[i] = double(kWritten) / again.seconds();
    read = kLengths[i];
  }
  return found;
}

Claim decoding() {
  return {.id = "luna.smollm2-cost",
          .statement =
              "With linear attention and short windows in place of softmax a pre-trained language model remembers a text of "
              "8192 tokens in a tenth of the memory, reads the second half of it faster, and goes on with it faster.",
          .quantity =
              "SmolLM2-135M (30 layers of 576) on a text of WikiText-2, in place of softmax LUNA in every second layer "
              "and windows of 64 between, float32, one thread: tokens read in a second of processor time from one length to the "
              "next, 16 tokens written behind it, bytes of the state; two rounds over all models",
          .rule = all_of({at_least("reading to 8192 tokens, LUNA and windows over softmax", 1.2),
                          at_least("writing at 8192 tokens, LUNA and windows over softmax", 1.2),
                          at_most("state at 8192 tokens, LUNA and windows over softmax", 0.1)}),
          .published = {{.name = "linear against quadratic cost", .where = "LUNA, direction only"}},
          .figure = {.kind = "loglog",
                     .x = "tokens",
                     .y = "tokens/s",
                     .caption = "A pre-trained language model reads and writes, with a text of so many tokens behind it."},
          .units = {{"reading", "ratio"}, {"writing", "ratio"}, {"state at 8192 tokens, ", "ratio"}, {"state of", "MB"}},
          .otherwise = "size: of a model of 135M parameters the weights are most of what is read for a token",
          .unclear = "two rounds on a machine that others may use",
          .full_only = true,
          .measure = [](const Budget&, Context& context, Evidence& found) {
            const std::string text = "task.path=" + model_folder("wikitext-2") + "/wiki.test.raw";
            const Recipe recipe = parse_recipe(parse_toml(kDecoding, "the claim's recipe"), Overrides{});
            const std::vector<Named> models =
                before_and_after(pretrained(recipe, model_folder("smollm2-135m"), {text}, Head::of_task, context), kDecoding,
                                 {hybrids()[0]}, context);
            Batch batch;
            models[0].session->task().fill(Split::test, 0, 1, batch);
            constexpr int kRounds = 2;
            for (int round = 0; round < kRounds; ++round) {
              Costs softmax;
              for (const auto& [name, session] : models) {
                const Costs costs = costs_of(session->model(), batch.tokens, context);
                for (std::size_t i = 0; i < kLengths.size(); ++i) {
                  found.add(name + ", reading", double(kLengths[i]), costs.reading[i]);
                  found.add(name + ", writing", double(kLengths[i]), costs.writing[i]);
                }
                if (round == 0)
                  for (const std::size_t i : {std::size_t(0), kLengths.size() - 1})
                    found.put("state of " + name + " at " + std::to_string(kLengths[i]) + " tokens", costs.state[i] / kMega);
                if (name == "softmax") {
                  softmax = costs;
                  continue;
                }
                found.add("reading to 8192 tokens, " + name + " over softmax", costs.reading.back() / softmax.reading.back());
                found.add("writing at 8192 tokens, " + name + " over softmax", costs.writing.back() / softmax.writing.back());
                if (round == 0)
                  found.put("state at 8192 tokens, " + name + " over softmax", costs.state.back() / softmax.state.back());
              }
            }
          }};
}

// ---------------------------------------------------------------------------------------------------------------------------
// What it still finds: a number that was said somewhere in a text.

constexpr const char* kBrief = R"(
[task]
name = "text"
length = 256
test_share = 0.2
[train]
steps = 100
batch = 1
)";

/// The share of a number's digits that a model says in their places, when a text of T tokens that has the number at a third or at
/// two thirds asks for it.
double needle(Session& session, Index T, Context& context) {
  const Task& task = session.task();
  const auto tokenizer = tokenizer_from(task.tokenizer(), "smollm2", session.config().vocabulary);
  constexpr Index kWindows = 9, kFirst = 40;
  Batch hay;
  task.fill(Split::test, kFirst, kWindows, hay);
  const std::vector<std::int64_t> asked = tokenizer->encode(" What is the pass key? The pass key is ");
  Tape<float> tape(context, Record::no);
  const std::array<std::string, 4> numbers{"48213", "90657", "31846", "75209"};
  double found = 0, all = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::string& number = numbers[i];
    const std::vector<std::int64_t> said = tokenizer->encode(" The pass key is " + number + ". Remember it: " + number + ". "),
                                    digits = tokenizer->encode(number);
    const Index room = T - std::ssize(said) - std::ssize(asked) - std::ssize(digits);
    const Index before = room * (i < numbers.size() / 2 ? 1 : 2) / 3;
    std::vector<std::int64_t> text(hay.tokens.begin(), hay.tokens.begin() + before);
    text.insert(text.end(), said.begin(), said.end());
    text.insert(text.end(), hay.tokens.begin() + before, hay.tokens.begin() + room);
    text.insert(text.end(), asked.begin(), asked.end());
    ModelState<float> state = session.model().start(1);
    View<const float, 2> logits = session.model().prefill(tape, text, state);
    for (const std::int64_t& digit : digits) {
      found += likeliest({logits.data, std::size_t(logits.size())}) == digit ? 1 : 0;
      all += 1;
      logits = session.model().step(tape, {&digit, 1}, state);
    }
  }
  return found / all;
}

const Procedure kNeedles{
    .name = "smollm2-135m on wikitext-2: 60 steps of transfer, then distillation; windows 0 to 12 choose, 12 to 36 are the test",
    .run = [](const Recipe& recipe, Context& context, const CellProgress& progress) {
      const std::string text = "task.path=" + model_folder("wikitext-2") + "/wiki.test.raw";
      Trial trial{.name = "needles",
                  .teacher = pretrained(recipe, model_folder("smollm2-135m"), {text}, Head::of_task, context),
                  .score =
                      [](Session& session, Trial::Part part) {
                        constexpr std::array<std::array<Index, 2>, 3> kWindows{{{0, 4}, {0, 12}, {12, 24}}};
                        const auto [first, examples] = kWindows[std::size_t(part)];
                        return std::exp(session.evaluate({.examples = examples, .first = first}).loss);
                      },
                  .lower_is_better = true,
                  .transfer = 60,
                  .looks = 5};
      for (const Index T : {256, 512, 1024, 2048})
        trial.more["needle in " + std::to_string(T)] = [T, &context](Session& session) { return needle(session, T, context); };
      return run_trial(trial, recipe, context, progress);
    }};

Claim needles() {
  return converted(
      {.id = "luna.smollm2-conversion",
       .statement = "After brief distillation a pre-trained language model with linear attention and short windows reads a text "
                    "nearly as well as with softmax, and no longer finds a number in a long one.",
       .quantity =
           "perplexity of SmolLM2-135M on 24 windows of 256 tokens of WikiText-2's test, and the share of the digits of a number "
           "that it says again at the end of 256 to 2048 tokens: LUNA or Hedgehog in every second layer, windows of 64 between, "
           "q, k, v, o and RoPE kept; 60 steps of attention transfer, then 100 of distillation, each of 256 tokens, learning "
           "rate "
           "of 1e-4 or 3e-4",
       .rule = all_of({at_most("over softmax, Hedgehog and windows", 1.5),
                       greater("softmax, needle in 2048", "needle in 2048, Hedgehog and windows", 0.5)}),
       .published = {{.name = "linear layers and short windows in turn", .where = "SWAX, direction only"}},
       .units = {{"needle", "share"}, {"softmax, needle", "share"}},
       .otherwise = "budget: 100 steps of 256 tokens",
       .unclear = "budget: 100 steps of 256 tokens, and few seeds"},
      {.recipe = kBrief, .models = hybrids(), .procedure = &kNeedles, .ladder = {1e-4, 3e-4}}, "perplexity");
}

// ---------------------------------------------------------------------------------------------------------------------------
// An encoder, and a model of tables.

/// Seconds of processor time of one pass at every length, three rounds over all models; at the longest the ratio softmax over
/// LUNA, and memory. `name`: of the longest length.
template <std::size_t N>
void time_passes(const std::vector<Named>& models, const std::array<Index, N>& lengths, const std::string& name,
                 const std::function<void(Session&, Index length, Tape<float>&)>& pass, Context& context, Evidence& found) {
  constexpr int kRounds = 3;
  for (const Index length : lengths) {
    for (int round = 0; round < kRounds; ++round) {
      double softmax = 0;
      for (const auto& [model, session] : models) {
        Tape<float> tape(context, Record::no);
        const ProcessorTime watch;
        pass(*session, length, tape);
        const double seconds = watch.seconds();
        found.add(model, double(length), seconds);
        if (model == "softmax") softmax = seconds;
        if (length == lengths.back() && model == "LUNA") found.add("softmax's time over LUNA's at " + name, softmax / seconds);
        if (length == lengths.back() && round == 0) found.put("memory of " + model + " at " + name, double(tape.bytes()) / kMega);
      }
    }
  }
}

constexpr const char* kEncoded = R"(
[task]
name = "classify"
)";

Claim encoder() {
  return {
      .id = "luna.bert-cost",
      .statement = "In BERT-base LUNA's time is linear in the length of a text, and at 4096 tokens shorter than that of softmax.",
      .quantity =
          "seconds of processor time of one text through BERT-base (12 layers of 768, positions up to 4096), softmax replaced in "
          "every layer, float32, one thread; three rounds over all models; beside it the memory that a pass takes",
      .rule = all_of({slope("LUNA", 0.85, 1.15), at_least("softmax's time over LUNA's at 4096 tokens", 1.2)}),
      .published = {{.name = "linear against quadratic cost", .where = "LUNA, direction only"}},
      .figure = {.kind = "loglog", .x = "tokens", .y = "seconds", .caption = "One text of so many tokens through BERT-base."},
      .units = {{"softmax's time", "ratio"}, {"memory", "MB"}},
      .otherwise = "size: up to 2048 tokens most of the time is that of products with weights, the same for all",
      .unclear = "three rounds on a machine that others may use",
      .full_only = true,
      .measure = [](const Budget&, Context& context, Evidence& found) {
        constexpr std::array<Index, 6> kTokens{128, 256, 512, 1024, 2048, 4096};
        const std::string folder = model_folder("bert-base");
        Recipe recipe = parse_recipe(parse_toml(kEncoded, "the claim's recipe"), Overrides{});
        recipe.model.from = folder;
        recipe.model.layers.clear();
        ModelConfig config = describe_model(folder, Classes{.count = 6});
        config.length = kTokens.back();
        const std::vector<Contender> models{
            {.name = "LUNA", .set = {"model.layers=luna", "mixer.luna.features=32"}},
            {.name = "Hedgehog", .set = {"model.layers=hedgehog"}},
        };
        const std::vector<Named> all =
            before_and_after(std::make_unique<Session>(recipe, config, context, Weights::zero), kEncoded, models, context);
        const auto pass = [](Session& session, Index T, Tape<float>& tape) {
          const std::vector<std::int64_t> tokens(std::size_t(T), 7);
          (void)session.model().logits(tape, {.B = 1, .T = T, .tokens = tokens});
        };
        time_passes(all, kTokens, "4096 tokens", pass, context, found);
      }};
}

constexpr const char* kTable = R"(
[task]
name = "tables"
)";

Claim tables() {
  return {
      .id = "luna.tabpfn-cost",
      .statement =
          "In TabPFN LUNA's time is linear in the number of rows whose classes are known, and with 8192 of them shorter "
          "than that of softmax.",
      .quantity =
          "seconds of processor time that TabPFN (12 layers of 512) takes to say the classes of 16 rows from so many known ones, "
          "softmax replaced in every layer, float32, one thread; three rounds over all models; beside it the memory that a pass "
          "takes. It learned from tables of up to about 1000 rows: this is about time, luna.tabpfn-conversion about answers",
      .rule = all_of({slope("LUNA", 0.85, 1.15), at_least("softmax's time over LUNA's at 8192 rows", 1.2)}),
      .published = {{.name = "linear against quadratic cost", .where = "LUNA, direction only"}},
      .figure = {.kind = "loglog", .x = "rows", .y = "seconds", .caption = "16 rows of a table, by so many known ones."},
      .units = {{"softmax's time", "ratio"}, {"memory", "MB"}},
      .otherwise = "size: of few rows most of the time is that of products with weights, the same for all",
      .unclear = "three rounds on a machine that others may use",
      .full_only = true,
      .measure = [](const Budget&, Context& context, Evidence& found) {
        constexpr std::array<Index, 7> kRows{128, 256, 512, 1024, 2048, 4096, 8192};
        const Recipe recipe = parse_recipe(parse_toml(kTable, "the claim's recipe"), Overrides{});
        const std::vector<Contender> models{
            {.name = "LUNA", .set = {"model.layers=luna", "mixer.luna.features=64", "mixer.luna.functions=4"}},
            {.name = "Hedgehog", .set = {"model.layers=hedgehog"}},
        };
        const std::vector<Named> all =
            before_and_after(pretrained(recipe, model_folder("tabpfn"), {}, Head::own, context), kTable, models, context);
        const Index features = all[0].session->config().features;
        const auto pass = [features](Session& session, Index known, Tape<float>& tape) {
          constexpr Index kAsked = 16;
          Rng rng(1);
          std::vector<float> inputs(std::size_t((known + kAsked) * features)), labels(std::size_t(known), 0);
          for (float& x : inputs) x = float(rng.normal());
          for (float& label : labels) label = float(rng.below(2));
          (void)session.model().logits(tape, {.B = 1, .T = known + kAsked, .inputs = inputs, .known = labels});
        };
        time_passes(all, kRows, "8192 rows", pass, context, found);
      }};
}
}  // namespace

std::vector<Claim> luna_cost() { return {decoding(), needles(), encoder(), tables()}; }

}  // namespace isomer::study
