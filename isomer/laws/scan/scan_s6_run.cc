// S6: groups of channels side by side, each chunk after chunk with its states in L1.
#include <algorithm>
#include <cmath>

#include "isomer/laws/scan/scan_run.h"
#include "isomer/laws/with_law_isa.h"

namespace isomer::scan_detail {

namespace {

// Tokens of a chunk: what backward keeps of them for a tile is 16 KiB of floats, a third of an L1 with 48. Of 48 tokens it is all
// of it, and backward takes half as long again.
constexpr Index kChunk = 16;
// Tokens that are cheaper in steps: turning a and the state into blocks and back costs as much as they save.
constexpr Index kSteps = 8;
// Tokens of a task that adds up groups.
constexpr Index kRows = 256;

/// The blocks of channels first … first + width − 1: what belongs to them, padded with zeros.
template <class T>
struct Blocks {
  const ScanS6Inputs<T>& in;
  Index first, width, N, size, count;  // size: of a state of a block
  T *a, *d, *largest;                  // [count,N,kBlock] [count,kBlock] [count]

  Blocks(const ScanS6Inputs<T>& inputs, Index first_channel, Index channels, Workspace& workspace)
      : in(inputs),
        first(first_channel),
        width(channels),
        N(inputs.a.shape[1]),
        size(N * kBlock),
        count(ceil_div(channels, kBlock)),
        a(workspace.take<T>(count * size)),
        d(workspace.take<T>(count * kBlock)),
        largest(workspace.take<T>(count)) {
    constexpr double log2_e = 1.4426950408889634074;
    fill(a, [&](Index c, Index n) { return T(double(in.a(c, n)) * log2_e); });
    for (Index i = 0; i < count * kBlock; ++i) d[i] = i < width && in.d.present() ? in.d(first + i) : T(0);
    for (Index i = 0; i < count; ++i) {
      largest[i] = 0;
      // A NaN stays: it is not smaller than anything.
      for (Index j = 0; j < size; ++j)
        if (const T x = std::abs(a[i * size + j]); !(x <= largest[i])) largest[i] = x;
    }
  }

  /// to[block][n][channel of the block] = f(channel, n).
  template <class F>
  void fill(T* to, F f) const {
    for (Index c = 0; c < count * kBlock; ++c)
      for (Index n = 0; n < N; ++n) to[c / kBlock * size + n * kBlock + c % kBlock] = c < width ? f(first + c, n) : T(0);
  }
  void fetch(const View<const T, 3>& from, Index sequence, T* to) const {
    fill(to, [&](Index c, Index n) { return from.present() ? from(sequence, c, n) : T(0); });
  }
  void leave(const T* from, Index sequence, const View<T, 3>& to) const {
    for (Index c = 0; c < width && to.present(); ++c)
      for (Index n = 0; n < N; ++n) to(sequence, first + c, n) = from[c / kBlock * size + n * kBlock + c % kBlock];
  }
  [[nodiscard]] S6Block<T> operator[](Index i) const { return {a + i * size, d + i * kBlock, largest + i}; }

  /// `channels` channels, from block i on, of chunk c of sequence n.
  [[nodiscard]] S6Tokens<T> tokens(const Cut& cut, Index n, Index c, Index i, Index channels) const {
    const Index channel = first + i * kBlock;
    const auto rows = [&](const View<const T, 3>& x, Index at) { return cut.chunks.rows(x, n, at, c); };
    const Index length = cut.chunks.tokens_of(n, c), before = c * cut.chunks.C;
    return {.x = rows(in.x, channel),
            .step = rows(in.step, channel),
            .b = rows(in.b, 0),
            .c = rows(in.c, 0),
            .count = length,
            .width = std::min(channels, width - i * kBlock),
            .N = N,
            .before = before,
            .after = cut.chunks.sequences[n].length - before - length};
  }
  /// The states of all channels at an edge are blocks, too.
  template <class U>
  [[nodiscard]] U* edge(const Cut& cut, U* edges, Index n, Index c) const {
    return edges + (cut.chunks.edge_index(n, 0, c) * ceil_div(cut.channels, kBlock) + first / kBlock) * size;
  }
};

/// Gradients that are summed over channels or tokens, before the last sum. b, c: [groups, tokens, N]; a, d: of every sequence.
template <class T>
struct Partial {
  T *b, *c;
  double *a, *d;  // [sequences, blocks, N, kBlock] and [sequences, blocks, kBlock]
};

template <class T>
struct Backward {
  const ScanS6Inputs<T>& in;
  const Cut& cut;
  const T* edges;
  const ScanS6Cotangents<T>& given;
  const ScanS6Gradients<T>& grad;
  Context& context;
  Index L = in.x.shape[1], tokens = in.x.shape[0] * L, N = in.a.shape[1], blocks = ceil_div(cut.channels, kBlock);

