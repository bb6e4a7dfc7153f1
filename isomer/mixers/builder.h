#pragma once
// What presets are written with: every method adds a node to the graph and returns its value.
//
//   const auto [H, K, V] = m.head_sizes({.heads = 4, .key_total = m.width() / 2});
//   const Value q = m.heads(m.linear("q", m.x(), H * K), H);
//   const Value k = m.heads(m.linear("k", m.x(), H * K), H), v = m.heads(m.linear("v", m.x(), H * V), H);
//   const Value a = m.map(Unary::log_sigmoid, m.heads(m.linear("a", m.x(), H * K), H));
//   m.output(m.linear("o", m.flat(m.channel_decay({.q = q, .k = k, .v = v, .log_decay = a})), m.width()));
//
// Reading an option also declares it: an option that no call has read is an error for the user, and `isomer show` lists the
// others.
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "isomer/laws/attention/attention.h"
#include "isomer/laws/channel_decay/channel_decay.h"
#include "isomer/laws/delta/delta.h"
#include "isomer/laws/scalar_decay/scalar_decay.h"
#include "isomer/mixers/graph.h"
#include "isomer/mixers/preset.h"

namespace isomer {

/// A value of the mixer being built.
struct Value {
  int node = -1;
  [[nodiscard]] bool present() const { return node >= 0; }
};

class Builder {
 public:
  Builder(std::string_view preset, const Place& place, const Settings& settings);

  // Options.
  [[nodiscard]] Index size(std::string_view name, Index fallback, std::string_view help, Index least = 1);
  [[nodiscard]] double number(std::string_view name, double fallback, std::string_view help);
  /// A number, or inf for none, which is the default.
  [[nodiscard]] double limit(std::string_view name, std::string_view help);
  [[nodiscard]] bool flag(std::string_view name, bool fallback, std::string_view help);
  /// One of `choices`, by default `fallback` or else the first.
  [[nodiscard]] std::string choice(std::string_view name, std::initializer_list<std::string_view> choices, std::string_view help,
                                   std::string_view fallback = {});
  /// Refuses options that were given although they have no effect here, unless `used`; `with` is what would use them. They have
  /// been declared.
  void only_with(bool used, std::string_view with, std::initializer_list<std::string_view> names);
  /// Heads and the sizes of keys and values of one head, from the options heads, key and value. By default totals are divided
  /// among the heads.
  struct HeadSizes {
    Index heads, key, value;
  };
  struct HeadDefaults {
    Index heads = 4;
    Index key_total = 0, value_total = 0;  // 0: the width
    Index key = 0, value = 0;              // of each head, if not 0
  };
  [[nodiscard]] HeadSizes head_sizes(const HeadDefaults& fallback);
  /// Which positions the preset offers; the first is its default. Declares the option `position`, and those of each position.
  /// Returns the chosen one.
  const std::string& positions(std::initializer_list<std::string_view> choices);
  /// Declares the options of pre-trained models: rope_size and the scaling of angles.
  void rope_of_models(Index key);
  /// Declares the option rope_ends: angles of torchscale, whose last is that of 1 / rope_base itself.
  void rope_to_the_end(Index key);
  [[nodiscard]] const Place& place() const { return place_; }
  [[nodiscard]] Index width() const { return place_.width; }
  /// The name of what is built, for error texts.
  [[nodiscard]] const char* preset() const { return graph_.preset.c_str(); }

