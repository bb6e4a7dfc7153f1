// LUNA and its relatives in place of softmax in BERT-base, fine-tuned here: on the questions of TREC, and on the first 128 tokens
// of reviews of IMDB.
#include "isomer/base/error.h"
#include "isomer/io/text.h"
#include "isomer/study/claims/conversions.h"
#include "isomer/study/claims/sources.h"

namespace isomer::study {

namespace {
using Part = Trial::Part;

/// A set of texts with classes, as `tools/models` fetches it, and how BERT is fine-tuned on it.
struct Texts {
  std::string name, extension;
  std::string order;  // of the records
  /// Records in the order in which they are divided, behind a header where there is one.
  std::vector<std::string> (*lines)(const std::string& folder);
  std::size_t header;                   // its lines
  std::size_t train, validation, test;  // records of each, one part behind the other
  Tuning tuning;                        // of BERT, before softmax is replaced
};

Overrides task_of(const Texts& texts, Isa isa) {
  const std::string folder = model_folder(texts.name);
  const auto part = [&](const char* name, std::size_t first, std::size_t count) {
    const std::string which = std::to_string(count) + " records from " + std::to_string(first) + ", " + texts.order;
    const Keepsake records{.folder = folder, .name = name, .extension = texts.extension, .made_of = which};
    return made_once(records, isa, [&](const std::string& path) {
      const std::vector<std::string> lines = texts.lines(folder);
      const std::size_t begin = texts.header + first;
      require(lines.size() >= begin + count, texts.name.c_str(), "expected ", begin + count, " lines, got ", lines.size());
      std::string text;
      for (std::size_t i = 0; i < texts.header; ++i) text += lines[i] + "\n";
      for (std::size_t i = begin; i < begin + count; ++i) text += lines[i] + "\n";
      write_text(path, text);
    });
  };
  return {"task.path=" + part("train", 0, texts.train),
          "task.validation_path=" + part("validation", texts.train, texts.validation),
          "task.test_path=" + part("test", texts.train + texts.validation, texts.test)};
}

/// How many of the examples that choose are looked at; those of the test all are.
struct Looks {
  Index on_the_way, validation;
};

CellResult run_texts(const Texts& texts, const Looks& looks, Index transfer, const Recipe& recipe, Context& context,
                     const CellProgress& progress) {
  const auto accuracy = [&](Session& session, Part part) {
    const bool test = part == Part::test;
    const Index examples = test ? Index(texts.test) : part == Part::look ? looks.on_the_way : looks.validation;
    return session.evaluate({.examples = examples, .split = test ? Split::test : Split::validation}).value;
  };
  const Trial trial{.name = texts.name,
                    .teacher = tuned_once(recipe, model_folder("bert-base"), task_of(texts, context.isa()), texts.name,
                                          texts.tuning, context, progress),
                    .score = accuracy,
                    .learns = Trial::From::labels,
                    .transfer = transfer,
                    .looks = 6};
  return run_trial(trial, recipe, context, progress);
}

constexpr Index kKey = 64;

// ---------------------------------------------------------------------------------------------------------------------------
// Questions: six classes, a dozen tokens.

constexpr const char* kQuestions = R"(
[task]
name = "classify"
label = "label-coarse"
length = 20
[train]
steps = 96
batch = 16
warmup = 10
weight_decay = 0.01
)";

/// The set's own division: its last 500 questions are the test, those before them choose learning rates.
const Texts& trec() {
  static const Texts texts{.name = "trec",
                           .extension = ".csv",
                           .order = "as they are",
                           .lines = [](const std::string& folder) { return read_lines(folder + "/trec.csv"); },
                           .header = 1,
                           .train = 5252,
                           .validation = 200,
                           .test = 500,
                           .tuning = {.steps = 120, .rate = 5e-5}};
  return texts;
}

const Procedure kQuestionConversion{
    .name = "bert-base on trec: 120 steps of fine-tuning at 5e-5, 40 of transfer, then fine-tuning",
    .run = [](const Recipe& recipe, Context& context, const CellProgress& progress) {
      return run_texts(trec(), {.on_the_way = 64, .validation = 200}, 40, recipe, context, progress);
    }};

Claim about_questions() {
  return converted(
      {.id = "luna.bert-conversion",
       .statement = "In place of softmax in a fine-tuned BERT-base LUNA recovers at least as much as Hedgehog after equal brief "
                    "fine-tuning, and more than T2R, elu + 1, the Performer and cosFormer.",
       .quantity =
           "share of the 500 test questions of TREC whose coarse class is named right: BERT-base fine-tuned once for 120 steps "
           "of 16, every softmax replaced, q, k, v and o kept, 40 steps of attention transfer where there is something to "
           "learn, 96 of fine-tuning at 3e-5 or 1e-4, as 200 others choose; seeds draw new parameters and the order of questions",
       .rule = luna_leads(false, 0.01),
       .otherwise = "budget: 96 steps of 16 questions; Hedgehog's map starts at exp, LUNA's at random",
       .unclear = "budget: 96 steps of 16 questions, and few seeds"},
      {.recipe = kQuestions, .models = successors(kKey, 1e-4), .procedure = &kQuestionConversion, .ladder = {3e-5, 1e-4}},
      "accuracy");
}

// ---------------------------------------------------------------------------------------------------------------------------
// Reviews: good or bad, 128 tokens and more.

constexpr const char* kReviews = R"(
[task]
name = "classify"
length = 128
[train]
steps = 48
batch = 8
warmup = 5
weight_decay = 0.01
)";

