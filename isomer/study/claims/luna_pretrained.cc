// LUNA and its relatives in place of softmax in models that others have trained: stories15M and MiniLM. `tools/models` fetches
// weights and data; the claims say which are missing. Each cell converts one model to one mixer with one learning rate.
#include <algorithm>
#include <cmath>

#include "isomer/base/error.h"
#include "isomer/io/files.h"
#include "isomer/io/json.h"
#include "isomer/io/safetensors.h"
#include "isomer/io/text.h"
#include "isomer/models/pretrained.h"
#include "isomer/models/text_pairs.h"
#include "isomer/study/claims/conversions.h"
#include "isomer/study/claims/sources.h"
#include "isomer/train/generator.h"

namespace isomer::study {

namespace {
using Part = Trial::Part;

// ---------------------------------------------------------------------------------------------------------------------------
// A language model of 6 layers that tells stories.

constexpr const char* kStories = R"(
[task]
name = "text"
length = 128
test_share = 0.15
[train]
steps = 200
batch = 2
)";

/// What the model says by itself, drawn as it thinks.
struct OwnStories {
  Index count = 480, together = 48, longest = 200;
};
std::string own_stories(const OwnStories& how, const std::string& folder, Context& context) {
  const auto loaded = load_model(folder);
  std::string text;
  for (Index first = 0; first < how.count; first += how.together) {
    Generator generator(*loaded, {.temperature = 1}, std::uint64_t(first + 1), context);
    const std::vector<std::int64_t> begin = loaded->tokenizer->encode_input("").tokens;
    require(!begin.empty(), "stories15m", "expected a token that stories begin with, got none");
    generator.read(std::vector(std::size_t(how.together), begin));
    std::vector<std::vector<std::int64_t>> said(std::size_t(how.together), begin);
    for (Index i = 0; i < how.longest; ++i) {
      const std::span<const std::int64_t> next = generator.next();
      for (std::size_t s = 0; s < said.size(); ++s) said[s].push_back(next[s]);
    }
    for (const auto& story : said) {
      // Where a story ends, the next begins by itself.
      const auto end = std::find(story.begin() + 1, story.end(), begin[0]);
      text += loaded->tokenizer->decode({story.begin() + 1, end}) + "\n\n";
    }
  }
  return text;
}

/// The file of the stories that the model told once.
std::string stories_of(const std::string& folder, Context& context) {
  const OwnStories how;
  const Keepsake stories{.folder = folder,
                         .name = "stories",
                         .extension = ".txt",
                         .made_of = "count " + std::to_string(how.count) + ", together " + std::to_string(how.together) +
                                    ", longest " + std::to_string(how.longest) + ", temperature 1, seeds from 1"};
  return made_once(stories, context.isa(), [&](const std::string& path) { write_text(path, own_stories(how, folder, context)); });
}

/// Perplexity of the second copy of half a window: what was just read and has to be found again.
double copied(Session& session, Context& context) {
  constexpr Index kFirst = 20, kWindows = 16;
  Batch batch;
  session.task().fill(Split::test, kFirst, kWindows, batch);
  const Index T = batch.T, half = T / 2;
  for (Index i = 0; i < kWindows; ++i) {
    const std::span tokens = std::span(batch.tokens).subspan(std::size_t(i * T), std::size_t(T));
    for (Index t = 0; t < T; ++t) {
      const bool in_copy = t >= half && t + 1 < T;
      batch.labels[std::size_t(i * T + t)] = in_copy ? tokens[std::size_t(t + 1 - half)] : -1;
      if (t >= half) tokens[std::size_t(t)] = tokens[std::size_t(t - half)];
    }
  }
  Tape<float> tape(context, Record::no);
  return std::exp(session.model().loss(tape, input_of(batch)).loss);
}

const Procedure kStoriesConversion{
    .name = "stories15m on its own text: 150 steps of transfer, then distillation; windows 0 to 20 choose, 20 to 60 are the test",
    .run = [](const Recipe& recipe, Context& context, const CellProgress& progress) {
      const std::string folder = model_folder("stories15m");
      const std::string text = stories_of(folder, context);
      const auto perplexity = [](Session& session, Part part) {
        constexpr std::array<std::array<Index, 2>, 3> kWindows{{{0, 10}, {0, 20}, {20, 40}}};
        const auto [first, examples] = kWindows[std::size_t(part)];
        return std::exp(session.evaluate({.examples = examples, .first = first}).loss);
      };
      Trial trial{.name = "stories",
                  .teacher = pretrained(recipe, folder, {"task.path=" + text}, Head::of_task, context),
                  .score = perplexity,
                  .lower_is_better = true,
                  .transfer = 150};
      trial.more["second copy"] = [&](Session& session) { return copied(session, context); };
      return run_trial(trial, recipe, context, progress);
    }};

Claim stories() {
  constexpr Index kKey = 48;
  std::vector<Contender> models = successors(kKey, 1e-4);
  models.push_back(with_windows("Hedgehog and windows of 16", "hedgehog", {}, 6, 16, 1e-4));
  return converted(
      {.id = "luna.stories-conversion",
       .statement =
           "In place of softmax in a pre-trained language model LUNA recovers at least as much as Hedgehog, and more than "
           "T2R, elu + 1, the Performer and cosFormer; layers with short windows between linear ones recover more than any.",
       .quantity =
           "perplexity of stories15M (6 layers of 288) on 40 windows of 128 tokens of its own text, which no model has seen, and "
           "of 64 tokens right behind the same 64: "
           "every softmax replaced, q, k, v, o and RoPE kept; 150 steps of attention transfer where there is something to learn, "
           "then 200 of distillation, batches of 2 windows, learning rate searched",
       .rule = all_of({luna_leads(true, 0.5), greater("LUNA", "Hedgehog and windows of 16", 0),
                       greater("Hedgehog", "Hedgehog and windows of 16", 0)}),
       .units = {{"second copy", "perplexity"}, {"softmax, second copy", "perplexity"}},
       .otherwise = "budget: 200 steps of 256 tokens; Hedgehog's map starts at exp, LUNA's at random",
       .unclear = "budget: 200 steps of 256 tokens, and few seeds"},
      {.recipe = kStories, .models = std::move(models), .procedure = &kStoriesConversion}, "perplexity");
}

// ---------------------------------------------------------------------------------------------------------------------------
// A sentence encoder of 6 layers.

constexpr const char* kSentences = R"(
[task]
name = "classify"
length = 32
test_share = 0.1
[train]
steps = 40
batch = 16
)";

