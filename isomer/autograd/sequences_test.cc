// Ops along tokens: packed sequences and different positions give what each sequence gives alone, and states carry gradients.
#include "isomer/autograd/sequences.h"

#include <gtest/gtest.h>

#include "isomer/autograd/conv.h"
#include "isomer/autograd/elementwise.h"
#include "isomer/autograd/rotary.h"
#include "isomer/autograd/testing.h"
#include "isomer/autograd/tokens.h"
#include "isomer/base/error.h"
#include "tests/error_of.h"

namespace isomer {
namespace {
using namespace ops;
using testing::random_values;
using testing::Values;
using D = double;

constexpr Index kHeads = 2, kSize = 4, kWidth = 3, kChannels = kHeads * kSize;
// With an empty one and one of a single token.
constexpr std::array<std::int64_t, 6> kOffsets{0, 5, 5, 6, 13, 15};
constexpr std::array<std::int64_t, 5> kPositions{3, 0, 7, 1, 2};
constexpr Index kTokens = 15, kCount = 5, kLength = 16;

/// An op's inputs: x, and another with its own shape; and what it carries.
struct Case {
  const char* name;
  Shape4 other;  // with 0 tokens: as many as x has
  Shape4 state;  // of one sequence; 0: none
  std::function<Var<D>(Tape<D>&, Var<D> x, Var<D> other, const AlongSum<D>&)> op;
};

std::vector<Case> cases() {
  return {
      {"conv",
       {1, 1, kChannels, kWidth},
       {1, 1, kWidth - 1, kChannels},
       [](Tape<D>& tape, Var<D> x, Var<D> w, const AlongSum<D>& along) {
         return conv<D>(tape, {x, w}, along);
       }},
      {"conv and silu",
       {1, 1, kChannels, kWidth},
       {1, 1, kWidth - 1, kChannels},
       [](Tape<D>& tape, Var<D> x, Var<D> w, const AlongSum<D>& along) {
         return conv<D>(tape, {x, w, {}, true}, along);
       }},
      {"shift",
       {},
       {1, 1, kHeads, kSize},
       [](Tape<D>& tape, Var<D> x, Var<D>, const AlongSum<D>& along) { return shift<D>(tape, x, along); }},
      {"local sum",
       {1, 0, kHeads, kWidth * kSize},
       {1, 1, kWidth - 1, kChannels},
       [](Tape<D>& tape, Var<D> x, Var<D> w, const AlongSum<D>& along) { return local_sum<D>(tape, x, w, kWidth, along); }},
      {"local sum of shared weights",
       {1, 1, kHeads, kWidth * kSize},
       {1, 1, kWidth - 1, kChannels},
       [](Tape<D>& tape, Var<D> x, Var<D> w, const AlongSum<D>& along) { return local_sum<D>(tape, x, w, kWidth, along); }},
      {"running sum",
       {},
       {1, 1, kHeads, kSize},
       [](Tape<D>& tape, Var<D> x, Var<D>, const AlongSum<D>& along) { return running_sum(tape, x, along); }},
      {"running angle",
       {},
       {1, 1, kHeads, kSize},
       [](Tape<D>& tape, Var<D> x, Var<D>, const AlongSum<D>& along) {
         return unary(tape, Unary::sin, running_angle(tape, x, along));
       }},
      {"running mean",
       {},
       {1, 1, kHeads, kSize},
       [](Tape<D>& tape, Var<D> x, Var<D>, const AlongSum<D>& along) { return running_mean(tape, x, along); }},
      {"rotary",
       {},
       {},
       [](Tape<D>& tape, Var<D> x, Var<D>, const AlongSum<D>& along) { return rotary(tape, x, {.base = 100}, along.sequences); }},
      {"position",
       {},
       {},
       [](Tape<D>& tape, Var<D> x, Var<D>, const AlongSum<D>& along) {
         return multiply(tape, x, position<D>(tape, x.dim(0), x.dim(1), along.sequences));
       }},
      {"position table",
       {1, 1, kLength, kSize},
       {},
       [](Tape<D>& tape, Var<D> x, Var<D> table, const AlongSum<D>& along) {
         return multiply(tape, x, position_table(tape, table, x.dim(0), x.dim(1), along.sequences));
       }},
  };
}

/// What an op gives for some tokens of x, and gradients for upstream ones: y, dx, dother, the final state, dstate.
struct Result {
  std::vector<D> y = {}, dx = {}, dother = {}, state = {}, dstate = {};
};

std::vector<D> numbers(View<const D, 4> x) {
  std::vector<D> all;
  each_element(x.shape, [&](const auto& i) { all.push_back(*element(x, i)); });
  return all;
}

struct Data {
  Values x, other, state, dy, dstate;
};

Result run(const Case& what, Data data, const Sequences& sequences) {
  Context context(1);
  Tape<D> tape(context);
  const auto input = [&](Values& values) {
    return values.data.empty() ? Var<D>() : tape.input(contiguous(values.data.data(), values.shape), true);
  };
  const Var<D> x = input(data.x), other = input(data.other), start = input(data.state);
  std::vector<D> sum = data.state.data;
  Var<D> state = start;
  AlongSum<D> along{{.sequences = sequences, .state = start.present() ? &state : nullptr}, {}};
  if (start.present()) along.sum = state_view(contiguous(sum.data(), data.state.shape));
  const Var<D> y = what.op(tape, x, other, along);
  Result result{.y = numbers(y.value)};
  if (y.value.size() > 0) std::ranges::copy(data.dy.data, tape.seed(y).data);
  if (start.present()) {
    result.state = numbers(state.value);
    std::ranges::copy(data.dstate.data, tape.seed(state).data);
  }
  tape.backward();
  result.dx = numbers(tape.arrived(x));
  if (other.present()) result.dother = numbers(tape.arrived(other));
  if (start.present()) result.dstate = numbers(tape.arrived(start));
  return result;
}

/// The numbers of some rows of the first or second axis.
Values part(const Values& all, int axis, Index begin, Index count) {
  if (all.data.empty()) return all;
  Values copy = all, some{all.shape, {}};
  some.shape[std::size_t(axis)] = count;
  some.data = numbers(slice(contiguous(copy.data.data(), all.shape), axis, begin, count));
  return some;
}

Shape4 with(Shape4 shape, int axis, Index size) {
  shape[std::size_t(axis)] = size;
  return shape;
}

Data random_data(const Case& what, Index B, Index T, Index n) {
  const auto values = [](const Shape4& shape, std::uint64_t seed) {
    return size_of(shape) == 0 ? Values{shape, {}} : random_values(shape, seed);
  };
  const Shape4 x{B, T, kHeads, kSize};
  const Shape4 other = what.other[1] == 0 && what.other[0] > 0 ? with(with(what.other, 0, B), 1, T) : what.other;
  const Shape4 state = with(what.state, 0, what.state[0] == 0 ? 0 : n);
  return {values(x, 1), values(other, 2), values(state, 3), values(x, 4), values(state, 5)};
}

void expect_near(const std::vector<D>& got, const std::vector<D>& want, const char* name) {
  ASSERT_EQ(got.size(), want.size()) << name;
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-12) << name << " " << i;
}

/// Sequence i of `all`, by where it is.
struct Piece {
  Index row, first, length;
};

void expect_as_alone(const Case& what, const Data& all, const Sequences& sequences, std::span<const Piece> pieces) {
  const Result got = run(what, all, sequences);
  Result want;
  std::vector<D> dother(all.other.data.size());
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    const auto tokens = [&](const Values& x) { return part(part(x, 0, piece.row, 1), 1, piece.first, piece.length); };
    const bool per_token = what.other[1] == 0 && what.other[0] > 0;
    const Data own{tokens(all.x), per_token ? tokens(all.other) : all.other, part(all.state, 0, Index(i), 1), tokens(all.dy),
                   part(all.dstate, 0, Index(i), 1)};
    const std::array<std::int64_t, 1> position{sequences.position(Index(i))};
    if (piece.length == 0) {
      want.state.insert(want.state.end(), own.state.data.begin(), own.state.data.end());
      want.dstate.insert(want.dstate.end(), own.dstate.data.begin(), own.dstate.data.end());
      continue;
    }
    const Result alone = run(what, own, {.positions = position});
    const auto append = [](std::vector<D>& to, const std::vector<D>& from) { to.insert(to.end(), from.begin(), from.end()); };
    append(want.y, alone.y);
    append(want.dx, alone.dx);
    append(want.state, alone.state);
    append(want.dstate, alone.dstate);
    if (per_token)
      append(want.dother, alone.dother);
    else
      for (std::size_t k = 0; k < dother.size(); ++k) dother[k] += alone.dother[k];
  }
  if (want.dother.empty()) want.dother = dother;
  EXPECT_EQ(got.y, want.y);
  EXPECT_EQ(got.state, want.state);
  EXPECT_EQ(got.dx, want.dx);
  EXPECT_EQ(got.dstate, want.dstate);
  expect_near(got.dother, want.dother, "dother");
}

