// "Short window attention enables long-term memorization", Cabannes et al. 2025 (SWAX).
//
// The source trains 1.4B parameters on 150B tokens of web and code, with windows of 128 and 2048, and looks for needles in up to
// 131,072 tokens. Here a text is 96 tokens in which one special token comes ten times, always with the same token behind it,
// which is to be said from the second time on: nearly all repetitions are within 32 tokens of the last one, as most of what a
// natural text repeats is near. Windows are 4 and 32; far recall is asked for with the special token at the very start and again
// 128 tokens later, four long windows away and further than four layers of window 32 can see. With fewer repetitions, so that one
// in ten comes from further back than 32 tokens, a long window learned far recall too, within 600 steps.
#include <array>

#include "isomer/study/claims/sources.h"
#include "isomer/study/probes.h"
#include "isomer/study/trained.h"

namespace isomer::study {

namespace {

constexpr const char* kRepeats = R"(
[model]
width = 32
layers = ["mlstm", "sliding-window"]
repeat = 2
mlp = "none"
deviation = 0.125
[mixer.all]
heads = 2
[task]
name = "induction"
length = 96
test_length = 96
times = 10
[train]
steps = 500
batch = 16
warmup = 30
eval_examples = 256
)";

constexpr const char* kText = R"(
[model]
width = 64
layers = ["mlstm", "sliding-window"]
repeat = 2
[mixer.all]
heads = 2
[task]
name = "text"
length = 128
[train]
steps = 600
batch = 8
warmup = 30
eval_examples = 128
)";

constexpr const char* kShort = "short window";
constexpr const char* kLong = "long window";
constexpr const char* kStochastic = "stochastic window";
constexpr std::array<Index, 5> kDistances{16, 32, 64, 128, 256};

/// Recall at a distance: the special token stands at the start, and the end comes so many tokens later.
double recall(Session& session, Index distance, const std::string& silenced, Context& context, Overrides more = {}) {
  for (const std::string& option :
       {std::string("task.times=1"), std::string("task.depth=0"), "task.test_length=" + std::to_string(distance + 2)})
    more.push_back(option);
  return value_with(session, more, {.examples = 512, .silenced = silenced}, context);
}

/// Recall by distance; of a hybrid also without what its recurrent layers compute, and with another window than in training.
const Probe kLook{.name = "recall by distance; recurrent layers silenced; window 32",
                  .measure = [](Session& session, Context& context) {
                    Numbers all;
                    for (const Index distance : kDistances)
                      all["recall at " + std::to_string(distance)] = recall(session, distance, "", context);
                    const std::string first = session.config().layers.front().preset;
                    if (first == session.config().layers.back().preset) return all;
                    all["silenced, recall at 16"] = recall(session, 16, first, context);
                    all["silenced, recall at 128"] = recall(session, 128, first, context);
                    all["window 32, recall at 16"] = recall(session, 16, "", context, {"mixer.all.window=32"});
                    return all;
                  }};
const Probe kShare{.name = "share of the gradient of mLSTM", .measure = [](Session& session, Context& context) -> Numbers {
                     return {{"share", gradient_share(session, "mlstm", context)}};
                   }};

/// The three ways to train, each tested with its largest window.
std::vector<Contender> windows(double rate, int widest = 32, const Overrides& more = {}) {
  const std::string narrow = "mixer.all.window=4", wide = "mixer.all.window=" + std::to_string(widest);
  std::vector<Contender> all{{.name = kShort, .set = {narrow}},
                             {.name = kStochastic, .set = {wide, "train.short_window=4"}},
                             {.name = kLong, .set = {wide}}};
  for (Contender& one : all) {
    one.rate = rate;
    one.set.insert(one.set.end(), more.begin(), more.end());
  }
  return all;
}

Comparison repeats(std::vector<Contender> models, const char* number_of) {
  return {.recipe = kRepeats, .models = std::move(models), .probe = &kLook, .reading = number(number_of, 1)};
}

constexpr double kRate = 3e-3;

/// How recall falls with distance, as lines.
void by_distance(const std::vector<Comparison::Chosen>& chosen, Evidence& found) {
  for (const Comparison::Chosen& one : chosen)
    for (const CellResult* run : one.runs)
      for (const Index distance : kDistances)
        if (!run->diverged)
          found.add(one.model->name, double(distance), run->numbers.at("recall at " + std::to_string(distance)));
}

const Figure kByDistance{
    .kind = "lines",
    .x = "tokens back",
    .y = "share recalled",
    .caption = "Attention with a long window learns all there is within it, and the recurrent layers little."};

