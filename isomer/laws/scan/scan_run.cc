// The plain scan: groups of channels side by side, each chunk after chunk.
#include "isomer/laws/scan/scan_run.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "isomer/laws/with_law_isa.h"

namespace isomer::scan_detail {

namespace {

// Backward keeps two numbers (complex: four) for each token of a chunk and four vectors of channels: at 64 tokens and AVX-512
// 32 or 64 KiB of L2, AVX2 half of that. Fewer tokens would fit into L1, but prefetchers follow the rows of a chunk only after
// some.
constexpr Index kChunk = 64;
// A chunk of 128 channels, five to ten rows a token, is walked four vectors at a time: it stays in L2, and rows are read in lines
// that lie side by side.
constexpr Index kWidest = 128;
// Outputs of so many bytes go past the caches: beside what is read they would not stay there until someone reads them, and a
// line that is stored to would have been read first.
constexpr Index kStreamed = Index{8} << 20;

template <class T>
bool dense(const View<T, 2>& x) {
  return x.present() && (x.shape[1] <= 1 || x.stride[1] == 1);
}
/// Channels first … of a state: where they lie if they lie dense, else a copy; zeros if there is none.
template <class T>
const T* fetch(const View<const T, 2>& from, Index n, Index first, Index width, Workspace& workspace) {
  if (dense(from)) return from.at(n, first);
  T* copy = workspace.take<T>(width);
  for (Index i = 0; i < width; ++i) copy[i] = from.present() ? from(n, first + i) : T(0);
  return copy;
}
/// Where a state may be worked on: where it is to be left, or in the scratch.
template <class T>
T* place(const View<T, 2>& to, Index n, Index first, Index width, Workspace& workspace) {
  return dense(to) ? to.at(n, first) : workspace.take<T>(width);
}
template <class T>
void leave(const T* from, Index n, Index first, Index width, const View<T, 2>& to) {
  for (Index i = 0; i < width && to.present() && !dense(to); ++i) to(n, first + i) = from[i];
}
template <class T>
void copy(const State<const T>& from, const State<T>& to, Index width) {
  if (from.real != to.real) std::copy_n(from.real, width, to.real);
  if (from.imag != to.imag) std::copy_n(from.imag, width, to.imag);
}

/// Are the outputs large, and their rows whole lines?
template <class T>
bool streamed(std::initializer_list<View<T, 3>> outputs) {
  constexpr Index line = Index(64 / sizeof(T));
  Index bytes = 0;
  for (const View<T, 3>& x : outputs) {
    if (!x.present()) continue;
    if (reinterpret_cast<std::uintptr_t>(x.data) % 64 != 0 || x.stride[0] % line != 0 || x.stride[1] % line != 0) return false;
    bytes += x.size() * Index(sizeof(T));
  }
  return bytes >= kStreamed;
}

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
  /// A state to start from and where it moves on.
  struct Moving {
    State<const T> from;
    State<T> to;
  };
  [[nodiscard]] Moving states(const ScanStates<const T>& from, const ScanStates<T>& to, Index n, Index first, Index width,
                              Workspace& workspace) const {
    Moving s{{fetch(from.state, n, first, width, workspace), nullptr}, {place(to.state, n, first, width, workspace), nullptr}};
    if (complex) s.from.imag = fetch(from.imag, n, first, width, workspace);
    if (complex) s.to.imag = place(to.imag, n, first, width, workspace);
    return s;
  }
  void leave_states(const State<T>& from, const ScanStates<T>& to, Index n, Index first, Index width) const {
    leave(from.real, n, first, width, to.state);
    leave(from.imag, n, first, width, to.imag);
  }
};

}  // namespace

Choice choose() { return {Form::chunk, kChunk}; }

template <class T>
Cut cut_for(const ScanInputs<T>& in, Index chunk) {
  const auto [B, L, N] = in.x.shape;
  return make_cut(sequences("scan", B, L, in.offsets), N, chunk > 0 ? chunk : kChunk, 1, kWidest);
}

template <class T>
void forward(const ScanInputs<T>& in, const Cut& cut, const ScanOutputs<T>& out, T* edges, Context& context) {
  const Work<T> work{in, cut};
  const bool large = streamed<T>({out.h, out.h_imag});
  with_law_isa<T>(context.isa(), [&]<Isa I>() {
    cut.each_group(context, [&](Index n, Index first, Index width, Workspace& workspace) {
      const auto [from, state] = work.states(in.initial, out.final_states, n, first, width, workspace);
      for (Index c = 0; c < cut.chunks.chunks(n); ++c) {
        const State<const T> before = c == 0 ? from : State<const T>{state.real, state.imag};
        if (edges) copy(before, work.edge(edges, n, c, first), width);
        Kernels<T, I>::forward(work.tokens(n, c, first, width), before, state,
                               {cut.chunks.rows(out.h, n, first, c), cut.chunks.rows(out.h_imag, n, first, c), large});
      }
      if (cut.chunks.chunks(n) == 0) copy(from, state, width);
      work.leave_states(state, out.final_states, n, first, width);
    });
  });
}

template <class T>
void backward(const ScanInputs<T>& in, const Cut& cut, const T* edges, const ScanCotangents<T>& given,
              const ScanGradients<T>& grad, Context& context) {
  const Work<T> work{in, cut};
  const bool large = streamed<T>({grad.log_decay, grad.angle, grad.x, grad.x_imag});
  with_law_isa<T>(context.isa(), [&]<Isa I>() {
    cut.each_group(context, [&](Index n, Index first, Index width, Workspace& workspace) {
      const auto [from, back] = work.states(given.final_states, grad.initial, n, first, width, workspace);
      T* scratch = workspace.take<T>(backward_scratch(cut.chunks.C));
      copy(from, back, width);
      for (Index c = cut.chunks.chunks(n); c-- > 0;) {
        const auto rows = [&](const auto& x) { return cut.chunks.rows(x, n, first, c); };
        Kernels<T, I>::backward(
            work.tokens(n, c, first, width), work.edge(edges, n, c, first), back,
            {rows(given.h), rows(given.h_imag), rows(grad.log_decay), rows(grad.angle), rows(grad.x), rows(grad.x_imag), large},
            scratch);
      }
      work.leave_states(back, grad.initial, n, first, width);
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