/// The file has all bad ones, then all good ones: here they come in turn.
std::vector<std::string> reviews(const std::string& folder) {
  const std::vector<std::string> lines = read_lines(folder + "/reviews.jsonl");
  std::vector<std::string> in_turn;
  for (std::size_t i = 0; i < lines.size() / 2; ++i)
    for (const std::size_t at : {i, lines.size() / 2 + i}) in_turn.push_back(lines[at]);
  return in_turn;
}

const Texts& imdb() {
  static const Texts texts{.name = "imdb",
                           .extension = ".jsonl",
                           .order = "bad and good in turn",
                           .lines = reviews,
                           .header = 0,
                           .train = 8000,
                           .validation = 200,
                           .test = 300,
                           .tuning = {.steps = 150, .rate = 3e-5}};
  return texts;
}

const Procedure kReviewConversion{.name = "bert-base on imdb: 150 steps of fine-tuning at 3e-5, 20 of transfer, then fine-tuning",
                                  .run = [](const Recipe& recipe, Context& context, const CellProgress& progress) {
                                    return run_texts(imdb(), {.on_the_way = 24, .validation = 100}, 20, recipe, context,
                                                     progress);
                                  }};

Claim about_reviews() {
  return converted(
      {.id = "luna.imdb-conversion",
       .statement = "In place of softmax in a BERT-base that was fine-tuned on longer texts LUNA recovers at least as much as "
                    "Hedgehog after equal brief fine-tuning, and more than T2R, elu + 1, the Performer and cosFormer.",
       .quantity =
           "share of 300 reviews of IMDB, of which the first 128 tokens are read, that are rightly called good or bad: BERT-base "
           "fine-tuned once for 150 steps of 8, every softmax replaced, q, k, v and o kept, 20 steps of attention transfer where "
           "there is something to learn, 48 of fine-tuning at 3e-5 or 1e-4, as 100 others choose; seeds draw new parameters and "
           "the order of reviews",
       .rule = luna_leads(false, 0.01),
       .otherwise = "budget: 48 steps of 8 reviews; Hedgehog's map starts at exp, LUNA's at random",
       .unclear = "budget: 48 steps of 8 reviews, and few seeds"},
      {.recipe = kReviews, .models = successors(kKey, 1e-4), .procedure = &kReviewConversion, .ladder = {3e-5, 1e-4}},
      "accuracy");
}
}  // namespace

std::vector<Claim> luna_texts() { return {about_questions(), about_reviews()}; }

}  // namespace isomer::study
