#pragma once
// How the weights of another library become ours, and ours theirs again: a table that architectures fill in.
//
//   WeightTable table;
//   table.in("", "").take("embedding.weight", "model.embed_tokens.weight");
//   const WeightTable::Scope layer = table.in("layers.0.", "model.layers.0.");
//   layer.take("mixer.q.weight", "attn.c_attn.weight").rows(0, 768).transposed();
//
// Every one of our weights is rows of one of theirs: all of them, or some in an order of our own (a part of a stacked matrix,
// heads that stand in each other's way, pairs of channels that are rotated together), turned, scaled or moved by a constant. So
// the way back, and that of gradients, can be read off the same table.
#include <string>
#include <string_view>
#include <vector>

#include "isomer/base/tensor_view.h"

namespace isomer {

struct WeightRule {
  std::string ours, theirs;
  std::string also = {};             // what theirs is called where it is not there by its name
  std::vector<Index> places = {};    // of our rows among theirs; empty: all, in their order
  bool turned = false;               // their matrix is ours transposed
  double factor = 1, constant = 0;   // ours = factor · theirs + constant
  std::vector<double> factors = {};  // of each of our rows, beside it; empty: 1
  bool any_shape = false;            // the same numbers, all of them, with other axes
  bool optional = false;             // where theirs has none, ours is `constant`
  std::vector<double> known = {};    // theirs never has it: these numbers, which are not learned

  /// Our rows are theirs from `first` on.
  WeightRule& rows(Index first, Index count);
  WeightRule& at(std::vector<Index> rows);
  WeightRule& transposed();
  WeightRule& reshaped();
  WeightRule& plus(double number);
  WeightRule& times(double number);
  /// Each of our rows by its own.
  WeightRule& times_each(std::vector<double> numbers);
  [[nodiscard]] double factor_of(Index row) const { return factors.empty() ? factor : factor * factors[std::size_t(row)]; }
  WeightRule& if_there();
};

class WeightTable {
 public:
  /// Names with something in front of both.
  struct Scope {
    WeightTable& table;
    std::string ours, theirs;
    WeightRule& take(std::string_view our_name, std::string_view their_name) const;
    /// Theirs has one of two names.
    WeightRule& take_either(std::string_view our_name, std::string_view their_name, std::string_view other) const;
    /// Numbers of ours that are code there.
    void know(std::string_view our_name, std::vector<double> numbers) const;
    /// NAME.weight, and NAME.bias if `bias`.
    void linear(std::string_view our_name, std::string_view their_name, bool bias = false) const;
    [[nodiscard]] Scope in(std::string_view our_prefix, std::string_view their_prefix) const;
  };
  [[nodiscard]] Scope in(std::string_view ours, std::string_view theirs);
  /// Weights of theirs that a model does not need, by the end of their names: tables of sines, masks.
  void leave(std::string_view end) { left_.emplace_back(end); }

  /// A part of theirs that is none of ours, by the beginning of its names. It is written again as it was.
  struct Part {
    std::string name, start;
  };
  void leave_part(std::string_view name, std::string_view start) { parts_.push_back({std::string(name), std::string(start)}); }

  /// Theirs may be a part of a larger model, all its names behind a word ("bert."): then whatever else there is is left.
  void find_place(const TensorViews& theirs);

  [[nodiscard]] const std::vector<WeightRule>& rules() const { return rules_; }
  [[nodiscard]] const std::vector<Part>& parts() const { return parts_; }
  [[nodiscard]] bool left(std::string_view theirs) const;
  [[nodiscard]] bool in_part(std::string_view theirs) const;

 private:
  std::vector<WeightRule> rules_;
  std::vector<std::string> left_;
  std::vector<Part> parts_;
  std::string place_;  // in front of all names; others are left
};

/// Weights by our names. What needs no work is a view into theirs.
struct TakenWeights {
  TensorViews views;
  std::vector<Tensor> made;
};

/// `shapes` are those of our weights. Throws Error listing what is missing, unknown or has another shape.
struct WeightShape {
  std::string name;
  std::vector<Index> shape;
};
[[nodiscard]] TakenWeights take_weights(const WeightTable& table, const std::vector<WeightShape>& shapes,
                                        const TensorViews& theirs);

/// Those of theirs, by our names, whose numbers are ours as they are. Of any shape; take_weights() checks them.
[[nodiscard]] TensorViews plain_weights(const WeightTable& table, const TensorViews& theirs);

/// The way back: their weights from ours, in the types and shapes that `theirs` has. Of a gradient only the linear part counts.
enum class Putting : std::uint8_t { weights, gradients };
[[nodiscard]] Tensors put_weights(const WeightTable& table, const TensorViews& ours, const TensorViews& theirs, Putting what);

/// Rows of `heads` heads whose pairs of channels stand beside each other, in the order of rotary.h, which has the first of all
/// pairs first: ours[h, i] = theirs[h, 2 i], ours[h, half + i] = theirs[h, 2 i + 1].
[[nodiscard]] std::vector<Index> rows_of_pairs(Index heads, Index size);

/// `count` rows from `first` on of each of `groups` groups of `size` rows.
[[nodiscard]] std::vector<Index> rows_of_groups(Index groups, Index size, Index first, Index count);

/// The numbers of `matrices` matrices, ours of `rows` rows and `columns` columns, each of theirs transposed; for reshaped().
[[nodiscard]] std::vector<Index> numbers_turned(Index matrices, Index rows, Index columns);

}  // namespace isomer