TEST(PackedSequences, GiveWhatEachGivesAlone) {
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < kCount; ++i) pieces.push_back({0, kOffsets[i], kOffsets[i + 1] - kOffsets[i]});
  for (const Case& what : cases()) {
    SCOPED_TRACE(what.name);
    const Data data = random_data(what, 1, kTokens, kCount);
    expect_as_alone(what, data, {.offsets = kOffsets}, pieces);
    expect_as_alone(what, data, {.offsets = kOffsets, .positions = kPositions}, pieces);
  }
}

TEST(Batches, StandAtDifferentPositions) {
  for (const Index tokens : {1, 6})
    for (const Case& what : cases()) {
      SCOPED_TRACE(what.name);
      std::vector<Piece> pieces;
      for (Index b = 0; b < kCount; ++b) pieces.push_back({b, 0, tokens});
      if (what.other[1] != 0 && std::string_view(what.name) == "local sum of shared weights") continue;  // one a row
      expect_as_alone(what, random_data(what, kCount, tokens, kCount), {.positions = kPositions}, pieces);
    }
}

/// Two halves on one tape, the state handed on.
TEST(States, CarryGradientsFromOnePassToTheNext) {
  constexpr Index B = 2, T = 6;
  for (const Case& what : cases()) {
    if (what.state[0] == 0) continue;
    SCOPED_TRACE(what.name);
    const Data data = random_data(what, B, T, B);
    std::vector<Values> inputs{data.x, data.state};
    if (what.other[0] > 0)
      inputs.push_back(what.other[1] == 1 && what.other[2] == kHeads ? random_values(with(what.other, 0, B), 2) : data.other);
    testing::expect_gradients(inputs, [&](Tape<D>& tape, std::span<const Var<D>> in) {
      std::vector<D> sum = numbers(in[1].value);
      Var<D> state = in[1];
      if (!tape.recording()) {  // in place of an input that the next difference needs
        state = tape.make(in[1].shape(), {});
        std::ranges::copy(sum, state.value.data);
      }
      std::array<Var<D>, 2> halves;
      for (Index half = 0; half < 2; ++half) {
        const auto tokens = [&](Var<D> x) { return Tape<D>::part(x, slice(x.value, 1, half * T / 2, T / 2)); };
        static constexpr std::array<std::array<std::int64_t, B>, 2> kStarts{{{0, 0}, {T / 2, T / 2}}};
        const std::span<const std::int64_t> positions = kStarts[std::size_t(half)];
        const AlongSum<D> along{{.sequences = {.positions = positions}, .state = &state},
                                state_view(contiguous(sum.data(), in[1].shape()))};
        const Var<D> other = in.size() < 3 ? Var<D>() : in[2].dim(1) == T ? tokens(in[2]) : in[2];
        halves[std::size_t(half)] = what.op(tape, tokens(in[0]), other, along);
      }
      return concat<D>(tape, halves);
    });
  }
}

TEST(Sequences, AreRefusedWhereTheyDoNotFit) {
  Context context(1);
  Tape<D> tape(context, Record::no);
  Values values = random_values({2, 4, 1, 2}, 1);
  const Var<D> x = tape.input(contiguous(values.data.data(), values.shape));
  const Var<D> row = Tape<D>::alias(x, slice(x.value, 0, 0, 1));
  const std::array<std::int64_t, 3> offsets{0, 1, 3};
  EXPECT_EQ(tests::error_of([&] { (void)shift(tape, row, {.sequences = {.offsets = offsets}}); }),
            "shift: expected offsets from 0 to T = 4, got 0 to 3");
  EXPECT_EQ(tests::error_of([&] { (void)shift(tape, x, {.sequences = {.offsets = offsets}}); }),
            "shift: expected B = 1 with offsets, got 2");
  EXPECT_EQ(tests::error_of([&] { (void)rotary(tape, x, {.base = 100}, {.positions = offsets}); }),
            "rotary: expected the positions of 2 sequences, got 3");
}

}  // namespace
}  // namespace isomer
