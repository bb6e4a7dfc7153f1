// The plain scan: groups of channels side by side, each chunk after chunk.
#include "isomer/laws/scan/scan_run.h"

#include <algorithm>

namespace isomer::scan_detail {

namespace {

// Backward keeps two numbers (complex: four) for each token of a chunk and 32 channels: 16 KiB of a 32 KiB L1 at 64 tokens.
constexpr Index kChunk = 64;
// A chunk of 128 channels, three to six rows a token, is walked 32 channels at a time: it stays in L2, and rows are read in lines
// that lie side by side.
constexpr Index kWidest = 128;

template <class T>
struct Work {
  const ScanInputs<T>& in;
  const Cut& cut;
  bool complex = in.complex();

  [[nodiscard]] Tokens<T> tokens(Index n, Index c, Index first, Index width) const {
    const auto rows = [&](const View<const T, 3>& x) { return cut.chunks.rows(x, n, first, c); };
    return {rows(in.log_decay), rows(in.angle), rows(in.x), rows(in.x_imag), cut.chunks.tokens_of(n, c), width};
  }
  template <class U>
  [[nodiscard]] State<U> edge(U* edges, Index n, Index c, Index first) const {
    const Index parts = complex ? 2 : 1;
    U* p = edges + cut.chunks.edge_index(n, 0, c) * parts * cut.channels + first;
    return {p, complex ? p + cut.channels : nullptr};
  }
  [[nodiscard]] State<T> take(Workspace& workspace, Index width) const {
    return {workspace.take<T>(width), complex ? workspace.take<T>(width) : nullptr};
  }
};

template <class T>
void fetch(const View<const T, 2>& from, Index n, Index first, Index width, T* to) {
  for (Index i = 0; i < width && to != nullptr; ++i) to[i] = from.present() ? from(n, first + i) : T(0);
}
template <class T>
void leave(const T* from, Index n, Index first, Index width, const View<T, 2>& to) {
  for (Index i = 0; i < width && to.present() && from != nullptr; ++i) to(n, first + i) = from[i];
}
template <class T>
void copy(const State<T>& from, const State<T>& to, Index width) {
  std::copy_n(from.real, width, to.real);
  if (from.imag != nullptr) std::copy_n(from.imag, width, to.imag);
}

}  // namespace

template <class T>
Cut cut_for(const ScanInputs<T>& in, Index chunk) {
  const auto [B, L, N] = in.x.shape;
  return make_cut(sequences("scan", B, L, in.offsets), N, chunk > 0 ? chunk : kChunk, 1, kWidest);
}

template <class T>
void forward(const ScanInputs<T>& in, const Cut& cut, const ScanOutputs<T>& out, T* edges, Context& context) {
  const Work<T> work{in, cut};
  with_isa(context.isa(), [&]<Isa I>() {
    cut.each_group(context, [&](Index n, Index first, Index width, Workspace& workspace) {
      const State<T> state = work.take(workspace, width);
      fetch(in.initial.state, n, first, width, state.real);
      fetch(in.initial.imag, n, first, width, state.imag);
      for (Index c = 0; c < cut.chunks.chunks(n); ++c) {
        if (edges) copy(state, work.edge(edges, n, c, first), width);
        Kernels<T, I>::forward(work.tokens(n, c, first, width), {state.real, state.imag}, state,
                               cut.chunks.rows(out.h, n, first, c), cut.chunks.rows(out.h_imag, n, first, c));
      }
      leave(state.real, n, first, width, out.final_states.state);
      leave(state.imag, n, first, width, out.final_states.imag);
    });
  });
}

template <class T>
void backward(const ScanInputs<T>& in, const Cut& cut, const T* edges, const ScanCotangents<T>& given,
              const ScanGradients<T>& grad, Context& context) {
  const Work<T> work{in, cut};
  with_isa(context.isa(), [&]<Isa I>() {
    cut.each_group(context, [&](Index n, Index first, Index width, Workspace& workspace) {
      const State<T> back = work.take(workspace, width);
      T* scratch = workspace.take<T>(backward_scratch(cut.chunks.C));
      fetch(given.final_states.state, n, first, width, back.real);
      fetch(given.final_states.imag, n, first, width, back.imag);
      for (Index c = cut.chunks.chunks(n); c-- > 0;) {
        const auto rows = [&](const auto& x) { return cut.chunks.rows(x, n, first, c); };
        Kernels<T, I>::backward(
            work.tokens(n, c, first, width), work.edge(edges, n, c, first), back,
            {rows(given.h), rows(given.h_imag), rows(grad.log_decay), rows(grad.angle), rows(grad.x), rows(grad.x_imag)},
            scratch);
      }
      leave(back.real, n, first, width, grad.initial.state);
      leave(back.imag, n, first, width, grad.initial.imag);
    });
  });
}

template Cut cut_for(const ScanInputs<float>&, Index);
template Cut cut_for(const ScanInputs<double>&, Index);
template void forward(const ScanInputs<float>&, const Cut&, const ScanOutputs<float>&, float*, Context&);
template void forward(const ScanInputs<double>&, const Cut&, const ScanOutputs<double>&, double*, Context&);
template void backward(const ScanInputs<float>&, const Cut&, const float*, const ScanCotangents<float>&,
                       const ScanGradients<float>&, Context&);
template void backward(const ScanInputs<double>&, const Cut&, const double*, const ScanCotangents<double>&,
                       const ScanGradients<double>&, Context&);

}  // namespace isomer::scan_detail