/// A score and two sentences, as files of sts-b have them; every so many of them, for genres stand one behind the other.
std::vector<TextPair> sts_pairs(const std::string& file, std::size_t every) {
  const std::vector<TextPair> all = read_pairs(model_folder("sts-b") + "/" + file, {5, 6, 7});
  std::vector<TextPair> some;
  for (std::size_t i = 0; i < all.size(); i += every) some.push_back(all[i]);
  return some;
}

/// Sentences of the training pairs without their scores, as records. The labels stand for nothing and are not looked at.
void write_sentences(const std::string& path) {
  std::string text;
  for (const TextPair& pair : sts_pairs("sts-train.csv", 1))
    for (const auto& [sentence, label] : {std::pair{pair.first, "first"}, {pair.second, "second"}})
      text += Json::object({{"text", sentence}, {"label", label}}).dump() + "\n";
  write_text(path, text);
}

const Procedure kSentenceConversion{
    .name = "minilm on sentences of sts-b: 60 steps of transfer, then distillation; every third pair of the test",
    .run = [](const Recipe& recipe, Context& context, const CellProgress& progress) {
      const std::string folder = model_folder("minilm");
      const Keepsake sentences{.folder = model_folder("sts-b"),
                               .name = "sentences",
                               .extension = ".jsonl",
                               .made_of = "both sentences of each pair of sts-train.csv"};
      const std::string records = made_once(sentences, context.isa(), write_sentences);
      auto teacher = pretrained(recipe, folder, {"task.path=" + records}, Head::own, context);
      const auto tokenizer = tokenizer_from(read_tokenizer(folder), folder, teacher->config().vocabulary);
      const std::array pairs{sts_pairs("sts-dev.csv", 15), sts_pairs("sts-dev.csv", 6), sts_pairs("sts-test.csv", 3)};
      const auto agreement = [&](Session& session, Part part) {
        return score_pairs(session.model(), *tokenizer, pairs[std::size_t(part)], "", context).spearman;
      };
      Trial trial{.name = "sentences", .teacher = std::move(teacher), .score = agreement};
      trial.more["cosine to the teacher"] = [&](Session& session) {
        return 1 - distance(*trial.teacher, session, 256, context) / 2;
      };
      return run_trial(trial, recipe, context, progress);
    }};

Claim sentences() {
  constexpr Index kKey = 32;
  return converted(
      {.id = "luna.minilm-conversion",
       .statement =
           "In place of softmax in a pre-trained sentence encoder LUNA recovers at least as much as Hedgehog, and more than "
           "T2R, elu + 1, the Performer and cosFormer.",
       .quantity =
           "Spearman's correlation of all-MiniLM-L6-v2's cosines with the scores of every third test pair of STS-B: every "
           "softmax replaced, q, k, v and o kept; on sentences without scores 60 steps of attention transfer where there is "
           "something to learn, then 40 of distillation, batches of 16, learning rate searched",
       .rule = luna_leads(false, 0.005),
       .units = {{"cosine", "cosine"}, {"softmax, cosine", "cosine"}},
       .otherwise =
           "size: sentences of a dozen tokens ask little of attention; all but elu + 1 and the Performer are back at 98 % "
           "of softmax and more after 40 steps, T2R and Hedgehog first",
       .unclear = "budget: 40 steps of 16 sentences, and few seeds"},
      {.recipe = kSentences, .models = successors(kKey, 3e-4), .procedure = &kSentenceConversion}, "Spearman's correlation");
}
}  // namespace

std::vector<Claim> luna_pretrained() { return {stories(), sentences()}; }

}  // namespace isomer::study
