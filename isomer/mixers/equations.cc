#include "isomer/mixers/equations.h"

#include "isomer/kernels/elementwise/functions.h"
#include "isomer/laws/equation_text.h"

namespace isomer {

using equation_text::number;
using graph::Graph;
using graph::Node;

namespace {
/// (text), [text], |text|.
std::string between(char first, std::string_view text, char last) { return std::string(1, first).append(text).append(1, last); }

/// How tightly a text holds together: a + b, a * b, a W, f(a).
enum class Binding { sum, product, chain, atom };

struct Text {
  std::string text;
  Binding binding = Binding::atom;

  /// In brackets if it holds together less than needed.
  [[nodiscard]] std::string in(Binding needed) const { return binding < needed ? between('(', text, ')') : text; }
};

// So that a times 1 / b becomes a / b.
constexpr const char* kInverse = "1 / ";

Text call(const std::string& function, const std::string& argument) { return {function + between('(', argument, ')')}; }

std::string symbol_of(Unary f) { return std::string(info_of(f).symbol); }

Text mapped(const graph::Map& map, const Text& x) {
  const double a = map.options.a, b = map.options.b;
  switch (map.function) {
    case Unary::identity: return x;
    case Unary::affine: {
      if (a == 0) return {number(b)};
      if (b == 0 && a == -1) return {std::string(1, '-').append(x.in(Binding::product)), Binding::product};
      if (b == 0) return {number(a) + " " + x.in(Binding::chain), Binding::chain};
      if (a == -1) return {number(b) + " - " + x.in(Binding::product), Binding::sum};
      const std::string scaled = a == 1 ? x.text : number(a) + " " + x.in(Binding::chain);
      return {scaled + (b < 0 ? " - " + number(-b) : " + " + number(b)), Binding::sum};
    }
    case Unary::softcap: return {number(a) + " tanh(" + x.in(Binding::product) + " / " + number(a) + ")", Binding::chain};
    case Unary::one_minus_exp: return {"1 - exp(" + x.text + ")", Binding::sum};
    case Unary::sqrt_one_minus_exp2: return {"sqrt(1 - exp(2 " + x.in(Binding::product) + "))"};
    case Unary::square: return {x.in(Binding::atom) + "^2"};
    case Unary::reciprocal: return {kInverse + x.in(Binding::atom), Binding::product};
    case Unary::max_with: return {"max(" + x.text + ", " + number(a) + ")"};
    case Unary::min_with: return {"min(" + x.text + ", " + number(a) + ")"};
    default: return call(symbol_of(map.function), x.text);
  }
}

class Writer {
 public:
  explicit Writer(const Graph& graph) : graph_(graph) {}

  std::vector<std::string> operator()() {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (std::holds_alternative<graph::Law>(node.work)) law(node);
      if (!written(i) || std::holds_alternative<graph::Input>(node.work) || std::holds_alternative<graph::Law>(node.work))
        continue;
      lines_.push_back(node.name + " = " + std::visit(Body{*this, node}, node.work).text);
    }
    return std::move(lines_);
  }

 private:
  /// Has it a line of its own? The last of several nodes with one name has.
  [[nodiscard]] bool written(std::size_t i) const {
    const std::string& name = graph_.nodes[i].name;
    if (name.empty()) return false;
    for (std::size_t later = i + 1; later < graph_.nodes.size(); ++later)
      if (graph_.nodes[later].name == name) return false;
    return true;
  }
  [[nodiscard]] Text use(int i) const {
    const Node& node = graph_.nodes[std::size_t(i)];
    return written(std::size_t(i)) ? Text{node.name} : std::visit(Body{*this, node}, node.work);
  }
  void law(const Node& node) {
    const auto& work = std::get<graph::Law>(node.work);
    for (std::size_t i = 0; i < work.roles.size(); ++i) {
      const Text text = use(node.inputs[i]);
      const std::string role(work.law->symbol(work.law->law().inputs()[work.places[i]], work.given));
      if (text.text != role) lines_.push_back(role + " = " + text.text);
    }
    for (std::string& line : work.law->equations(work.given)) lines_.push_back(std::move(line));
  }

  struct Body {
    const Writer& writer;
    const Node& node;

    [[nodiscard]] Text in(std::size_t i) const { return writer.use(node.inputs[i]); }
    [[nodiscard]] std::string arguments() const {
      std::string all;
      for (std::size_t i = 0; i < node.inputs.size(); ++i) all += (i == 0 ? "" : ", ") + in(i).text;
      return all;
    }
    [[nodiscard]] Text times_weight(bool bias) const {
      const std::string product = in(0).in(Binding::chain) + " W_" + node.parameters;
      return bias ? Text{product + " + b_" + node.parameters, Binding::sum} : Text{product, Binding::chain};
    }