  template <Isa I>
  void group(const Partial<T>& partial, Index n, Index first, Index width, Workspace& workspace) const {
    const Blocks<T> all(in, first, width, workspace);
    const Index size = all.size, C = cut.chunks.C;
    S6Backward<T> io{};
    io.back = workspace.take<T>(all.count * size);
    io.grad_a = workspace.take<T>(all.count * size);
    io.grad_d = workspace.take<T>(all.count * kBlock);
    io.scratch = workspace.take<T>(s6_scratch(C, width));
    io.chunk = C;
    double* total_a = partial.a + (n * blocks + first / kBlock) * size;
    double* total_d = partial.d + (n * blocks + first / kBlock) * kBlock;
    std::fill_n(total_a, all.count * size, 0.0);
    std::fill_n(total_d, all.count * kBlock, 0.0);
    all.fetch(given.final_state, n, io.back);
    for (Index c = cut.chunks.chunks(n); c-- > 0;) {
      const auto rows = [&](const auto& x) { return cut.chunks.rows(x, n, first, c); };
      io.grad_o = rows(given.o), io.grad_x = rows(grad.x), io.grad_step = rows(grad.step);
      const Sequence& s = cut.chunks.sequences[n];
      const Index row = first / cut.width * tokens + s.batch * L + s.first + c * C;
      io.grad_b = {partial.b + row * N, N}, io.grad_c = {partial.c + row * N, N};
      Kernels<T, I>::s6_backward(all.tokens(cut, n, c, 0, width), all[0], all.edge(cut, edges, n, c), io);
      for (Index j = 0; j < all.count * size; ++j) total_a[j] += double(io.grad_a[j]);
      for (Index j = 0; j < all.count * kBlock; ++j) total_d[j] += double(io.grad_d[j]);
    }
    all.leave(io.back, n, grad.initial_state);
  }

  // Sums over groups of channels, in their order.
  void sum_channels(const T* partial, const View<T, 3>& to) const {
    if (!to.present()) return;
    context.parallel(ceil_div(tokens, kRows), [&](Index task, Workspace&) {
      for (Index row = task * kRows; row < std::min(tokens, (task + 1) * kRows); ++row)
        for (Index j = 0; j < N; ++j) {
          T sum = 0;
          for (Index g = 0; g < cut.groups(); ++g) sum += partial[(g * tokens + row) * N + j];
          to(row / L, row % L, j) = sum;
        }
    });
  }
  void sum_sequences(const Partial<T>& partial) const {
    const Index sequences = cut.sequences();
    for (Index c = 0; c < cut.channels; ++c) {
      const auto total = [&](const double* from, Index rows, Index j) {
        double sum = 0;
        for (Index n = 0; n < sequences; ++n) sum += from[((n * blocks + c / kBlock) * rows + j) * kBlock + c % kBlock];
        return T(sum);
      };
      for (Index j = 0; j < N && grad.a.present(); ++j) grad.a(c, j) = total(partial.a, N, j);
      if (grad.d.present()) grad.d(c) = total(partial.d, 1, 0);
    }
  }

