// LUNA and its relatives in place of softmax in TabPFN, which others have trained to say the classes of a table's rows from those
// of other rows. It has no labelled rows to learn from: a converted model learns to answer as the old one does on tables that
// nobody collected (tasks/tables.cc), and is scored on four that people did.
#include <algorithm>
#include <numeric>

#include "isomer/base/rng.h"
#include "isomer/models/table_rows.h"
#include "isomer/study/claims/conversions.h"
#include "isomer/study/claims/sources.h"
#include "isomer/tasks/draw.h"

namespace isomer::study {

namespace {
using Part = Trial::Part;

constexpr const char* kTables = R"(
[task]
name = "tables"
rows = 128
known = 96
columns = 80
[train]
steps = 120
batch = 2
)";

/// A collected table, and how many rows are known and asked for.
struct Collected {
  std::string name, file;
  std::size_t known, asked;
};
const std::vector<Collected>& collected() {
  static const std::vector<Collected> kAll{{"iris", "iris", 75, 75},
                                           {"wine", "wine", 89, 89},
                                           {"breast cancer", "breast-cancer", 284, 285},
                                           {"digits", "digits", 400, 400}};
  return kAll;
}
/// The same table with few and with many known rows.
std::vector<Collected> growing() {
  return {{"digits, 100 known", "digits", 100, 400}, {"digits, 1200 known", "digits", 1200, 400}};
}

/// The share of the rows asked for whose class is found, over two ways to divide the table.
double found_right(const Model<float>& model, const Collected& of, Context& context) {
  constexpr std::uint64_t kDivisions = 2;
  const TableRows all = read_table(model_folder("tables") + "/" + of.file + ".csv", "class");
  double right = 0;
  for (std::uint64_t division = 1; division <= kDivisions; ++division) {
    std::vector<std::int64_t> order(all.rows.size());
    std::iota(order.begin(), order.end(), 0);
    Rng rng(division);
    draw::shuffle(rng, order);
    TableRows known{.columns = all.columns}, asked{.columns = all.columns};
    for (std::size_t i = 0; i < of.known + of.asked; ++i) {
      TableRows& to = i < of.known ? known : asked;
      to.rows.push_back(all.rows[std::size_t(order[i])]);
      to.labels.push_back(all.labels[std::size_t(order[i])]);
    }
    const std::vector<RowClass> said = classify_rows(model, known, asked, context);
    for (std::size_t i = 0; i < said.size(); ++i) right += said[i].label == asked.labels[i] ? 1 : 0;
  }
  return right / double(of.asked * kDivisions);
}

const Procedure kTableConversion{
    .name = "tabpfn on tables of a random network: 40 steps of transfer, then distillation; four collected tables are the test",
    .run = [](const Recipe& recipe, Context& context, const CellProgress& progress) {
      (void)model_folder("tables");
      const auto accuracy = [&](Session& session, Part part) {
        constexpr Index kLook = 8, kValidation = 24;
        if (part != Part::test) return session.evaluate({.examples = part == Part::look ? kLook : kValidation}).value;
        double sum = 0;
        for (const Collected& one : collected()) sum += found_right(session.model(), one, context);
        return sum / double(collected().size());
      };
      Trial trial{.name = "tables of seed " + std::to_string(recipe.train.seed),
                  .teacher = pretrained(recipe, model_folder("tabpfn"), {}, Head::own, context),
                  .score = accuracy,
                  .transfer = 40,
                  .looks = 6};
      std::vector<Collected> single = collected();
      std::ranges::copy(growing(), std::back_inserter(single));
      for (const Collected& one : single)
        trial.more[one.name] = [one, &context](Session& session) { return found_right(session.model(), one, context); };
      return run_trial(trial, recipe, context, progress);
    }};

/// Rows have no order that cosFormer could weigh by, and InLine's means count the rows that are asked for.
std::vector<Contender> successors_in_tables() {
  constexpr Index kKey = 128;
  std::vector<Contender> models = successors(kKey, 3e-5);
  std::erase_if(models, [](const Contender& model) { return model.name == "InLine" || model.name == "cosFormer"; });
  return models;
}

Claim converted_tables() {
  return converted(
      {.id = "luna.tabpfn-conversion",
       .statement =
           "In place of softmax in a pre-trained model of tables LUNA recovers at least as much as Hedgehog, and more than T2R, "
           "elu + 1 and the Performer.",
       .quantity =
           "mean over iris, wine, breast cancer and digits of the share of rows whose class TabPFN (12 layers of 512) says "
           "right in one pass, from 75, 89, 284 and 400 rows whose class is known, two divisions each; of digits from 100 and "
           "1200 too: every softmax replaced, q, k, v and o kept; on tables of a random network, without labels, 40 steps of "
           "attention transfer where there is something to learn, then 120 of distillation, batches of 2 tables of 96 known and "
           "32 other rows, learning rate of 3e-5 or 1e-4, as 24 other such tables choose. Seeds draw new parameters and those "
           "tables",
       .rule = luna_leads(false, 0.01, {"T2R", "elu + 1", "Performer"}),
       .units = {{"iris", "accuracy"},
                 {"wine", "accuracy"},
                 {"breast cancer", "accuracy"},
                 {"digits", "accuracy"},
                 {"softmax, ", "accuracy"}},
       .otherwise =
           "training: of the rates the first seed chose 1e-4 for LUNA, with which it is at chance for the third; with 3e-5, run "
           "beside it, it is on a par with Hedgehog and behind T2R. With Hedgehog and T2R iris, wine and breast cancer are "
           "within seven points of softmax; of digits, with ten classes and 64 columns, they find about half",
       .unclear = "budget: 120 steps of 256 rows, and few seeds"},
      {.recipe = kTables, .models = successors_in_tables(), .procedure = &kTableConversion, .ladder = {3e-5, 1e-4}}, "accuracy");
}
}  // namespace

std::vector<Claim> luna_tables() { return {converted_tables()}; }

}  // namespace isomer::study
