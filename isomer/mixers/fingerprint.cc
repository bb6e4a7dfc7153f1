#include "isomer/mixers/fingerprint.h"

#include <cstdint>
#include <cstdio>
#include <sstream>
#include <type_traits>

#include "isomer/base/hash.h"
#include "isomer/kernels/elementwise/functions.h"

namespace isomer::graph {

namespace {
/// What a node's work is set to, but for how parameters start: that is no part of what runs. All by name, and nothing that is
/// at its default, so that a new member with a default changes no fingerprint.
struct Dump {
  std::ostream& out;

  template <class T>
  void put(const char* name, const T& value, const T& fallback) {
    if (value != fallback) out << ' ' << name << '=' << value;
  }
  void word(std::string_view text) { out << ' ' << text; }

  void operator()(const Linear& w) { put("bias", w.bias, Linear{}.bias); }
  void operator()(const HeadLinear& w) {
    const HeadLinear plain;
    put("bias", w.bias, plain.bias);
    put("shared", w.shared, plain.shared);
    put("given", w.given, plain.given);
    put("unit_rows", w.unit_rows, plain.unit_rows);
    if (w.training == Training::fixed) word("fixed");
  }
  void operator()(const Parameter& w) {
    if (w.training == Training::fixed) word("fixed");
    if (w.shared) word("shared");
  }
  void operator()(const Convolution& w) {
    const Convolution plain;
    put("width", w.width, plain.width);
    put("bias", w.bias, plain.bias);
    put("silu", w.silu, plain.silu);
  }
  void operator()(const Map& w) {
    word(name_of(w.function));
    put("a", w.options.a, UnaryOptions{}.a);
    put("b", w.options.b, UnaryOptions{}.b);
  }
  void operator()(const Combine& w) { word(name_of(w.function)); }
  void operator()(const Gate& w) { word(name_of(w.function)); }
  void operator()(const Normalise& w) {
    const Normalise plain;
    word(name_of(w.kind));
    put("eps", w.eps, plain.eps);
    put("weight", w.weight, plain.weight);
    put("bias", w.bias, plain.bias);
    put("shared", w.shared, plain.shared);
  }
  void operator()(const Rotary& w) {
    const Rotary plain;
    put("base", w.base, plain.base);
    put("factor", w.scaling.factor, plain.scaling.factor);
    put("low", w.scaling.low, plain.scaling.low);
    put("high", w.scaling.high, plain.scaling.high);
    put("length", w.scaling.length, plain.scaling.length);
  }
  void operator()(const RunningSum& w) { put("angle", w.angle, RunningSum{}.angle); }
  void operator()(const Mean& w) { put("causal", w.causal, Mean{}.causal); }
  void operator()(const Largest& w) { put("over_tokens", w.over_tokens, Largest{}.over_tokens); }
  void operator()(const Gather& w) {
    word("places");
    for (const Index place : w.places) out << ' ' << place;
  }
  void operator()(const Slice& w) { put("begin", w.begin, Slice{}.begin); }
  void operator()(const PositionTable& w) { put("length", w.length, PositionTable{}.length); }
  void operator()(const Psi& w) {
    const Psi plain;
    put("outputs", w.outputs, plain.outputs);
    put("hidden", w.hidden, plain.hidden);
    put("shared", w.shared, plain.shared);
    put("positive", w.positive, plain.positive);
  }
  void operator()(const LocalSum& w) { put("width", w.width, LocalSum{}.width); }
  void operator()(const LocalImageSum& w) {
    put("rows", w.rows, LocalImageSum{}.rows);
    put("columns", w.columns, LocalImageSum{}.columns);
  }
  void operator()(const ShareOfHeads& w) {
    put("begin", w.begin, ShareOfHeads{}.begin);
    put("end", w.end, ShareOfHeads{}.end);
  }
  void operator()(const FromFirst& w) { word(w.name); }
  void operator()(const Law& w) {
    word(w.name());
    for (const std::string& role : w.roles) word(role);
    for (const auto& [name, value] : w.law->settings()) word(name + "=" + value);
  }
  // What has no members has nothing to say. A new kind with options does not compile before it says them.
  template <class W>
  requires std::is_empty_v<W>
  void operator()(const W&) {}
};
}  // namespace

std::string dump(const Graph& graph) {
  std::ostringstream text;
  text.precision(17);
  text << graph.preset << " width=" << graph.width << '\n';
  for (const auto& [name, value] : graph.changed) text << name << '=' << value << '\n';
  for (const Node& node : graph.nodes) {
    text << name_of(node.work) << ' ' << node.heads << 'x' << node.size << ' ' << node.parameters;
    std::visit(Dump{text}, node.work);
    for (const int input : node.inputs) text << " #" << input;
    text << '\n';
  }
  for (const Given& given : graph.given) text << "gives " << given.name << " #" << given.node << '\n';
  return text.str();
}

std::string fingerprint(const Graph& graph) { return graph.preset + "-" + hex_of(hash_of(dump(graph))); }

}  // namespace isomer::graph
