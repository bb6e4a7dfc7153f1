#pragma once
// Trained claims: several models learn the same task, and what they end with is compared.
//
//   Claim recall() {
//     return trained({.id = "…", .statement = "…", .quantity = "…", .rule = greater("softmax", "linear attention", 0.1)},
//                    {.recipe = kRecall,
//                     .models = {{.name = "softmax", .set = {"model.layers=softmax*2"}, .rate = 1e-3},
//                                {.name = "linear attention", .set = {"model.layers=linear-elu*2"}, .rate = 3e-3}}});
//   }
//
// The full study searches every model's learning rate: 1, 3, 10, 30, … times 1e-4, from the model's own outwards until the best
// of the first seed is not the largest or smallest tried. The best two are run with a second seed; the better one of both seeds
// is the model's, is run with all seeds, and reported. A rate that brings every seed to the recipe's goal (train.stop_at) ends
// the search: nothing counts as better. Validation examples choose; what the rules see was measured on others.
// A quick study trains with one rate, the one that the full study chose.
//
// No model is judged under-trained. One that was still improving when its steps ended has shown a bound, not a result: its
// interval goes on to the best value that there is (evidence.h), so that a rule that would hold it against the model is
// undecided. A comparison after equal steps says what it is, and takes every value as it stands.
#include <optional>
#include <string>
#include <vector>

#include "isomer/study/claim.h"

namespace isomer::study {

/// One of the models that a claim compares.
struct Contender {
  std::string name;              // of its quantity; with an x, of its series
  Overrides set = {};            // what makes it: "model.layers=gla*2"
  double rate = 1e-3;            // the learning rate of a quick study: the one that the full study chose, from where it searches
  std::optional<double> x = {};  // where in the series it stands: pairs, length, order, width
  bool full_only = false;        // not part of a quick study
};

/// The unit of what a search has chosen, which no figure shows.
inline constexpr std::string_view kLearningRate = "learning rate";

enum class Judged {
  when_it_has_learned,  // a model that was still improving is not judged by where it stood
  after_equal_steps,    // the value after so many steps is what is compared
};

/// What is compared of a finished run, and the best value that it can have.
struct Reading {
  std::function<double(const CellResult&)> value;
  double best = 1;
};
/// A number of the probe.
[[nodiscard]] Reading number(std::string name, double best);

struct Comparison {
  std::string recipe;               // TOML
  Overrides quick = {}, full = {};  // what a quick and a full study add to it
  std::vector<Contender> models;
  Judged judged = Judged::when_it_has_learned;
  const Probe* probe = nullptr;
  const Procedure* procedure = nullptr;  // in place of training
  std::optional<Reading> reading = {};   // without: the task's metric on test examples
  bool search = true;                    // for learning rates; without: each model's own alone
  // The rates that are searched, rising.
  std::vector<double> ladder = {1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1};
  bool second_look = true;  // at the best two rates, with a second seed; without: the first seed chooses

  [[nodiscard]] std::vector<Cell> cells(const Budget& budget, const Cells& done) const;

  /// A model with the rate that was chosen for it.
  struct Chosen {
    const Contender* model = nullptr;
    double rate = 0;
    std::vector<const CellResult*> runs = {};  // one a seed
  };
  [[nodiscard]] std::vector<Chosen> chosen(const Budget& budget, const Cells& cells) const;

  /// Every model's values under its name, and its learning rate.
  void read(const Budget& budget, const Cells& cells, Evidence& found) const;
};

/// More that a claim reads off its runs, after the values of the models.
using More = std::function<void(const std::vector<Comparison::Chosen>& chosen, Evidence& found)>;

/// The claim with the comparison's cells and evidence.
[[nodiscard]] Claim trained(Claim claim, Comparison comparison, More more = {});

}  // namespace isomer::study
