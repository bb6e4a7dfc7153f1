#include "isomer/autograd/tokens.h"

#include <algorithm>

#include "isomer/autograd/embedding.h"
#include "isomer/autograd/fill.h"
#include "isomer/autograd/op_views.h"
#include "isomer/base/error.h"
#include "isomer/kernels/check_shape.h"
#include "isomer/kernels/elementwise/binary.h"
#include "isomer/kernels/elementwise/cumulative.h"
#include "isomer/kernels/elementwise/sum.h"
#include "isomer/kernels/rows.h"

namespace isomer::ops {

namespace {
/// f(number of the token in its sequence, from 1) for every token: [B or 1, T, 1, 1].
template <class T, class F>
Var<T> numbered(Tape<T>& tape, Index B, Index tokens, const Sequences& sequences, F f) {
  const Index rows = sequences.offsets.empty() && sequences.aligned() ? 1 : B;
  const Var<T> y = tape.make({rows, tokens, 1, 1}, {});
  each_part("position", sequences, B, tokens, Placed::yes, [&](const SequencePart& part) {
    for (Index t = 0; t < part.length; ++t) y.value(part.row, part.first + t, 0, 0) = f(part.position + t + 1);
  });
  return y;
}

/// Numbers of another type, in memory from take(count).
template <class To, class T, class Take>
View<To, 3> converted(View<const T, 3> x, Take take) {
  const View<To, 3> y = contiguous(take(x.size()), {x.shape[0], x.shape[1], x.shape[2]});
  each_element(x.shape, [&](const auto& i) { *element(y, i) = To(*element(x, i)); });
  return y;
}

/// The gradient of sums over each sequence, into that of x and of the sum before.
template <class T>
void sums_vjp(Tape<T>& back, View<const T, 4> dy, const Sequences& sequences, Var<T> x, Var<T> before, Var<T> after) {
  Workspace& scratch = back.context().workspace();
  const Workspace::Scope scope(scratch);
  const auto doubles = [&](Index size) { return scratch.take<double>(size); };
  View<double, 3> dafter, dbefore;
  if (after.wanted()) dafter = converted<double>(state_view(back.arrived(after)), doubles);
  if (before.wanted()) dbefore = converted<double>(state_view(View<const T, 4>(before.value)), doubles);
  const auto dx = back.target(x);
  const View<T, 4> into = dx.present() ? dx.view : contiguous(scratch.take<T>(x.value.size()), x.shape());
  each_part("running_sum", sequences, x.dim(0), x.dim(1), Placed::no, [&](const SequencePart& part) {
    cumulative_sum_vjp<T>(part.tokens(dy), {.initial = part.states(View<const double, 3>(dafter)), .final = part.states(dbefore)},
                          part.tokens(into), dx.present() ? dx.mode : Accumulate::set, back.context());
  });
  if (!before.wanted()) return;
  GradientWriter<T> write(back);
  const View<T, 3> to = state_view(write(before));
  each_element(to.shape, [&](const auto& i) { *element(to, i) = T(*element(dbefore, i)); });
  write.finish();
}

/// y = weight · (the running sum), the weight [B or 1, T, 1, 1] or absent.
template <class T>
Var<T> summed(Tape<T>& tape, Var<T> x, const AlongSum<T>& along, View<const T, 4> weight, bool turns) {
  const Sequences sequences = along.sequences;
  const Var<T> before = along.state != nullptr ? *along.state : Var<T>();
  const Var<T> y = tape.make(x.shape(), {x, before});
  each_part("running_sum", sequences, x.dim(0), x.dim(1), Placed::no, [&](const SequencePart& part) {
    const View<double, 3> sum = part.states(along.sum);
    cumulative_sum<T>(part.tokens(View<const T, 4>(x.value)), {.initial = sum, .final = sum, .turns = turns},
                      part.tokens(y.value), tape.context());
  });
  if (weight.present()) binary<T>(Binary::multiply, y.value, weight, y.value, tape.context());
  const Var<T> after = before.present() ? final_state(tape, before, {x}) : Var<T>();
  if (after.present()) {
    const View<T, 3> rounded = state_view(after.value);
    each_element(rounded.shape, [&](const auto& i) { *element(rounded, i) = T(*element(along.sum, i)); });
    *along.state = after;
  }
  tape.record({y, after}, [=](Tape<T>& back) {
    Workspace& scratch = back.context().workspace();
    const Workspace::Scope scope(scratch);
    View<const T, 4> dy = back.arrived(y);
    if (weight.present()) {
      const View<T, 4> scaled = contiguous(scratch.take<T>(y.value.size()), y.shape());
      binary<T>(Binary::multiply, dy, weight, scaled, back.context());
      dy = scaled;
    }
    sums_vjp(back, dy, sequences, x, before, after);
  });
  return y;
}
}  // namespace

template <class T>
Var<T> running_sum(Tape<T>& tape, Var<T> x, const AlongSum<T>& along) {
  return summed(tape, x, along, {}, false);
}

template <class T>
Var<T> running_angle(Tape<T>& tape, Var<T> x, const AlongSum<T>& along) {
  return summed(tape, x, along, {}, true);
}

template <class T>
Var<T> running_mean(Tape<T>& tape, Var<T> x, const AlongSum<T>& along) {
  const auto share = [](Index number) { return T(1.0 / double(number)); };
  return summed<T>(tape, x, along, numbered(tape, x.dim(0), x.dim(1), along.sequences, share).value, false);
}

template <class T>
Var<T> mean(Tape<T>& tape, Var<T> x) {
  const double scale = 1.0 / double(std::max<Index>(x.dim(1), 1));
  const Var<T> y = tape.make({x.dim(0), 1, x.dim(2), x.dim(3)}, {x});
  sum_to<T>({.x = x.value, .scale = scale}, y.value, Accumulate::set, tape.context());
  tape.record({y}, [=](Tape<T>& back) {
    const auto dx = back.target(x);
    sum_to<T>({.x = broadcast(back.arrived(y), x.shape()), .scale = scale}, dx.view, dx.mode, back.context());
  });
  return y;
}

namespace {
/// One token later, in each sequence.
template <class T>
void shift_tokens(View<const T, 4> x, View<const T, 4> before, View<T, 4> y, View<T, 4> after, Context& context) {
  const Index L = x.shape[1];
  if (L == 0) {
    if (after.present() && after.data != before.data) copy<T>(before, after, context);
    return;
  }
  const T zero = 0;
  const View<T, 4> first = slice(y, 1, 0, 1);
  copy<T>(before.present() ? before : View<const T, 4>{&zero, first.shape, {}}, first, context);
  copy<T>(slice(x, 1, 0, L - 1), slice(y, 1, 1, L - 1), context);
  if (after.present()) copy<T>(slice(x, 1, L - 1, 1), after, context);
}
template <class T>
void shift_tokens_vjp(View<const T, 4> dy, View<const T, 4> dafter, View<T, 4> dx, View<T, 4> dbefore, Context& context) {
  const Index L = dy.shape[1];
  const T zero = 0;
  if (dbefore.present()) {
    const View<const T, 4> from = L > 0 ? slice(dy, 1, 0, 1) : dafter;
    copy<T>(from.present() ? from : View<const T, 4>{&zero, dbefore.shape, {}}, dbefore, context);
  }
  if (!dx.present() || L == 0) return;
  copy<T>(slice(dy, 1, 1, L - 1), slice(dx, 1, 0, L - 1), context);
  const View<T, 4> last = slice(dx, 1, L - 1, 1);
  copy<T>(dafter.present() ? dafter : View<const T, 4>{&zero, last.shape, {}}, last, context);
}
}  // namespace

template <class T>
Var<T> shift(Tape<T>& tape, Var<T> x, const Along<T>& along) {
  const Sequences sequences = along.sequences;
  const Index B = x.dim(0), L = x.dim(1);
  const Var<T> before = along.state != nullptr ? *along.state : Var<T>();
  if (before.present()) check_shape("shift", "state", before.shape(), {sequences.count(B), 1, x.dim(2), x.dim(3)});
  const Var<T> y = tape.make(x.shape(), {x, before});
  const Var<T> after = before.present() ? final_state(tape, before, {x}) : Var<T>();
  each_part("shift", sequences, B, L, Placed::no, [&](const SequencePart& part) {
    shift_tokens<T>(part.tokens(View<const T, 4>(x.value)), part.states(View<const T, 4>(before.value)), part.tokens(y.value),
                    part.states(after.value), tape.context());
  });
  if (along.state != nullptr) *along.state = after;
  tape.record({y, after}, [=](Tape<T>& back) {
    GradientWriter<T> write(back);
    const View<const T, 4> dy = back.arrived(y), dafter = after.wanted() ? back.arrived(after) : View<const T, 4>{};
    const View<T, 4> dx = write(x), dbefore = write(before);
    each_part("shift", sequences, B, L, Placed::no, [&](const SequencePart& part) {
      shift_tokens_vjp<T>(part.tokens(dy), part.states(dafter), part.tokens(dx), part.states(dbefore), back.context());
    });
    write.finish();
  });
  return y;
}

namespace {
template <class T>
Var<T> local(Tape<T>& tape, Var<T> v, const Broadcast<T>& weight, const Neighbourhood& near, const Along<T>& along) {
  const Sequences sequences = along.sequences;
  const Var<T> before = along.state != nullptr ? *along.state : Var<T>();
  const Var<T> y = tape.make(v.shape(), {v, weight.var, before});
  const Var<T> after = before.present() ? final_state(tape, before, {v}) : Var<T>();
  const bool in_place = before.present() && before.value.data == after.value.data;
  const View<const T, 3> old = state_view(View<const T, 4>(before.value));
  const View<const T, 3> initial = in_place && y.wanted() ? kept(tape, state_view(before.value), true) : old;
  const auto each = [=, B = v.dim(0), L = v.dim(1)](auto f) {
    each_part("local_sum", sequences, B, L, Placed::no, [&](const SequencePart& part) {
      f(part, LocalInputs<T>{.v = part.tokens(View<const T, 4>(v.value)),
                             .weight = weight.shape[1] == L ? part.tokens(weight.value()) : weight.value(),
                             .state = part.states(initial)});
    });
  };
  each([&](const SequencePart& part, const LocalInputs<T>& in) {
    local_sum<T>(in, near, {.y = part.tokens(y.value), .state = part.states(state_view(after.value))}, tape.context());
  });
  if (along.state != nullptr) *along.state = after;
  tape.record({y, after}, [=](Tape<T>& back) {
    GradientWriter<T> write(back);
    const View<const T, 4> dy = back.arrived(y);
    const View<const T, 3> dafter = after.wanted() ? state_view(back.arrived(after)) : View<const T, 3>{};
    const View<T, 4> dv = write(v), dweight = write(weight), dbefore = write(before);
    each([&](const SequencePart& part, const LocalInputs<T>& in) {
      local_sum_vjp<T>(in, near, {.dy = part.tokens(dy), .dstate = part.states(dafter)},
                       {.dv = part.tokens(dv),
                        .dweight = weight.shape[1] == dy.shape[1] ? part.tokens(dweight) : dweight,
                        .dstate = part.states(state_view(dbefore))},
                       back.context());
    });
    write.finish();
  });
  return y;
}
}  // namespace

template <class T>
Var<T> local_sum(Tape<T>& tape, Var<T> v, Var<T> weight, Index width, const Along<T>& along) {
  // Packed sequences have weights of each token, so that the gradients of shared ones are summed over all of them.
  const Index tokens = along.sequences.offsets.empty() ? weight.dim(1) : v.dim(1);
  return local<T>(tape, v, {weight, {v.dim(0), tokens, v.dim(2), weight.dim(3)}}, {.width = width}, along);
}

template <class T>
Var<T> local_image_sum(Tape<T>& tape, Var<T> v, Var<T> weight, Index rows, Index columns) {
  require(weight.dim(1) >= 1, "local_image_sum", "expected weights of at least one token, got none");
  const Var<T> first = Tape<T>::part(weight, slice(weight.value, 1, 0, 1));
  return local<T>(tape, v, {first, {v.dim(0), 1, v.dim(2), weight.dim(3)}}, {.rows = rows, .columns = columns}, {});
}

namespace {
/// f(b, t) for all of [B, tokens], a block of them in a task.
template <class F>
void each_token(Index B, Index tokens, Context& context, F f) {
  const Index rows = B * tokens;
  context.parallel(row_blocks(rows), [&](Index block, Workspace&) {
    const RowRange range = row_block(block, rows);
    for (Index row = range.begin; row < range.end; ++row) f(row / tokens, row % tokens);
  });
}
}  // namespace

template <class T>
Var<T> neighbours(Tape<T>& tape, Var<T> x, Index stride) {
  require(stride >= 1 && x.dim(2) == 1, "neighbours", "expected one head and a stride >= 1, got ", x.dim(2), " and ", stride);
  const Index B = x.dim(0), L = x.dim(1), C = x.dim(3), rows = ceil_div(L, stride);
  const Var<T> y = tape.make({B, rows, 1, 3 * C}, {x});
  each_token(B, rows, tape.context(), [&](Index b, Index t) {
    for (Index j = 0; j < 3; ++j) {
      const Index s = t * stride + j - 1;
      const bool inside = s >= 0 && s < L;
      for (Index c = 0; c < C; ++c) y.value(b, t, 0, 3 * c + j) = inside ? x.value(b, s, 0, c) : T(0);
    }
  });
  tape.record({y}, [=](Tape<T>& back) {
    const auto dx = back.target(x);
    const View<const T, 4> dy = back.arrived(y);
    each_token(B, L, back.context(), [&](Index b, Index s) {
      for (Index c = 0; c < C; ++c) {
        T sum = dx.mode == Accumulate::add ? dx.view(b, s, 0, c) : T(0);
        for (Index j = 0; j < 3; ++j)
          if (const Index at = s + 1 - j; at >= 0 && at % stride == 0 && at / stride < rows)
            sum += dy(b, at / stride, 0, 3 * c + j);
        dx.view(b, s, 0, c) = sum;
      }
    });
  });
  return y;
}

template <class T>
Var<T> append_tokens(Tape<T>& tape, Var<T> a, Var<T> b, const Shape4& shape_of_b) {
  const Broadcast<T> last{b, shape_of_b};
  const Index before = a.present() ? a.dim(1) : 0;
  const Var<T> y = tape.make({shape_of_b[0], before + shape_of_b[1], shape_of_b[2], shape_of_b[3]}, {a, b});
  const auto first_part = [=](auto x) { return slice(x, 1, 0, before); };
  const auto last_part = [=](auto x) { return slice(x, 1, before, x.shape[1] - before); };
  if (a.present()) copy<T>(a.value, first_part(y.value), tape.context());
  copy<T>(last.value(), last_part(y.value), tape.context());
  tape.record({y}, [=](Tape<T>& back) {
    const View<const T, 4> dy = back.arrived(y);
    if (const auto da = back.target(a); da.present()) sum_to<T>({.x = first_part(dy)}, da.view, da.mode, back.context());
    if (const auto db = back.target(b); db.present()) sum_to<T>({.x = last_part(dy)}, db.view, db.mode, back.context());
  });
  return y;
}

namespace {
/// f(row b, its first tokens, the same tokens in the packed row, what is left of row b) for every row.
template <class T, class U, class F>
void each_packed(View<T, 4> rows, View<U, 4> packed, std::span<const std::int64_t> offsets, F f) {
  for (Index b = 0; b < rows.shape[0]; ++b) {
    const Index first = Index(offsets[std::size_t(b)]), length = Index(offsets[std::size_t(b) + 1]) - first;
    const View<T, 4> row = slice(rows, 0, b, 1);
    f(slice(row, 1, 0, length), slice(packed, 1, first, length), slice(row, 1, length, row.shape[1] - length));
  }
}
template <class T>
void pack(View<const T, 4> rows, std::span<const std::int64_t> offsets, View<T, 4> packed, Accumulate mode, Context& context) {
  each_packed(rows, packed, offsets, [&](auto from, auto to, auto) { sum_to<T>({.x = from}, to, mode, context); });
}
template <class T>
void unpack(View<const T, 4> packed, std::span<const std::int64_t> offsets, View<T, 4> rows, Accumulate mode, Context& context) {
  const T zero = 0;
  each_packed(rows, packed, offsets, [&](auto to, auto from, auto padding) {
    sum_to<T>({.x = from}, to, mode, context);
    if (mode == Accumulate::set) copy<T>(View<const T, 4>{&zero, padding.shape, {}}, padding, context);
  });
}
}  // namespace

template <class T>
Var<T> pack_tokens(Tape<T>& tape, Var<T> x, std::span<const std::int64_t> offsets) {
  const Var<T> y = tape.make({1, Index(offsets.back()), x.dim(2), x.dim(3)}, {x});
  pack<T>(x.value, offsets, y.value, Accumulate::set, tape.context());
  tape.record({y}, [=](Tape<T>& back) {
    const auto dx = back.target(x);
    unpack<T>(back.arrived(y), offsets, dx.view, dx.mode, back.context());
  });
  return y;
}

template <class T>
Var<T> unpack_tokens(Tape<T>& tape, Var<T> x, std::span<const std::int64_t> offsets, Index tokens) {
  const Var<T> y = tape.make({Index(offsets.size()) - 1, tokens, x.dim(2), x.dim(3)}, {x});
  unpack<T>(x.value, offsets, y.value, Accumulate::set, tape.context());
  tape.record({y}, [=](Tape<T>& back) {
    const auto dx = back.target(x);
    pack<T>(back.arrived(y), offsets, dx.view, dx.mode, back.context());
  });
  return y;
}

template <class T>
Var<T> position(Tape<T>& tape, Index B, Index tokens, const Sequences& sequences) {
  return numbered(tape, B, tokens, sequences, [](Index number) { return T(number); });
}

template <class T>
Var<T> position_table(Tape<T>& tape, Var<T> table, Index B, Index tokens, const Sequences& sequences) {
  require(table.dim(0) == 1 && table.dim(1) == 1, "position_table", "expected a table [1, 1, length, D], got [", table.dim(0),
          ", ", table.dim(1), ", ", table.dim(2), ", ", table.dim(3), "]");
  Workspace& scratch = tape.context().workspace();
  const Workspace::Scope scope(scratch);
  const View<std::int64_t, 2> ids = contiguous(scratch.take<std::int64_t>(B * tokens), {B, tokens});
  Var<T> rows;
  each_part("position_table", sequences, B, tokens, Placed::yes, [&](const SequencePart& part) {
    const Index end = part.position + part.length;
    require(part.position >= 0 && end <= table.dim(2), "position_table", "expected at most ", table.dim(2), " positions, got ",
            end);
    for (Index t = 0; t < part.length; ++t) ids(part.row, part.first + t) = part.position + t;
    if (!sequences.offsets.empty() || part.count < B) return;
    // The same rows for every sequence are read where they are.
    const View<T, 4> own = slice(table.value, 2, part.position, tokens);
    rows = Tape<T>::part(table, {own.data, {1, tokens, 1, own.shape[3]}, {0, own.stride[2], 0, own.stride[3]}});
  });
  return rows.present() ? rows : embedding(tape, View<const std::int64_t, 2>(ids), table);
}

template Var<float> running_sum(Tape<float>&, Var<float>, const AlongSum<float>&);
template Var<double> running_sum(Tape<double>&, Var<double>, const AlongSum<double>&);
template Var<float> running_angle(Tape<float>&, Var<float>, const AlongSum<float>&);
template Var<double> running_angle(Tape<double>&, Var<double>, const AlongSum<double>&);
template Var<float> running_mean(Tape<float>&, Var<float>, const AlongSum<float>&);
template Var<double> running_mean(Tape<double>&, Var<double>, const AlongSum<double>&);
template Var<float> mean(Tape<float>&, Var<float>);
template Var<double> mean(Tape<double>&, Var<double>);
template Var<float> shift(Tape<float>&, Var<float>, const Along<float>&);
template Var<double> shift(Tape<double>&, Var<double>, const Along<double>&);
template Var<float> local_sum(Tape<float>&, Var<float>, Var<float>, Index, const Along<float>&);
template Var<double> local_sum(Tape<double>&, Var<double>, Var<double>, Index, const Along<double>&);
template Var<float> local_image_sum(Tape<float>&, Var<float>, Var<float>, Index, Index);
template Var<double> local_image_sum(Tape<double>&, Var<double>, Var<double>, Index, Index);
template Var<float> neighbours(Tape<float>&, Var<float>, Index);
template Var<double> neighbours(Tape<double>&, Var<double>, Index);
template Var<float> append_tokens(Tape<float>&, Var<float>, Var<float>, const Shape4&);
template Var<double> append_tokens(Tape<double>&, Var<double>, Var<double>, const Shape4&);
template Var<float> pack_tokens(Tape<float>&, Var<float>, std::span<const std::int64_t>);
template Var<double> pack_tokens(Tape<double>&, Var<double>, std::span<const std::int64_t>);
template Var<float> unpack_tokens(Tape<float>&, Var<float>, std::span<const std::int64_t>, Index);
template Var<double> unpack_tokens(Tape<double>&, Var<double>, std::span<const std::int64_t>, Index);
template Var<float> position(Tape<float>&, Index, Index, const Sequences&);
template Var<double> position(Tape<double>&, Index, Index, const Sequences&);
template Var<float> position_table(Tape<float>&, Var<float>, Index, Index, const Sequences&);
template Var<double> position_table(Tape<double>&, Var<double>, Index, Index, const Sequences&);

}  // namespace isomer::ops
