#include "isomer/kernels/conv/conv.h"

#include <algorithm>

#include "isomer/base/pool.h"
#include "isomer/kernels/check_shape.h"
#include "isomer/kernels/conv/conv_kernels.h"
#include "isomer/kernels/rows.h"

namespace isomer {

namespace {

// Tokens of a task: enough to hide its cost, few enough for one long sequence to keep all threads busy.
constexpr Index kTokens = 128;

/// Tokens first … first + length − 1 in the order of rows of x.
struct Stretch {
  Index first, length;
};
/// Tokens begin … end − 1 of a sequence: the work of one task.
struct Piece {
  Index sequence, begin, end;
};

struct Plan {
  Index T, C, W;
  PoolVector<Stretch> sequences;
  PoolVector<Piece> pieces;
};

PoolVector<Stretch> stretches(const char* op, Index B, Index T, ConvOffsets offsets) {
  PoolVector<Stretch> list;
  if (offsets.empty()) {
    for (Index b = 0; b < B; ++b) list.push_back({b * T, T});
    return list;
  }
  require(B == 1, op, "expected B = 1 with offsets, got ", B);
  require(offsets.front() == 0 && offsets.back() == T, op, "expected offsets from 0 to ", T, ", got from ", offsets.front(),
          " to ", offsets.back());
  for (std::size_t i = 1; i < offsets.size(); ++i) {
    require(offsets[i] >= offsets[i - 1], op, "expected offsets that do not fall, got ", offsets[i], " after ", offsets[i - 1]);
    list.push_back({Index(offsets[i - 1]), Index(offsets[i] - offsets[i - 1])});
  }
  return list;
}

template <class T>
Plan make_plan(const char* op, const ConvInputs<T>& in, ConvOffsets offsets) {
  Plan plan{.T = in.x.shape[1], .C = in.x.shape[2], .W = in.weight.shape[1], .sequences = {}, .pieces = {}};
  require(in.weight.shape[0] == plan.C && plan.W >= 1, op, "expected weight [", plan.C, ", at least 1], got [",
          in.weight.shape[0], ", ", plan.W, "]");
  if (in.bias.present()) check_shape(op, "bias", in.bias.shape, {1, plan.C});
  plan.sequences = stretches(op, in.x.shape[0], plan.T, offsets);
  if (in.state.present()) check_shape(op, "state", in.state.shape, {Index(plan.sequences.size()), plan.W - 1, plan.C});
  for (std::size_t s = 0; s < plan.sequences.size(); ++s)
    for (Index t = 0; t < plan.sequences[s].length; t += kTokens)
      plan.pieces.push_back({Index(s), t, std::min(t + kTokens, plan.sequences[s].length)});
  return plan;
}

/// All rows of a view, dense: in place or a copy in the caller's scratch.
template <class T>
Rows<const T> all_rows(View<const T, 3> x, Workspace& scratch) {
  return read_rows(with_leading_axes(x), {0, x.shape[0] * x.shape[1]}, scratch);
}
template <class T>
Rows<T> all_rows_out(View<T, 3> x, Workspace& scratch) {
  return write_rows(with_leading_axes(x), {0, x.shape[0] * x.shape[1]}, scratch);
}
template <class T>
void store_all(Rows<T> from, View<T, 3> x) {
  store_rows(from, with_leading_axes(x), {0, x.shape[0] * x.shape[1]});
}

/// Where token t of a sequence is: in x, or before it in the state, or nowhere (null).
template <class T>
struct Source {
  const Plan& plan;
  Rows<const T> x, state;

  [[nodiscard]] const T* operator()(Index sequence, Index t) const {
    if (t >= 0) return x.row(plan.sequences[std::size_t(sequence)].first + t);
    return state.data == nullptr ? nullptr : state.row((sequence + 1) * (plan.W - 1) + t);
  }
  void taps(Index sequence, Index t, const T** taps) const {
    for (Index j = 0; j < plan.W; ++j) taps[j] = (*this)(sequence, t - plan.W + 1 + j);
  }
};

/// The weight as [W, C], dense.
template <class T>
const T* taps_first(View<const T, 2> weight, Workspace& scratch) {
  return dense_matrix<T>({weight.data, {weight.shape[1], weight.shape[0]}, {weight.stride[1], weight.stride[0]}}, scratch);
}

/// Gradients before silu, if there is one: the filter's values are computed again.
template <class T>
struct FilterGradient {
  const Plan& plan;
  const Source<T>& source;
  const T *weight, *bias;
  Rows<const T> dy;
  bool silu;

