#pragma once
// What a node of a mixer's graph (graph.h) does with its inputs. Sizes are the node's own.
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "isomer/base/index.h"
#include "isomer/kernels/elementwise/binary.h"
#include "isomer/kernels/elementwise/unary.h"
#include "isomer/kernels/norm/norm.h"
#include "isomer/kernels/rotary/rotary.h"
#include "isomer/laws/bound_law.h"
#include "isomer/mixers/parameter_init.h"

namespace isomer::graph {

struct Input {};
/// x · Wᵀ + b, over all heads: [1, K] → [1, N]. Those of one input become one product.
struct Linear {
  bool bias = false;
  Init weight = {}, bias_init = constant(0);
};
/// Each head by itself, or one weight shared by all heads: [H, K] → [H, N].
struct HeadLinear {
  bool bias = false, shared = false;
  bool given = false;      // the weight is no parameter but the second input, [H, K], for one number of each head
  bool unit_rows = false;  // the rows of the weight are used divided by their lengths (weight normalisation)
  Training training = Training::trained;
  Init weight = {}, bias_init = constant(0);
};
/// [heads, size] numbers, the same for every token.
struct Parameter {
  Init init;
  Training training = Training::trained;
  bool shared = false;  // one of the whole model: all layers of the preset that have it have the same
};
/// Causal depthwise convolution; its state is the last width − 1 tokens.
struct Convolution {
  Index width = 4;
  bool bias = false, silu = false;
  Init weight = {.kind = Init::Kind::uniform, .a = -0.5, .b = 0.5};
};
/// The value of the token before; zero at the first.
struct Shift {};
struct Map {
  Unary function;
  UnaryOptions options = {};
};
/// Elementwise, with broadcasting of heads or size 1.
struct Combine {
  Binary function;
};
/// f(gate) · value, of one shape.
struct Gate {
  Unary function = Unary::sigmoid;
};
/// The same numbers in `heads` heads.
struct Heads {};
/// Each number as often as the node is wide: [H, 1] → [H, N].
struct Repeat {};
/// The numbers at these places, each as often as it is named: [H, K] → [H, N].
struct Gather {
  std::vector<Index> places;
};
/// Over the last axis.
struct Normalise {
  Norm kind = Norm::rms;
  double eps = 1e-6;
  bool weight = false, bias = false;
  bool shared = false;  // by all heads: weight and bias are [1, size], else [heads, size]
  double start = 1;     // of the weight
};
/// By position · base^(−2n/size).
struct Rotary {
  double base = 10000;
  RotaryScaling scaling = {};
};
/// By the angles of the second input [heads or 1, size / 2].
struct Rotate {};
/// Running sum over tokens, in double; its state is the last sum.
struct RunningSum {
  bool angle = false;  // whole turns are left out
};
/// Mean over tokens: of those so far (state: sum and count), or of all of them.
struct Mean {
  bool causal = true;
};
/// Along the last axis.
struct Concat {};
struct Slice {
  Index begin = 0;
};
struct Softmax {};
/// Σ x² over the last axis.
struct SquareSum {};
/// The largest number of the last axis, or of a head's in all tokens: [H, 1]. No gradient goes back.
struct Largest {
  bool over_tokens = false;
};
/// [1, x, x²/√2, x_i x_j] scaled so that two of them multiply to 1 + z + z²/2, z = q·k/√size.
struct TaylorFeatures {};
/// The number of the token, from 1.
struct Position {};
/// A learned vector for each of `length` positions.
struct PositionTable {
  Index length = 2048;
};
/// LUNA's ψ: each number becomes `outputs` numbers by a small learned network, followed by relu + floor if `positive`.
struct Psi {
  Index outputs = 4, hidden = 64;
  bool shared = false, positive = true;
};
/// Σ_j r_j ∘ v_{t−j} over the last `width` tokens; the weights are the second input [heads, size · width].
struct LocalSum {
  Index width = 3;
};
/// The same over the 3 × 3 neighbourhood in an image of rows × columns tokens; the weights are those of its first token.
struct LocalImageSum {
  Index rows = 0, columns = 0;
};
/// No gradient goes back.
struct Detach {};
/// A law on inputs named by their roles as in `isomer apply`. Several outputs (complex scans: h and h_imag) are side by side.
struct Law {
  std::shared_ptr<const BoundLaw> law;
  std::vector<std::string> roles = {};   // one an input
  std::vector<std::size_t> places = {};  // of the roles among the law's inputs
  isomer::Given given = {};

  [[nodiscard]] std::string_view name() const { return law->law().name(); }
  /// One more input.
  void add(std::string_view role);
  /// The place of a role among the node's inputs, or −1.
  [[nodiscard]] int find(std::string_view role) const;
};
/// Softmax over the heads, then the sum of heads begin … end − 1: [H, N] → [1, N].
struct ShareOfHeads {
  Index begin = 0, end = 1;
};
/// The value of that name of the first layer of the same preset, for the same tokens.
struct FromFirst {
  std::string name;
};

using AnyWork =
    std::variant<Input, Linear, HeadLinear, Parameter, Convolution, Shift, Map, Combine, Gate, Heads, Repeat, Normalise, Rotary,
                 Rotate, RunningSum, Mean, Concat, Slice, Softmax, SquareSum, TaylorFeatures, Position, PositionTable, Psi,
                 LocalSum, LocalImageSum, Detach, Law, ShareOfHeads, FromFirst, Gather, Largest>;
/// What a node computes. Copied and destroyed in graph.cc, so that not every file that knows a graph compiles that for each kind.
struct Work : AnyWork {
  using AnyWork::AnyWork;
  Work(const Work& other);
  Work(Work&& other) noexcept;
  Work& operator=(const Work& other);
  Work& operator=(Work&& other) noexcept;
  ~Work();
};

}  // namespace isomer::graph