  void run() const {
    Workspace& own = context.workspace();
    const Index sums = cut.groups() * tokens * N, channels = cut.sequences() * blocks * kBlock;
    const Partial<T> partial{own.take<T>(sums), own.take<T>(sums), own.take<double>(channels * N), own.take<double>(channels)};
    with_law_isa<T>(context.isa(), [&]<Isa I>() {
      cut.each_group(context, [&](Index n, Index first, Index width, Workspace& workspace) {
        group<I>(partial, n, first, width, workspace);
      });
    });
    sum_channels(partial.b, grad.b);
    sum_channels(partial.c, grad.c);
    sum_sequences(partial);
  }
};

/// Without tokens the state stays as it is.
template <class T>
void pass(const View<const T, 3>& from, const View<T, 3>& to, Index n, Index first, Index width) {
  for (Index c = first; c < first + width && to.present(); ++c)
    for (Index j = 0; j < to.shape[2]; ++j) to(n, c, j) = from.present() ? from(n, c, j) : T(0);
}

}  // namespace

Choice choose_s6(Index T, bool taped) {
  if (T <= kSteps && !taped) return {Form::step, 0};
  return {Form::chunk, kChunk};
}

template <class T>
Cut cut_for(const ScanS6Inputs<T>& in, Index chunk) {
  const auto [B, L, C] = in.x.shape;
  const Index N = in.a.shape[1];
  return make_cut(sequences("scan", B, L, in.offsets), C, chunk > 0 ? chunk : kChunk, N, kS6Widest);
}

template <class T>
void forward(const ScanS6Inputs<T>& in, const Cut& cut, const ScanS6Outputs<T>& out, T* edges, Context& context) {
  with_law_isa<T>(context.isa(), [&]<Isa I>() {
    cut.each_group(context, [&](Index n, Index first, Index width, Workspace& workspace) {
      const Blocks<T> all(in, first, width, workspace);
      T* state = workspace.take<T>(all.count * all.size);
      all.fetch(in.initial_state, n, state);
      for (Index c = 0; c < cut.chunks.chunks(n); ++c) {
        if (edges) std::copy_n(state, all.count * all.size, all.edge(cut, edges, n, c));
        for (Index i = 0; i < all.count; ++i)
          Kernels<T, I>::s6_forward(all.tokens(cut, n, c, i, kBlock), all[i], state + i * all.size,
                                    cut.chunks.rows(out.o, n, first + i * kBlock, c));
      }
      all.leave(state, n, out.final_state);
    });
  });
}

template <class T>
void backward(const ScanS6Inputs<T>& in, const Cut& cut, const T* edges, const ScanS6Cotangents<T>& given,
              const ScanS6Gradients<T>& grad, Context& context) {
  Backward<T>{in, cut, edges, given, grad, context}.run();
}

template <class T>
void step(const ScanS6Inputs<T>& in, const Cut& cut, const ScanS6Outputs<T>& out, Context& context) {
  const Index N = in.a.shape[1];
  with_law_isa<T>(context.isa(), [&]<Isa I>() {
    cut.each_group(context, [&](Index n, Index first, Index width, Workspace& workspace) {
      const View<const T, 3>& initial = in.initial_state;
      if (cut.chunks.sequences[n].length == 0) return pass(initial, out.final_state, n, first, width);
      const auto rows = [&](const auto& x, Index at) { return cut.chunks.rows(x, n, at, 0); };
      const S6Tokens<T> x{
          rows(in.x, first), rows(in.step, first), rows(in.b, 0), rows(in.c, 0), cut.chunks.sequences[n].length, width, N, 0, 0};
      S6Step<T> s{.a = {in.a.at(first), in.a.stride[0]}, .from = {}, .to = {}, .d = nullptr};
      if (initial.present()) {
        s.from = {initial.at(n, first), initial.stride[1]};
      } else {
        T* zeros = workspace.take<T>(N);
        std::fill_n(zeros, N, T(0));
        s.from = {zeros, 0};
      }
      s.to = out.final_state.present() ? Rows<T>{out.final_state.at(n, first), out.final_state.stride[1]}
                                       : Rows<T>{workspace.take<T>(width * N), N};
      if (in.d.present()) s.d = in.d.at(first);
      Kernels<T, I>::s6_step(x, s, rows(out.o, first));
    });
  });
}

template Cut cut_for(const ScanS6Inputs<float>&, Index);
template Cut cut_for(const ScanS6Inputs<double>&, Index);
template void forward(const ScanS6Inputs<float>&, const Cut&, const ScanS6Outputs<float>&, float*, Context&);
template void forward(const ScanS6Inputs<double>&, const Cut&, const ScanS6Outputs<double>&, double*, Context&);
template void backward(const ScanS6Inputs<float>&, const Cut&, const float*, const ScanS6Cotangents<float>&,
                       const ScanS6Gradients<float>&, Context&);
template void backward(const ScanS6Inputs<double>&, const Cut&, const double*, const ScanS6Cotangents<double>&,
                       const ScanS6Gradients<double>&, Context&);
template void step(const ScanS6Inputs<float>&, const Cut&, const ScanS6Outputs<float>&, Context&);
template void step(const ScanS6Inputs<double>&, const Cut&, const ScanS6Outputs<double>&, Context&);

}  // namespace isomer::scan_detail
