#include "isomer/mixers/builder.h"

#include <algorithm>

#include "isomer/base/error.h"
#include "isomer/kernels/elementwise/features.h"
#include "isomer/kernels/elementwise/functions.h"

namespace isomer {

using graph::Node;

namespace {
/// Far above what fits into memory, and far below where products of sizes overflow.
constexpr Index kLargestProjection = Index{1} << 26;

/// The size of an axis of a and b, of which one may be broadcast.
Index broadcast_size(Index a, Index b) {
  ISOMER_ASSERT(a == b || a == 1 || b == 1, "values that are combined have the same shape or are broadcast");
  return std::max(a, b);
}
}  // namespace

Value Builder::add_node(Node node) {
  graph_.nodes.push_back(std::move(node));
  return {int(graph_.nodes.size()) - 1};
}

Value Builder::named(std::string_view name, Value value) {
  graph_.nodes[std::size_t(value.node)].name = name;
  return value;
}

Value Builder::x() {
  if (x_.present()) return x_;
  x_ = add_node({.name = "x", .work = graph::Input{}, .size = width()});
  if (position_ == "learned") {
    const Value table = add_node({.parameters = "position", .work = graph::PositionTable{positions_}, .size = width()});
    x_ = add(x_, table);
  }
  return x_;
}

Value Builder::linear(std::string_view name, Value in, Index size, graph::Linear options) {
  in = flat(in);
  require(size <= kLargestProjection, preset(), "expected at most ", kLargestProjection, " outputs of ", name, ", got ", size);
  return add_node({std::string(name), std::string(name), std::move(options), {in.node}, 1, size});
}

Value Builder::head_linear(std::string_view name, Value in, Index size, graph::HeadLinear options) {
  const Index heads = node(in).heads;
  return add_node({"", std::string(name), std::move(options), {in.node}, heads, size});
}

Value Builder::dot(Value in, Value weight) {
  return add_node(
      {.work = graph::HeadLinear{.given = true}, .inputs = {in.node, weight.node}, .heads = node(in).heads, .size = 1});
}

Value Builder::repeat(Value in, Index times) {
  return add_node({.work = graph::Repeat{}, .inputs = {in.node}, .heads = node(in).heads, .size = times});
}

Value Builder::low_rank(std::string_view name, Value in, const LowRank& options) {
  const std::string down = std::string(name) + "_down";
  Value low = flat(in);
  low = add_node({"", down, options.down, {low.node}, 1, options.rank});
  if (options.between != Unary::identity) low = map(options.between, low);
  if (options.norm) low = normalise("", low, *options.norm);
  return linear(name, low, options.size, options.up);
}

Value Builder::parameter(std::string_view name, Index heads, Index size, graph::Init init, graph::Training training) {
  return add_node({"", std::string(name), graph::Parameter{.init = std::move(init), .training = training}, {}, heads, size});
}

Value Builder::shared_parameter(std::string_view name, Index heads, Index size, graph::Init init) {
  return add_node({"", std::string(name), graph::Parameter{.init = std::move(init), .shared = true}, {}, heads, size});
}

Value Builder::from_first_layer(std::string_view name, Value own) {
  ISOMER_ASSERT(!output_.present(), "what others have stands before the output");
  if (place_.before > 0)
    return add_node({.work = graph::FromFirst{std::string(name)}, .heads = node(own).heads, .size = node(own).size});
  graph_.given.push_back({std::string(name), own.node});
  return {};
}

Value Builder::convolution(std::string_view name, Value in, graph::Convolution options) {
  const Index heads = node(in).heads, size = node(in).size;
  return add_node({"", std::string(name), std::move(options), {in.node}, heads, size});
}

Value Builder::shift(Value in) {
  return add_node({.work = graph::Shift{}, .inputs = {in.node}, .heads = node(in).heads, .size = node(in).size});
}

Value Builder::map(Unary function, Value in, UnaryOptions options) {
  return add_node({.work = graph::Map{function, options}, .inputs = {in.node}, .heads = node(in).heads, .size = node(in).size});
}

Value Builder::affine(Value in, double a, double b) {
  if (a == 1 && b == 0) return in;
  return map(Unary::affine, in, {a, b});
}

Value Builder::combine(Binary function, Value a, Value b) {
  return add_node({.work = graph::Combine{function},
                   .inputs = {a.node, b.node},
                   .heads = broadcast_size(node(a).heads, node(b).heads),
                   .size = broadcast_size(node(a).size, node(b).size)});
}

Value Builder::add(Value a, Value b) { return combine(Binary::add, a, b); }
Value Builder::subtract(Value a, Value b) { return combine(Binary::subtract, a, b); }
Value Builder::multiply(Value a, Value b) { return combine(Binary::multiply, a, b); }

Value Builder::gate(Unary function, Value gate, Value in) {
  const bool same = node(gate).heads == node(in).heads && node(gate).size == node(in).size;
  const bool fused = is_gate(function);
  if (!same || !fused) return multiply(map(function, gate), in);
  return add_node(
      {.work = graph::Gate{function}, .inputs = {gate.node, in.node}, .heads = node(in).heads, .size = node(in).size});
}

Value Builder::heads(Value in, Index heads) {
  if (node(in).heads == heads) return in;
  const Index total = node(in).heads * node(in).size;
  require(total % heads == 0, preset(), "expected heads that divide ", total, ", got ", heads);
  return add_node({.work = graph::Heads{}, .inputs = {in.node}, .heads = heads, .size = total / heads});
}

Value Builder::normalise(std::string_view name, Value in, graph::Normalise options) {
  const bool own = options.weight || options.bias;
  const Index heads = node(in).heads, size = node(in).size;
  return add_node({"", own ? std::string(name) : "", options, {in.node}, heads, size});
}

Value Builder::concat(std::vector<Value> parts) {
  Node all{.work = graph::Concat{}, .heads = node(parts[0]).heads};
  for (Value part : parts) {
    ISOMER_ASSERT(node(part).heads == all.heads, "values side by side have the same heads");
    all.inputs.push_back(part.node);
    all.size += node(part).size;
  }
  return add_node(std::move(all));
}

Value Builder::slice(Value in, Index begin, Index size) {
  ISOMER_ASSERT(begin >= 0 && begin + size <= node(in).size, "a slice lies inside its value");
  if (size == node(in).size) return in;
  return add_node({.work = graph::Slice{begin}, .inputs = {in.node}, .heads = node(in).heads, .size = size});
}

void Builder::output(Value value) {
  output_ = named("y", flat(value));
  ISOMER_ASSERT(node(output_).size == width(), "a mixer gives as many numbers as it takes");
}

void Builder::drop_unused() {
  // Inputs stand before the nodes that use them, so everything behind the output goes.
  std::vector<bool> needed(graph_.nodes.size(), false);
  needed[std::size_t(output_.node)] = true;
  for (const graph::Given& given : graph_.given) needed[std::size_t(given.node)] = true;
  for (int i = output_.node; i >= 0; --i)
    if (needed[std::size_t(i)])
      for (int from : node({i}).inputs) needed[std::size_t(from)] = true;
  std::vector<int> at(graph_.nodes.size(), -1);
  std::vector<Node> kept;
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
    if (!needed[i]) continue;
    at[i] = int(kept.size());
    for (int& from : graph_.nodes[i].inputs) from = at[std::size_t(from)];
    kept.push_back(std::move(graph_.nodes[i]));
  }
  graph_.nodes = std::move(kept);
  for (graph::Given& given : graph_.given) given.node = at[std::size_t(given.node)];
}

}  // namespace isomer