constexpr const char* kFarRecall =
    "share of 512 tokens recalled from 128 tokens back, four long windows away; four layers of width 32, 500 steps, learning "
    "rate searched (quick: the one found)";

Rule short_and_stochastic_beat_long() {
  return all_of({greater(kShort, kLong, 0.1), greater(kStochastic, kLong, 0.1), equal(kShort, kStochastic, 0.15)});
}

Claim far_recall() {
  return trained(
      {.id = "swax.far-recall",
       .statement = "mLSTM layers in turn with attention over a short window recall from further back than those with a long "
                    "window; a window that is drawn short or long for each batch does as well as the short one.",
       .quantity = kFarRecall,
       .rule = short_and_stochastic_beat_long(),
       .published = {{.name = "window 128, needle at 131k", .value = 0.30, .where = "RULER, 1.4B, about"},
                     {.name = "window 2048, needle at 131k", .value = 0, .where = "RULER, 1.4B, about"},
                     {.name = "stochastic window", .where = "about as window 128"}},
       .figure = kByDistance},
      repeats(windows(kRate), "recall at 128"), by_distance);
}

Claim silenced() {
  return trained(
      {.id = "swax.silenced",
       .statement = "Trained with short or stochastic windows the recurrent layers carry far recall: without them it is gone. "
                    "Trained with "
                    "a long one they carry hardly any.",
       .quantity = "far recall lost when the mLSTM layers add nothing at test time; the same near by, 16 tokens back, beside it",
       .rule = all_of(
           {at_least("far, short window", 0.3), at_least("far, stochastic window", 0.3), at_most("far, long window", 0.1)}),
       .published = {{.name = "the softmax layers absorb the signal of a long window", .where = "the mechanism, direction only"}},
       .figure = {.kind = "bars",
                  .y = "recall lost",
                  .caption = "Recall that goes with the recurrent layers, from far and from near."},
       .units = {{kShort, "share recalled"}, {kStochastic, "share recalled"}, {kLong, "share recalled"}},
       .otherwise =
           "the setting: attention does not see 128 tokens back, so what a long window leaves of far recall comes through the "
           "recurrent layers, and goes with them",
       .unclear = "size: seeds with a long window differ in how much they recall from afar at all"},
      repeats(windows(kRate), "recall at 128"), [](const std::vector<Comparison::Chosen>& chosen, Evidence& found) {
        for (const Comparison::Chosen& one : chosen)
          for (const CellResult* run : one.runs)
            for (const auto& [name, distance] : {std::pair{"far, ", "recall at 128"}, std::pair{"near, ", "recall at 16"}})
              found.add(name + one.model->name,
                        run->diverged ? 0 : run->numbers.at(distance) - run->numbers.at(std::string("silenced, ") + distance));
      });
}

Claim wider_at_test() {
  return trained(
      {.id = "swax.wider-at-test",
       .statement = "A window at test time that is wider than any of training does harm, even where all is near.",
       .quantity =
           "share recalled from 16 tokens back by models trained with window 4, as trained and with window 32 at test time",
       .rule = greater("window 4", "window 32", 0.1),
       .published = {{.name = "collapse", .where = "rotary distances that training never saw, direction only"}},
       .figure = {.kind = "bars",
                  .y = "share recalled",
                  .caption = "The same models with the window of training and with a wider one."}},
      repeats({{.name = "window 4", .set = {"mixer.all.window=4"}, .rate = kRate}}, "recall at 16"),
      [](const std::vector<Comparison::Chosen>& chosen, Evidence& found) {
        for (const CellResult* run : chosen.at(0).runs)
          found.add("window 32", run->diverged ? 0 : run->numbers.at("window 32, recall at 16"));
      });
}

Claim neither_alone() {
  Contender mlstm{.name = "mLSTM alone", .set = {"model.layers=mlstm*2"}, .rate = kRate};
  Contender attention{
      .name = "long windows alone", .set = {"model.layers=sliding-window*2", "mixer.all.window=32"}, .rate = kRate};
  Contender both{.name = kShort, .set = {"mixer.all.window=4"}, .rate = kRate};
  return trained(
      {.id = "swax.neither-alone",
       .statement = "Both kinds of layers are needed: attention alone sees no further than its layers' windows reach, and mLSTM "
                    "alone recalls less than with a short window in between.",
       .quantity = kFarRecall,
       .rule = all_of({greater(kShort, "mLSTM alone", 0.1), at_most("long windows alone", 0.15)}),
       .published = {{.name = "pure xLSTM weak", .where = "RULER, 1.4B, direction only"}},
       .figure = kByDistance,
       .full_only = true},
      repeats({both, mlstm, attention}, "recall at 128"), by_distance);
}

