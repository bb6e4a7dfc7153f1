// LUNA and its relatives in place of softmax in models that others have trained: stories15M, MiniLM and BERT-base. `tools/models`
// fetches weights and data; the claims say which are missing. Each cell converts one model to one mixer with one learning rate.
#include <cmath>
#include <limits>
#include <mutex>

#include "isomer/base/error.h"
#include "isomer/io/files.h"
#include "isomer/io/json.h"
#include "isomer/io/text.h"
#include "isomer/models/pretrained.h"
#include "isomer/study/claims/sources.h"
#include "isomer/study/pretrained.h"
#include "isomer/study/trained.h"
#include "isomer/train/generator.h"

namespace isomer::study {

namespace {
// Steps of attention transfer before those of distillation.
constexpr Index kTransfer = 60;

/// What the models of a claim are converted to. A recipe with one layer stands for all of a model's.
std::vector<Contender> successors(double rate) {
  const auto all = [rate](const char* name, const std::string& preset) {
    return Contender{.name = name, .set = {"model.layers=" + preset}, .rate = rate};
  };
  return {all("LUNA", "luna"),          all("Hedgehog", "hedgehog"),   all("T2R", "t2r"),
          all("elu + 1", "linear-elu"), all("Performer", "performer"), all("cosFormer", "cosformer")};
}

CellResult diverged(bool lower_is_better, Index parameters) {
  const double worst = lower_is_better ? std::numeric_limits<double>::infinity() : 0;
  return {.value = worst,
          .validation = worst,
          .loss = worst,
          .lower_is_better = lower_is_better,
          .diverged = true,
          .parameters = parameters};
}

/// A file that is made of a model or of data when it is first needed, and kept beside them. Cells run side by side.
template <class Make>
std::string made_once(const std::string& path, Make make) {
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  if (!is_there(path)) write_text(path, make());
  return path;
}

// ---------------------------------------------------------------------------------------------------------------------------
// A language model of 6 layers that tells stories.

constexpr const char* kStories = R"(
[task]
name = "text"
length = 64
test_share = 0.1
[train]
steps = 120
batch = 4
eval_examples = 40
)";

/// What the model says by itself, drawn as it thinks.
std::string own_stories(const std::string& folder, Context& context) {
  constexpr Index kCount = 480, kTogether = 48, kLongest = 200;
  const auto loaded = load_model(folder);
  std::string text;
  for (Index first = 0; first < kCount; first += kTogether) {
    Generator generator(*loaded, {.temperature = 1}, std::uint64_t(first + 1), context);
    const std::vector<std::int64_t> begin = loaded->tokenizer->encode_input("").tokens;
    require(!begin.empty(), "stories15m", "expected a token that stories begin with, got none");
    generator.read(std::vector(std::size_t(kTogether), begin));
    std::vector<std::vector<std::int64_t>> said(std::size_t(kTogether), begin);
    for (Index i = 0; i < kLongest; ++i) {
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

double perplexity(Session& session, Index examples, Index first) {
  return std::exp(session.evaluate({.examples = examples, .first = first}).loss);
}

const Procedure kStoriesConversion{
    .name = "stories15m on its own text: 60 steps of transfer, then distillation",
    .run = [](const Recipe& recipe, Context& context, const CellProgress& progress) {
      const std::string folder = model_folder("stories15m");
      const std::string text = made_once(folder + "/own-stories.txt", [&] { return own_stories(folder, context); });
      const auto teacher = pretrained(recipe, folder, {"task.path=" + text}, Head::of_task, context);
      ConvertedModel to = convert_as(recipe, *teacher, context);
      const Index examples = recipe.train.eval_examples;
      CellResult result{.lower_is_better = true, .parameters = to.session->parameters().trained_size()};
      try {
        result.numbers["of softmax"] = perplexity(*teacher, 2 * examples, examples);
        result.numbers["new mixers"] = perplexity(*to.session, 2 * examples, examples);
        transfer_new(*teacher, to, kTransfer, context);
        result.numbers["after transfer"] = perplexity(*to.session, 2 * examples, examples);
        result.curve = distilled(*teacher, to, recipe.train, context, progress);
      } catch (const NotFinite&) {
        return diverged(true, result.parameters);
      }
      result.validation = perplexity(*to.session, examples, 0);
      result.value = perplexity(*to.session, 2 * examples, examples);
      result.loss = result.curve.back().loss;
      result.improving = still_improving(result.curve, true);
      result.steps = recipe.train.steps;
      return result;
    }};

/// What a claim shows beside the models' own values.
void read_stages(const std::vector<Comparison::Chosen>& chosen, Evidence& found) {
  for (const Comparison::Chosen& one : chosen)
    for (const CellResult* run : one.runs) {
      if (run->diverged) continue;
      if (one.model->name == "LUNA") found.add("softmax, the model as it was", run->numbers.at("of softmax"));
      found.add("after transfer, " + one.model->name, run->numbers.at("after transfer"));
      found.add("at once, " + one.model->name, run->numbers.at("new mixers"));
    }
}

Claim stories() {
  std::vector<Contender> models = successors(3e-4);
  models.push_back({.name = "Hedgehog and windows of 16",
                    .set = {"model.layers=hedgehog,sliding-window,hedgehog,sliding-window,hedgehog,sliding-window",
                            "mixer.sliding-window.window=16"},
                    .rate = 3e-4});
  return trained(
      {.id = "luna.stories-conversion",
       .statement =
           "In place of softmax in a pre-trained language model LUNA recovers at least as much as Hedgehog, and more than "
           "T2R, elu + 1, the Performer and cosFormer; layers with short windows between linear ones recover more than any.",
       .quantity =
           "perplexity of stories15M (6 layers of 288) on 80 windows of 64 tokens of its own text, which no model has seen: "
           "every softmax replaced, q, k, v, o and RoPE kept; 60 steps of attention transfer, then 120 of distillation, "
           "batches of 4 windows, learning rate searched",
       .rule = all_of({ordering({"Hedgehog", "LUNA"}, 0.5), greater("T2R", "LUNA", 0), greater("elu + 1", "LUNA", 0),
                       greater("Performer", "LUNA", 0), greater("cosFormer", "LUNA", 0),
                       greater("LUNA", "Hedgehog and windows of 16", 0), greater("Hedgehog", "Hedgehog and windows of 16", 0)}),
       .published = {{.name = "LUNA, share of BERT's GLUE score", .value = 0.995, .where = "table of GLUE"},
                     {.name = "Hedgehog, share of BERT's GLUE score", .value = 0.993, .where = "table of GLUE"}},
       .figure = {.kind = "bars",
                  .y = "perplexity",
                  .caption = "A model that tells stories, with each successor of softmax; lower is better."},
       .otherwise = "size and budget: 120 steps of 256 tokens; curves show which were still falling",
       .unclear = "budget: 120 steps of 256 tokens, and few seeds",
       .full_only = true},
      {.recipe = kStories, .models = models, .judged = Judged::after_equal_steps, .procedure = &kStoriesConversion}, read_stages);
}

// ---------------------------------------------------------------------------------------------------------------------------
// A sentence encoder of 6 layers.

constexpr const char* kSentences = R"(
[task]
name = "classify"
length = 32
test_share = 0.1
[train]
steps = 150
batch = 16
eval_examples = 64
)";

/// Pairs of sentences with how alike people find them.
struct Pairs {
  std::vector<std::string> first, second;
  std::vector<double> scores;

  explicit Pairs(const std::string& path) {
    constexpr std::size_t kScore = 4, kFirst = 5, kSecond = 6;
    for (const std::string& line : read_lines(path)) {
      const std::vector<std::string> fields = split(line, '\t');
      double score = 0;
      require(fields.size() > kSecond && parse_number(fields[kScore], score), "sts-b", "expected a score and two sentences, got ",
              line, " in ", path);
      scores.push_back(score);
      first.push_back(fields[kFirst]);
      second.push_back(fields[kSecond]);
    }
  }
};

/// Sentences of the training pairs without their scores, as records. The labels stand for nothing and are not looked at.
std::string sentences_of(const std::string& path) {
  const Pairs pairs(path);
  std::string text;
  for (const auto* side : {&pairs.first, &pairs.second})
    for (const std::string& sentence : *side)
      text += Json::object({{"text", sentence}, {"label", side == &pairs.first ? "first" : "second"}}).dump() + "\n";
  return text;
}

/// Spearman's correlation of the cosines with the scores, over the first pairs.
double agreement(Session& session, const Tokenizer& tokenizer, const Pairs& pairs, std::size_t first, std::size_t count,
                 Context& context) {
  Tape<float> tape(context, Record::no);
  const auto vector_of = [&](const std::string& text) {
    const std::vector<std::int64_t> tokens = tokenizer.encode_input(text).tokens;
    tape.clear();
    const Var<float> v = session.model().logits(tape, {.B = 1, .T = Index(tokens.size()), .tokens = tokens}).logits;
    return std::vector<double>(v.value.data, v.value.data + v.value.size());
  };
  std::vector<double> cosines, scores;
  for (std::size_t i = first; i < std::min(first + count, pairs.scores.size()); ++i) {
    const std::vector<double> a = vector_of(pairs.first[i]), b = vector_of(pairs.second[i]);
    double sum = 0;
    for (std::size_t d = 0; d < a.size(); ++d) sum += a[d] * b[d];
    cosines.push_back(sum);
    scores.push_back(pairs.scores[i]);
  }
  return spearman(cosines, scores);
}

const Procedure kSentenceConversion{
    .name = "minilm on sentences of sts-b: 60 steps of transfer, then distillation; 400 pairs of the test",
    .run = [](const Recipe& recipe, Context& context, const CellProgress& progress) {
      const std::string folder = model_folder("minilm"), data = model_folder("sts-b");
      const std::string records = made_once(data + "/sentences.jsonl", [&] { return sentences_of(data + "/sts-train.csv"); });
      const auto teacher = pretrained(recipe, folder, {"task.path=" + records}, Head::own, context);
      const auto tokenizer = tokenizer_from(read_tokenizer(folder), folder, teacher->config().vocabulary);
      ConvertedModel to = convert_as(recipe, *teacher, context);
      CellResult result{.parameters = to.session->parameters().trained_size()};
      constexpr std::size_t kPairs = 400;
      const Pairs validation(data + "/sts-dev.csv"), test(data + "/sts-test.csv");
      try {
        result.numbers["of softmax"] = agreement(*teacher, *tokenizer, test, 0, kPairs, context);
        result.numbers["new mixers"] = agreement(*to.session, *tokenizer, test, 0, kPairs, context);
        transfer_new(*teacher, to, kTransfer, context);
        result.numbers["after transfer"] = agreement(*to.session, *tokenizer, test, 0, kPairs, context);
        result.curve = distilled(*teacher, to, recipe.train, context, progress);
      } catch (const NotFinite&) {
        return diverged(false, result.parameters);
      }
      result.validation = agreement(*to.session, *tokenizer, validation, 0, kPairs / 2, context);
      result.value = agreement(*to.session, *tokenizer, test, 0, kPairs, context);
      result.loss = result.curve.back().loss;
      result.numbers["cosine to the teacher"] = 1 - distance(*teacher, *to.session, 256, context) / 2;
      result.improving = still_improving(result.curve, true);
      result.steps = recipe.train.steps;
      return result;
    }};

Claim sentences() {
  return trained(
      {.id = "luna.minilm-conversion",
       .statement =
           "In place of softmax in a pre-trained sentence encoder LUNA recovers at least as much as Hedgehog, and more than "
           "T2R, elu + 1, the Performer and cosFormer.",
       .quantity =
           "Spearman's correlation of all-MiniLM-L6-v2's cosines with the scores of the first 400 test pairs of STS-B: every "
           "softmax replaced, q, k, v and o kept; on sentences without scores 60 steps of attention transfer, then 150 of "
           "distillation, batches of 16, learning rate searched",
       .rule = all_of({ordering({"LUNA", "Hedgehog"}, 0.005), greater("LUNA", "T2R", 0), greater("LUNA", "elu + 1", 0),
                       greater("LUNA", "Performer", 0), greater("LUNA", "cosFormer", 0)}),
       .published = {{.name = "LUNA, share of BERT's GLUE score", .value = 0.995, .where = "table of GLUE"},
                     {.name = "Hedgehog, share of BERT's GLUE score", .value = 0.993, .where = "table of GLUE"}},
       .figure = {.kind = "bars",
                  .y = "Spearman's correlation",
                  .caption = "A sentence encoder, with each successor of softmax; higher is better."},
       .units = {{"cosine to the teacher", "cosine"}},
       .otherwise = "size and budget: 150 steps of 16 sentences",
       .unclear = "budget: 150 steps of 16 sentences, and few seeds",
       .full_only = true},
      {.recipe = kSentences, .models = successors(3e-4), .judged = Judged::after_equal_steps, .procedure = &kSentenceConversion},
      [](const std::vector<Comparison::Chosen>& chosen, Evidence& found) {
        read_stages(chosen, found);
        for (const Comparison::Chosen& one : chosen)
          for (const CellResult* run : one.runs)
            if (!run->diverged) found.add("cosine to the teacher, " + one.model->name, run->numbers.at("cosine to the teacher"));
      });
}

// ---------------------------------------------------------------------------------------------------------------------------
// BERT-base, fine-tuned here on the questions of TREC.

constexpr const char* kQuestions = R"(
[task]
name = "classify"
label = "label-coarse"
length = 32
test_share = 0.1
[train]
steps = 100
batch = 16
warmup = 10
weight_decay = 0.01
eval_examples = 200
)";
// Of fine-tuning softmax, before it is replaced.
constexpr Index kTeacherSteps = 150;
constexpr double kTeacherRate = 5e-5;

/// BERT with a head for the questions, trained once a seed and kept beside its weights.
std::unique_ptr<Session> question_teacher(const Recipe& recipe, Context& context, const CellProgress& progress) {
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  const std::string folder = model_folder("bert-base"), data = "task.path=" + model_folder("trec") + "/trec.csv";
  const std::string kept = folder + "/study-trec-" + std::to_string(recipe.train.seed) + ".safetensors";
  Recipe own = recipe;
  own.train.steps = kTeacherSteps;
  own.train.warmup = kTeacherSteps / 10;
  own.train.lr = kTeacherRate;
  auto teacher = pretrained(own, folder, {data}, Head::of_task, context);
  if (is_there(kept)) {
    teacher->parameters().assign(read_safetensors(kept));
    return teacher;
  }
  for (Index step = 0; step < kTeacherSteps; ++step) {
    (void)teacher->step();
    if (progress && !progress(0)) throw Error("stopped");
  }
  write_safetensors(kept, teacher->parameters().tensors());
  return teacher;
}

const Procedure kQuestionConversion{
    .name = "bert-base on trec: 150 steps of fine-tuning at 5e-5, 60 of transfer, then fine-tuning",
    .run = [](const Recipe& recipe, Context& context, const CellProgress& progress) {
      const auto teacher = question_teacher(recipe, context, progress);
      ConvertedModel to = convert_as(recipe, *teacher, context);
      const Index examples = recipe.train.eval_examples;
      const auto accuracy = [&](Session& session, Index count, Index first) {
        return session.evaluate({.examples = count, .first = first}).value;
      };
      CellResult result{.parameters = to.session->parameters().trained_size()};
      try {
        result.numbers["of softmax"] = accuracy(*teacher, 2 * examples, examples);
        result.numbers["new mixers"] = accuracy(*to.session, 2 * examples, examples);
        transfer_new(*teacher, to, kTransfer, context);
        result.numbers["after transfer"] = accuracy(*to.session, 2 * examples, examples);
        for (Index step = 1; step <= recipe.train.steps; ++step) {
          const double loss = to.session->step().loss;
          if (progress && !progress(double(step) / double(recipe.train.steps))) throw Error("stopped");
          if (step % 10 == 0) result.curve.push_back({step, loss, accuracy(*to.session, examples / 2, 0)});
        }
      } catch (const NotFinite&) {
        return diverged(false, result.parameters);
      }
      result.validation = accuracy(*to.session, examples, 0);
      result.value = accuracy(*to.session, 2 * examples, examples);
      result.improving = still_improving(result.curve, false);
      result.steps = recipe.train.steps;
      return result;
    }};

Claim questions() {
  return trained(
      {.id = "luna.bert-conversion",
       .statement = "In place of softmax in a fine-tuned BERT-base LUNA recovers at least as much as Hedgehog after equal brief "
                    "fine-tuning, and more than T2R, elu + 1, the Performer and cosFormer.",
       .quantity =
           "share of 395 test questions of TREC (a tenth of all, dealt by the seed; the first 200 choose learning rates) whose "
           "coarse class is named right: BERT-base fine-tuned for 150 steps of 16, every softmax replaced, q, k, v and o kept, "
           "60 steps of attention transfer, 100 of fine-tuning, learning rate searched",
       .rule = all_of({ordering({"LUNA", "Hedgehog"}, 0.01), greater("LUNA", "T2R", 0), greater("LUNA", "elu + 1", 0),
                       greater("LUNA", "Performer", 0), greater("LUNA", "cosFormer", 0)}),
       .published = {{.name = "LUNA, share of BERT's GLUE score", .value = 0.995, .where = "table of GLUE"},
                     {.name = "Hedgehog, share of BERT's GLUE score", .value = 0.993, .where = "table of GLUE"}},
       .figure = {.kind = "bars", .y = "accuracy", .caption = "BERT-base on TREC, with each successor of softmax."},
       .otherwise = "size and budget: 100 steps of 16 questions",
       .unclear = "budget: 100 steps of 16 questions, and few seeds",
       .full_only = true},
      {.recipe = kQuestions, .models = successors(1e-4), .judged = Judged::after_equal_steps, .procedure = &kQuestionConversion},
      read_stages);
}
}  // namespace

std::vector<Claim> luna_pretrained() { return {stories(), sentences(), questions()}; }

}  // namespace isomer::study
