#include "isomer/mixers/fingerprint.h"

#include <cstdint>
#include <cstdio>
#include <limits>
#include <sstream>

namespace isomer::graph {

namespace {
/// FNV-1a.
std::uint64_t hash(const std::string& text) {
  std::uint64_t h = 0xcbf29ce484222325;
  for (const char c : text) h = (h ^ std::uint8_t(c)) * 0x100000001b3;
  return h;
}

/// What a node's work is set to, but for how parameters start: that is no part of what runs.
struct Dump {
  std::ostream& out;

  template <class... Parts>
  void put(const Parts&... parts) {
    ((out << ' ' << parts), ...);
  }
  static double scale(const std::optional<double>& given) { return given.value_or(0); }

  void operator()(const Linear& w) { put(w.bias); }
  void operator()(const HeadLinear& w) { put(w.bias, w.shared, w.given, w.unit_rows, int(w.training)); }
  void operator()(const Parameter& w) {
    put(int(w.training));
    if (w.shared) put("shared");
  }
  void operator()(const Convolution& w) { put(w.width, w.bias, w.silu); }
  void operator()(const Map& w) { put(int(w.function), w.options.a, w.options.b); }
  void operator()(const Combine& w) { put(int(w.function)); }
  void operator()(const Gate& w) { put(int(w.function)); }
  void operator()(const Normalise& w) { put(int(w.kind), w.eps, w.weight, w.bias, w.shared); }
  void operator()(const Rotary& w) { put(w.base); }
  void operator()(const RunningSum& w) { put(w.angle); }
  void operator()(const Mean& w) { put(w.causal); }
  void operator()(const Slice& w) { put(w.begin); }
  void operator()(const PositionTable& w) { put(w.length); }
  void operator()(const Psi& w) { put(w.outputs, w.hidden, w.shared, w.positive); }
  void operator()(const LocalSum& w) { put(w.width); }
  void operator()(const LocalImageSum& w) { put(w.rows, w.columns); }
  void operator()(const ShareOfHeads& w) { put(w.begin, w.end); }
  void operator()(const FromFirst& w) { put(w.name); }
  void operator()(const Law& w) {
    for (const std::string& role : w.roles) put(role);
    std::visit(*this, w.options);
  }
  void operator()(const AttentionOptions& o) {
    put(scale(o.scale), int(o.direction), o.window, o.sinks, int(o.kernel), o.order, int(o.normaliser), scale(o.eps));
    if (o.clamp < std::numeric_limits<double>::infinity()) put("clamp", o.clamp);
  }
  void operator()(const ScalarDecayOptions& o) { put(scale(o.scale), int(o.normaliser), int(o.direction), o.eps); }
  void operator()(const ChannelDecayOptions& o) { put(scale(o.scale), int(o.read)); }
  void operator()(const DeltaOptions& o) { put(scale(o.scale), o.l2norm); }
  void operator()(const auto&) {}
};
}  // namespace

std::string dump(const Graph& graph) {
  std::ostringstream text;
  text.precision(17);
  text << graph.preset << " width=" << graph.width << '\n';
  // No limit is no part of what runs, and files from before there was one keep their fingerprints.
  for (const auto& [name, value] : graph.options)
    if (value != "inf") text << name << '=' << value << '\n';
  for (const Node& node : graph.nodes) {
    text << node.work.index() << ' ' << node.heads << 'x' << node.size << ' ' << node.parameters;
    std::visit(Dump{text}, node.work);
    for (const int input : node.inputs) text << " #" << input;
    text << '\n';
  }
  for (const Given& given : graph.given) text << "gives " << given.name << " #" << given.node << '\n';
  return text.str();
}

std::string fingerprint(const Graph& graph) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash(dump(graph))));
  return graph.preset + "-" + text;
}

}  // namespace isomer::graph
