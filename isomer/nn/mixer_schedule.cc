#include "isomer/nn/mixer_schedule.h"

#include <algorithm>

#include "isomer/kernels/elementwise/gated.h"

namespace isomer {

namespace {

using graph::Node;

class Scheduler {
 public:
  explicit Scheduler(const graph::Graph& graph)
      : nodes_(graph.nodes),
        per_token_(nodes_.size()),
        done_(nodes_.size()),
        given_(nodes_.size()),
        member_(nodes_.size()),
        users_(nodes_.size()) {
    for (int i = 0; i < size(); ++i) {
      per_token_[at(i)] = is_per_token(i);
      for (const int input : nodes_[at(i)].inputs) users_[at(input)].push_back(i);
    }
    for (const graph::Given& given : graph.given) given_[at(given.node)] = true;
  }

  MixerSchedule run() && {
    for (int i = next(); i < size(); i = next()) {
      done_[at(i)] = true;
      if (elementwise(i)) {
        join(i);
      } else if (!see_through(i) && !take_parts(i)) {
        for (const int input : nodes_[at(i)].inputs) close(member_[at(input)].group);
        all_.turns.push_back({i, -1});
      }
    }
    for (int g = 0; g < int(all_.groups.size()); ++g) close(g);
    return std::move(all_);
  }

 private:
  struct Member {
    int group = -1, value = -1;
  };
  static std::size_t at(int i) { return std::size_t(i); }
  [[nodiscard]] int size() const { return int(nodes_.size()); }
  [[nodiscard]] Index width(int i) const { return nodes_[at(i)].heads * nodes_[at(i)].size; }
  [[nodiscard]] NodeGroup& group(int g) { return all_.groups[at(g)]; }
  template <class W>
  [[nodiscard]] const W* work(int i) const {
    return std::get_if<W>(&nodes_[at(i)].work);
  }

  /// Is its value [B, T, …]? A mean over the sequence and what is made of parameters have fewer tokens.
  [[nodiscard]] bool is_per_token(int i) const {
    if (work<graph::Input>(i) != nullptr || work<graph::Law>(i) != nullptr || work<graph::FromFirst>(i) != nullptr) return true;
    if (const auto* mean = work<graph::Mean>(i); mean != nullptr && !mean->causal) return false;
    const std::vector<int>& inputs = nodes_[at(i)].inputs;
    return std::any_of(inputs.begin(), inputs.end(), [&](int input) { return per_token_[at(input)]; });
  }
  [[nodiscard]] bool elementwise(int i) const {
    const bool kind = work<graph::Map>(i) != nullptr || work<graph::Combine>(i) != nullptr || work<graph::Gate>(i) != nullptr;
    return kind && per_token_[at(i)];
  }
  /// Nothing is gained by letting it wait.
  [[nodiscard]] bool light(int i) const {
    return elementwise(i) || !per_token_[at(i)] || work<graph::Heads>(i) != nullptr || has_own_parts(i);
  }

  /// The first node that can run, a light one if there is one; size() when all are done.
  [[nodiscard]] int next() const {
    int heavy = size();
    for (int i = 0; i < size(); ++i) {
      const std::vector<int>& inputs = nodes_[at(i)].inputs;
      if (done_[at(i)] || !std::all_of(inputs.begin(), inputs.end(), [&](int input) { return done_[at(input)]; })) continue;
      if (light(i)) return i;
      heavy = std::min(heavy, i);
    }
    return heavy;
  }

  [[nodiscard]] bool is_open(int g) const { return g >= 0 && all_.groups[at(g)].outputs.empty(); }
  [[nodiscard]] bool agree(const NodeGroup& group, int i) const {
    const Index a = group.heads, b = nodes_[at(i)].heads;
    return group.width == width(i) && (a == 1 || b == 1 || a == b);
  }
  void enter(int i, Member member) {
    member_[at(i)] = member;
    group(member.group).heads = std::max(group(member.group).heads, nodes_[at(i)].heads);
    group(member.group).nodes.push_back(i);
  }
  /// The same numbers in other heads need no step.
  bool see_through(int i) {
    if (work<graph::Heads>(i) == nullptr) return false;
    const Member of = member_[at(nodes_[at(i)].inputs[0])];
    if (!is_open(of.group) || !agree(group(of.group), i)) return false;
    enter(i, of);
    return true;
  }