  /// Of tokens begin … end − 1 of a sequence, by the numbers of their rows.
  template <Isa I>
  [[nodiscard]] Rows<const T> run(Index sequence, Index begin, Index end, Workspace& scratch) const {
    if (!silu) return dy;
    const Index first = plan.sequences[std::size_t(sequence)].first, C = plan.C;
    T* all = scratch.take<T>((end - begin) * C);
    const T** taps = scratch.take<const T*>(plan.W);
    for (Index t = begin; t < end; ++t) {
      T* z = all + (t - begin) * C;
      source.taps(sequence, t, taps);
      ConvKernels<T, I>::filter(C, plan.W, taps, weight, bias, z);
      ConvKernels<T, I>::silu_gradient(C, dy.row(first + t), z);
    }
    return {.data = all, .first = first + begin, .stride = {C}};
  }
};

/// Gradients of the tokens from −(W−1), those in the initial state, to the last.
template <class T>
struct TokenGradient {
  const Plan& plan;
  Rows<const T> dfinal;
  const T* weight;
  Rows<T> dx, dstate;

  template <Isa I>
  void run(Rows<const T> dy, Index sequence, Index t, const T** taps) const {
    const auto [first, length] = plan.sequences[std::size_t(sequence)];
    const Index W = plan.W, row = (sequence + 1) * (W - 1) + t;
    T* target = t >= 0 ? (dx.data == nullptr ? nullptr : dx.row(first + t)) : dstate.row(row);
    if (target == nullptr) return;
    for (Index j = 0; j < W; ++j) {
      const Index later = t + W - 1 - j;
      taps[j] = later >= 0 && later < length ? dy.row(first + later) : nullptr;
    }
    // The last W − 1 tokens are the final state.
    const bool kept = dfinal.data != nullptr && t >= length - (W - 1);
    ConvKernels<T, I>::filter(plan.C, W, taps, weight, kept ? dfinal.row(row - length) : nullptr, target);
  }
};

}  // namespace

template <class T>
void conv(const ConvInputs<T>& in, ConvOffsets offsets, const ConvOutputs<T>& out, Context& context) {
  const Plan plan = make_plan("conv", in, offsets);
  const Index W = plan.W, S = Index(plan.sequences.size());
  check_shape("conv", "y", out.y.shape, in.x.shape);
  if (out.state.present()) check_shape("conv", "final state", out.state.shape, {S, W - 1, plan.C});
  Workspace& own = context.workspace();
  const Workspace::Scope scope(own);
  const Source<T> source{plan, all_rows(in.x, own), all_rows(in.state, own)};
  const T *weight = taps_first(in.weight, own), *bias = dense_matrix(in.bias, own);
  const Rows<T> y = all_rows_out(out.y, own);
  context.parallel(Index(plan.pieces.size()), [&](Index task, Workspace& scratch) {
    const Workspace::Scope task_scope(scratch);
    const Piece piece = plan.pieces[std::size_t(task)];
    const Index first = plan.sequences[std::size_t(piece.sequence)].first;
    const T** taps = scratch.take<const T*>(W);
    for (Index t = piece.begin; t < piece.end; ++t) {
      source.taps(piece.sequence, t, taps);
      with_isa(context.isa(), [&]<Isa I>() {
        ConvKernels<T, I>::filter(plan.C, W, taps, weight, bias, y.row(first + t));
        if (in.silu) ConvKernels<T, I>::silu(plan.C, y.row(first + t));
      });
    }
  });
  store_all(y, out.y);
  if (!out.state.present()) return;
  for (Index s = 0; s < S; ++s)
    for (Index i = 0; i < W - 1; ++i) {
      const T* row = source(s, plan.sequences[std::size_t(s)].length - (W - 1) + i);
      for (Index c = 0; c < plan.C; ++c) out.state(s, i, c) = row == nullptr ? T(0) : row[c];
    }
}

template <class T>
void conv_vjp(const ConvInputs<T>& in, ConvOffsets offsets, const ConvUpstream<T>& up, const ConvGradients<T>& gradients,
              Context& context) {
  const Plan plan = make_plan("conv_vjp", in, offsets);
  const Index W = plan.W, C = plan.C, S = Index(plan.sequences.size()), pieces = Index(plan.pieces.size());
  check_shape("conv_vjp", "dy", up.dy.shape, in.x.shape);
  const std::array<Index, 3> state_shape{S, W - 1, C};
  if (up.dstate.present()) check_shape("conv_vjp", "upstream dstate", up.dstate.shape, state_shape);
  if (gradients.dx.present()) check_shape("conv_vjp", "dx", gradients.dx.shape, in.x.shape);
  if (gradients.dstate.present()) check_shape("conv_vjp", "dstate", gradients.dstate.shape, state_shape);
  if (gradients.dweight.present()) check_shape("conv_vjp", "dweight", gradients.dweight.shape, {C, W});
  if (gradients.dbias.present()) check_shape("conv_vjp", "dbias", gradients.dbias.shape, {1, C});

  Workspace& own = context.workspace();
  const Workspace::Scope scope(own);
  const Source<T> source{plan, all_rows(in.x, own), all_rows(in.state, own)};
  const T* weight = taps_first(in.weight, own);
  const FilterGradient<T> filter{plan, source, weight, dense_matrix(in.bias, own), all_rows(up.dy, own), in.silu};
  const TokenGradient<T> tokens{plan, all_rows(up.dstate, own), weight, all_rows_out(gradients.dx, own),
                                all_rows_out(gradients.dstate, own)};
  // A piece sums its tokens' part of [dweight, dbias]; the pieces are added in order.
  const bool parameters = gradients.dweight.present() || gradients.dbias.present();
  const Index size = (W + 1) * C;
  T* partials = own.take<T>(parameters ? pieces * size : 0);
  context.parallel(pieces, [&](Index task, Workspace& scratch) {
    const Workspace::Scope task_scope(scratch);
    const Piece piece = plan.pieces[std::size_t(task)];
    const T** taps = scratch.take<const T*>(W);
    T* sums = partials + task * size;
    if (parameters) std::fill_n(sums, size, T(0));
    const auto [first, length] = plan.sequences[std::size_t(piece.sequence)];
    with_isa(context.isa(), [&, first = first, length = length]<Isa I>() {
      // A token is filtered into the W − 1 that follow.
      const Rows<const T> dy = filter.template run<I>(piece.sequence, piece.begin, std::min(piece.end + W - 1, length), scratch);
      for (Index t = piece.begin; t < piece.end; ++t) {
        tokens.template run<I>(dy, piece.sequence, t, taps);
        if (!parameters) continue;
        source.taps(piece.sequence, t, taps);
        ConvKernels<T, I>::add_weight_gradient(C, W, taps, dy.row(first + t), sums, sums + W * C);
      }
    });
  });
  if (gradients.dstate.present()) {
    const T** taps = own.take<const T*>(W);
    with_isa(context.isa(), [&]<Isa I>() {
      for (Index s = 0; s < S; ++s) {
        const Index near = std::min(W - 1, plan.sequences[std::size_t(s)].length);
        const Rows<const T> dy = filter.template run<I>(s, 0, near, own);
        for (Index t = 1 - W; t < 0; ++t) tokens.template run<I>(dy, s, t, taps);
      }
    });
  }
  store_all(tokens.dx, gradients.dx);
  store_all(tokens.dstate, gradients.dstate);
  const View<T, 2> dw = gradients.dweight;
  sum_partials(partials, pieces, size, View<T, 2>{dw.data, {W, C}, {dw.stride[1], dw.stride[0]}});
  sum_partials(partials + W * C, pieces, size, gradients.dbias);
}

template void conv(const ConvInputs<float>&, ConvOffsets, const ConvOutputs<float>&, Context&);
template void conv(const ConvInputs<double>&, ConvOffsets, const ConvOutputs<double>&, Context&);
template void conv_vjp(const ConvInputs<float>&, ConvOffsets, const ConvUpstream<float>&, const ConvGradients<float>&, Context&);
template void conv_vjp(const ConvInputs<double>&, ConvOffsets, const ConvUpstream<double>&, const ConvGradients<double>&,
                       Context&);

}  // namespace isomer