Claim gradient() {
  return trained(
      {.id = "swax.gradient-share",
       .statement = "Early in training the recurrent layers get a larger share of the gradient when the window is short.",
       .quantity = "share of mLSTM in the squared gradient of all mixers after 60 steps, mean of 8 batches",
       .rule = all_of({greater(kShort, kLong, 0.05), greater(kStochastic, kLong, 0)}),
       .published = {{.name = "a long window leaves the recurrent layers without supervision", .where = "direction only"}},
       .figure = {.kind = "bars",
                  .y = "share of the gradient",
                  .caption = "Share of the gradient that reaches the recurrent layers, by the window of training."},
       .otherwise = "size: in models of four small layers two thirds of the gradient reach the recurrent layers with any window, "
                    "and rather less with a short one; three seeds left it undecided, 25 do not",
       .unclear = "size: in models of four small layers the share differs by seed as much as by window"},
      {.recipe = kRepeats,
       .quick = {"train.steps=60", "train.schedule=constant", "train.eval_examples=32"},
       .full = {"train.steps=60", "train.schedule=constant", "train.eval_examples=32"},
       .models = windows(kRate),
       .judged = Judged::after_equal_steps,
       .probe = &kShare,
       .reading = number("share", 1),
       .search = false});
}

Claim short_context() {
  return trained(
      {.id = "swax.short-context",
       .statement =
           "On text of ordinary length a stochastic window does as well as a long one, and both better than a short one.",
       .quantity = "bits a byte on text of the Jargon File that was not trained on, 128 bytes at a time; windows 4 and 64, four "
                   "layers of "
                   "width 64 after 600 steps, the same number for all; learning rate searched",
       .rule = all_of({greater(kShort, kLong, 0), greater(kShort, kStochastic, 0), equal(kStochastic, kLong, 0.02)}),
       .published = {{.name = "perplexity, window 128", .value = 2.551, .where = "code, 1.4B"},
                     {.name = "perplexity, window 2048", .value = 2.523, .where = "code, 1.4B"},
                     {.name = "perplexity, stochastic", .value = 2.502, .where = "code, 1.4B"}},
       .figure = {.kind = "bars", .y = "bits a byte", .caption = "Bits a byte with each window of training; lower is better."},
       .otherwise =
           "size: models of this size learn from a few bytes of context, and seeds differ by more than the source's windows do",
       .unclear =
           "size: models this small learn from a few bytes of context, and seeds differ by more than the source's windows do "
           "(0.02 bits)",
       .full_only = true},
      {.recipe = kText, .models = windows(3e-3, 64), .judged = Judged::after_equal_steps});
}

/// Gated delta in the place of mLSTM. Its convolution already brings neighbours together, which mLSTM needs attention for.
Claim gated_delta(const char* id, const char* statement, const std::string& convolution, const std::string& steps) {
  const Overrides layers{"model.layers=gated-deltanet,sliding-window", "mixer.gated-deltanet.conv=" + convolution,
                         "train.steps=" + steps};
  return trained(
      {.id = id,
       .statement = statement,
       .quantity = "share of 512 tokens recalled from 128 tokens back, as in swax.far-recall but after " + steps +
                   " steps; learning rate searched",
       .rule = short_and_stochastic_beat_long(),
       .published = {{.name = "the same pattern as with mLSTM", .where = "direction only"}},
       .figure = kByDistance,
       .otherwise = "size: gated delta learns far recall with a long window, too",
       .unclear = "size: the direction is the source's in the means, but with a long window some seeds learn far recall, too",
       .full_only = true},
      repeats(windows(kRate, 32, layers), "recall at 128"), by_distance);
}

}  // namespace

Source swax() {
  return {
      .id = "swax",
      .title = "Cabannes et al. 2025, Short window attention enables long-term memorization (SWAX)",
      .about =
          "Hybrids of softmax attention over a window and a recurrent layer remember further back the shorter the window is in "
          "training, because the recurrence has to learn what attention cannot see; a window drawn for each batch keeps the "
          "quality of a long one.",
      .claims = {
          far_recall(), silenced(), wider_at_test(), gradient(), neither_alone(), short_context(),
          gated_delta("swax.gated-delta", "The same with Gated DeltaNet, without its convolutions, in the place of mLSTM.", "0",
                      "600"),
          gated_delta("swax.gated-delta-whole", "The same with Gated DeltaNet as it is, convolutions included.", "4", "300")}};
}

}  // namespace isomer::study