  // Values.
  /// The layer's input, with learned positions added if those were chosen.
  [[nodiscard]] Value x();
  [[nodiscard]] Value linear(std::string_view name, Value in, Index size, graph::Linear options = {});
  [[nodiscard]] Value head_linear(std::string_view name, Value in, Index size, graph::HeadLinear options = {});
  /// Σ in · weight over the last axis, the weight [H, K] a value: [H, 1].
  [[nodiscard]] Value dot(Value in, Value weight);
  /// in → rank → size: down projection, `between`, a norm, up projection.
  struct LowRank {
    Index rank = 16, size = 0;
    graph::Linear down = {}, up = {};
    Unary between = Unary::identity;
    std::optional<graph::Normalise> norm = {};
  };
  [[nodiscard]] Value low_rank(std::string_view name, Value in, const LowRank& options);
  [[nodiscard]] Value parameter(std::string_view name, Index heads, Index size, graph::Init init,
                                graph::Training training = graph::Training::trained);
  /// One of the whole model, the same in all layers of this preset that ask for it: by one name it has one shape.
  [[nodiscard]] Value shared_parameter(std::string_view name, Index heads, Index size, graph::Init init);
  /// What `own` is in the first layer of this preset, for the same tokens; absent in that layer, which gives it to the others.
  [[nodiscard]] Value from_first_layer(std::string_view name, Value own);
  [[nodiscard]] Value convolution(std::string_view name, Value in, graph::Convolution options);
  [[nodiscard]] Value shift(Value in);
  [[nodiscard]] Value map(Unary function, Value in, UnaryOptions options = {});
  /// a · in + b.
  [[nodiscard]] Value affine(Value in, double a, double b = 0);
  [[nodiscard]] Value add(Value a, Value b);
  [[nodiscard]] Value subtract(Value a, Value b);
  [[nodiscard]] Value multiply(Value a, Value b);
  [[nodiscard]] Value gate(Unary function, Value gate, Value in);
  [[nodiscard]] Value heads(Value in, Index heads);
  [[nodiscard]] Value flat(Value in) { return heads(in, 1); }
  /// Each number of [H, 1] `times` times.
  [[nodiscard]] Value repeat(Value in, Index times);
  [[nodiscard]] Value normalise(std::string_view name, Value in, graph::Normalise options);
  /// Applies the chosen position to a query or key [H, K]; call for both.
  [[nodiscard]] Value positioned(Value in);
  [[nodiscard]] Value concat(std::vector<Value> parts);
  [[nodiscard]] Value slice(Value in, Index begin, Index size);
  /// Any other node.
  [[nodiscard]] Value add_node(graph::Node node);
  [[nodiscard]] const graph::Node& node(Value value) const { return graph_.nodes[std::size_t(value.node)]; }
  /// Gives a value a name in equations.
  Value named(std::string_view name, Value value);

  // Laws. Absent values are left out.
  /// Any law on inputs by their roles; its outputs for every token, side by side.
  [[nodiscard]] Value law(std::shared_ptr<const BoundLaw> law, std::initializer_list<std::pair<std::string_view, Value>> inputs);
  struct Attention {
    Value q, k, v, log_forget = {}, gate = {}, bias = {};
  };
  [[nodiscard]] Value attention(const Attention& in, const AttentionOptions& options = {});
  struct ScalarDecay {
    Value q, k, v, log_decay = {}, log_input = {};
  };
  [[nodiscard]] Value scalar_decay(const ScalarDecay& in, const ScalarDecayOptions& options = {});
  struct ChannelDecay {
    Value q, k, v, log_decay, bonus = {};
  };
  [[nodiscard]] Value channel_decay(const ChannelDecay& in, const ChannelDecayOptions& options = {});
  struct Delta {
    Value q, k, v, beta = {}, log_decay = {}, a = {}, b = {};
  };
  [[nodiscard]] Value delta(const Delta& in, const DeltaOptions& options = {});
  struct Scan {
    Value log_decay, x, angle = {}, x_imag = {};
  };
  /// h, or h and h_imag side by side.
  [[nodiscard]] Value scan(const Scan& in);
  struct S6 {
    Value x, step, a, b, c, d = {};
  };
  [[nodiscard]] Value scan_s6(const S6& in);

  /// Ends the mixer: the last value.
  void output(Value value);
  /// The finished graph; throws Error if an option was given that nobody read.
  [[nodiscard]] graph::Graph finish();
  [[nodiscard]] const std::vector<MixerOption>& options() const { return options_; }

 private:
  /// The text that was given for the option, or null.
  [[nodiscard]] const std::string* declare(std::string_view name, std::string fallback, std::string_view help,
                                           MixerOption::Kind kind);
  void resolve(std::string value) {
    const MixerOption& option = options_.back();
    if (value != option.fallback) graph_.changed.emplace(option.name, value);
    graph_.options.emplace_back(option.name, std::move(value));
  }
  [[nodiscard]] Value combine(Binary function, Value a, Value b);
  [[nodiscard]] Value angles(Index heads, Index size);
  [[nodiscard]] Value rotated(Value in, const std::string& name);
  void drop_unused();
  [[nodiscard]] std::vector<double> temperatures(Index size) const;

  /// Of selective-rope.
  struct Phase {
    bool convolution = true, silu = true, gate = true, bias = false;
    std::string temperature;
    double base = 0, maximum = 1;
    Index rank = 0;
  };
  Place place_;
  Settings settings_;
  std::vector<MixerOption> options_;
  std::string position_ = "none";
  graph::Rotary rope_ = {};
  Index rope_size_ = 0;  // channels of a head that are rotated; 0: all
  Index positions_ = 0;  // of the learned table
  Phase phase_;
  Value x_ = {}, angles_ = {}, output_ = {};
  graph::Graph graph_;
};

}  // namespace isomer