    Text operator()(const graph::Input&) const { return {"x"}; }
    Text operator()(const graph::Linear& w) const { return times_weight(w.bias); }
    Text operator()(const graph::HeadLinear& w) const { return w.given ? call("dot", arguments()) : times_weight(w.bias); }
    Text operator()(const graph::Parameter&) const { return {"w_" + node.parameters}; }
    Text operator()(const graph::Convolution& w) const {
      std::string text = "conv" + std::to_string(w.width) + "(" + in(0).text + ")";
      if (w.bias) text += " + b_" + node.parameters;
      return w.silu ? call("silu", text) : Text{text, w.bias ? Binding::sum : Binding::atom};
    }
    Text operator()(const graph::Shift&) const { return call("before", in(0).text); }
    Text operator()(const graph::Map& w) const { return mapped(w, in(0)); }
    Text operator()(const graph::Combine& w) const {
      const Text a = in(0), b = in(1);
      if (w.function == Binary::multiply && b.text.starts_with(kInverse))
        return {a.in(Binding::product) + b.text.substr(1), Binding::product};
      if (w.function == Binary::multiply) return {a.in(Binding::product) + " * " + b.in(Binding::product), Binding::product};
      if (w.function == Binary::add) return {a.text + " + " + b.text, Binding::sum};
      return {a.text + " - " + b.in(Binding::product), Binding::sum};
    }
    Text operator()(const graph::Gate& w) const {
      return {call(symbol_of(w.function), in(0).text).text + " * " + in(1).in(Binding::product), Binding::product};
    }
    Text operator()(const graph::Heads&) const { return in(0); }
    Text operator()(const graph::Repeat&) const { return call("repeat" + std::to_string(node.size), arguments()); }
    Text operator()(const graph::Gather&) const { return call("gather", arguments()); }
    Text operator()(const graph::Normalise& w) const {
      Text norm = call(std::string(name_of(w.kind)) + "_norm", in(0).text);
      if (!w.weight) return norm;
      const std::string scaled = "w_" + node.parameters + " * " + norm.text;
      return w.bias ? Text{scaled + " + b_" + node.parameters, Binding::sum} : Text{scaled, Binding::product};
    }
    Text operator()(const graph::Rotary&) const { return call("rope", arguments()); }
    Text operator()(const graph::Rotate&) const { return call("rotate", arguments()); }
    Text operator()(const graph::RunningSum&) const { return call("running_sum", arguments()); }
    Text operator()(const graph::Mean& w) const { return call(w.causal ? "running_mean" : "mean", arguments()); }
    Text operator()(const graph::Concat&) const { return {between('[', arguments(), ']')}; }
    Text operator()(const graph::Slice& w) const {
      return {in(0).in(Binding::atom) + "[" + std::to_string(w.begin) + ":" + std::to_string(w.begin + node.size) + "]"};
    }
    Text operator()(const graph::Softmax&) const { return call("softmax", arguments()); }
    Text operator()(const graph::SquareSum&) const { return {between('|', arguments(), '|') + "^2"}; }
    Text operator()(const graph::Largest& w) const { return call(w.over_tokens ? "max_of_all" : "max", arguments()); }
    Text operator()(const graph::TaylorFeatures&) const { return call("taylor2", arguments()); }
    Text operator()(const graph::Position&) const { return {"t"}; }
    Text operator()(const graph::PositionTable&) const { return {"W_" + node.parameters + "[t]"}; }
    Text operator()(const graph::Psi& w) const { return call("psi" + std::to_string(w.outputs), arguments()); }
    Text operator()(const graph::LocalSum& w) const { return call("local" + std::to_string(w.width), arguments()); }
    Text operator()(const graph::LocalImageSum&) const { return call("local3x3", arguments()); }
    Text operator()(const graph::Detach&) const { return call("no_gradient", arguments()); }
    Text operator()(const graph::ShareOfHeads& w) const {
      return {"sum" + between('[', std::to_string(w.begin) + ":" + std::to_string(w.end), ']') +
              between('(', "softmax_rows" + between('(', arguments(), ')'), ')')};
    }
    Text operator()(const graph::FromFirst& w) const { return call("first_layer", w.name); }
    Text operator()(const graph::Law&) const { return {node.name}; }
  };

  const Graph& graph_;
  std::vector<std::string> lines_;
};
}  // namespace

std::vector<std::string> equations(const Graph& graph) { return Writer(graph)(); }

}  // namespace isomer