  /// Is it a concatenation of one group's values that nothing else uses?
  [[nodiscard]] bool has_own_parts(int i) const {
    if (work<graph::Concat>(i) == nullptr) return false;
    const std::vector<int>& parts = nodes_[at(i)].inputs;
    const int g = member_[at(parts[0])].group;
    return is_open(g) && std::all_of(parts.begin(), parts.end(), [&](int part) {
             return member_[at(part)].group == g && users_[at(part)].size() == 1 && !given_[at(part)];
           });
  }
  /// Then they are written side by side at once.
  bool take_parts(int i) {
    if (!has_own_parts(i)) return false;
    member_[at(i)].group = member_[at(nodes_[at(i)].inputs[0])].group;
    group(member_[at(i)].group).concats.push_back({i, {}});
    return true;
  }

  void join(int i) {
    int g = -1;
    for (int other = 0; other < int(all_.groups.size()); ++other)
      if (is_open(other) && agree(group(other), i) && has_room(group(other))) g = other;
    if (g < 0) {
      g = int(all_.groups.size());
      all_.groups.push_back({.heads = nodes_[at(i)].heads, .width = width(i)});
    }
    const Node& node = nodes_[at(i)];
    std::array<int, 2> operands{kNone, kNone};
    for (std::size_t n = 0; n < node.inputs.size(); ++n) operands[n] = operand(g, node.inputs[n]);
    enter(i, {g, add_steps(g, i, operands)});
  }
  /// Each node adds two inputs, two steps and an output at most.
  static bool has_room(const NodeGroup& group) {
    return fits(int(group.inputs.size()) + 2, int(group.steps.size()) + 2, int(group.nodes.size()) + 1);
  }

  // Operands while there may be more inputs: steps from 0 on, inputs from −2 downwards.
  static constexpr int kNone = -1, kFirstInput = -2;
  int operand(int g, int node) {
    if (member_[at(node)].group == g) return member_[at(node)].value;
    close(member_[at(node)].group);
    // The same numbers in other heads are the same input.
    while (work<graph::Heads>(node) != nullptr && member_[at(node)].group < 0 && width(node) == group(g).width)
      node = nodes_[at(node)].inputs[0];
    std::vector<int>& inputs = group(g).inputs;
    const auto found = std::find(inputs.begin(), inputs.end(), node);
    const int index = int(found - inputs.begin());
    if (found == inputs.end()) inputs.push_back(node);
    return kFirstInput - index;
  }
  int add_steps(int g, int i, const std::array<int, 2>& operands) {
    std::vector<FusedStep>& steps = group(g).steps;
    if (const auto* map = work<graph::Map>(i)) {
      steps.push_back({.a = operands[0], .f = map->function, .options = map->options});
    } else if (const auto* gate = work<graph::Gate>(i); gate != nullptr && is_gate(gate->function)) {
      steps.push_back({.a = operands[0], .b = operands[1], .f = gate->function});
    } else if (gate != nullptr) {
      steps.push_back({.a = operands[0], .f = gate->function});
      steps.push_back({.a = int(steps.size()) - 1, .b = operands[1], .combine = Binary::multiply});
    } else {
      steps.push_back({.a = operands[0], .b = operands[1], .combine = std::get<graph::Combine>(nodes_[at(i)].work).function});
    }
    return int(steps.size()) - 1;
  }

  /// The group runs now; what comes later is not of it.
  void close(int g) {
    if (!is_open(g)) return;
    NodeGroup& all = group(g);
    const int inputs = int(all.inputs.size());
    const auto value = [&](int operand) {
      return operand <= kFirstInput ? kFirstInput - operand : operand == kNone ? kNone : inputs + operand;
    };
    for (FusedStep& step : all.steps) step.a = value(step.a), step.b = value(step.b);
    for (const int i : all.nodes) {
      const std::vector<int>& users = users_[at(i)];
      const bool used = std::any_of(users.begin(), users.end(), [&](int user) {
        return member_[at(user)].group != g || work<graph::Concat>(user) != nullptr;
      });
      if (!used && !given_[at(i)] && i + 1 < size()) continue;
      const int own = inputs + member_[at(i)].value;
      const auto found = std::find(all.outputs.begin(), all.outputs.end(), own);
      all.results.push_back({i, int(found - all.outputs.begin())});
      if (found == all.outputs.end()) all.outputs.push_back(own);
    }
    for (NodeGroup::Concat& concat : all.concats)
      for (const int part : nodes_[at(concat.node)].inputs) {
        const auto result = [&](const NodeGroup::Result& one) { return one.node == part; };
        concat.outputs.push_back(std::find_if(all.results.begin(), all.results.end(), result)->output);
      }
    all_.turns.push_back({-1, g});
  }

  const std::vector<Node>& nodes_;
  std::vector<bool> per_token_, done_, given_;
  std::vector<Member> member_;
  std::vector<std::vector<int>> users_;
  MixerSchedule all_;
};

}  // namespace

MixerSchedule schedule_of(const graph::Graph& graph) { return Scheduler(graph).run(); }

}  // namespace isomer
