#pragma once
// How a call of a law is cut: sequences into chunks of C tokens, heads into groups of neighbours that one task walks together.
//
// A head's chunks have one edge more than there are chunks; a state belongs to each edge. Three schedules are in use:
//   chunk after chunk   each_group(): a task takes some neighbouring heads and carries their states from chunk to chunk.
//   slices              each_slice(): where heads are too few for the threads, a task carries some columns of one head's state.
//   side by side        `split`, few heads and many chunks: what each chunk adds to the state, a pass over the edges, the
//                       outputs.
// Whether chunks run side by side, and C, follow from shapes alone; groups and slices follow from the number of threads too, but
// no number is computed otherwise in another of them. So results do not depend on the number of threads.

#include <cstring>

#include "isomer/base/context.h"
#include "isomer/base/view.h"
#include "isomer/laws/chunk_rows.h"
#include "isomer/laws/layout.h"

namespace isomer {

struct Chunks {
  Index H = 0, C = 1;
  PoolVector<Sequence> sequences;
  PoolVector<Index> first_chunk;  // of each sequence, counting those of all sequences; one more at the end
  bool split = false;

  [[nodiscard]] Index heads() const { return Index(sequences.size()) * H; }
  [[nodiscard]] Index chunks(Index n) const { return first_chunk[n + 1] - first_chunk[n]; }
  [[nodiscard]] Index all_chunks() const { return first_chunk.back() * H; }
  [[nodiscard]] Index all_edges() const { return all_chunks() + heads(); }
  [[nodiscard]] Index edge_index(Index n, Index h, Index c) const { return (first_chunk[n] + n) * H + h * (chunks(n) + 1) + c; }
  /// Tokens of chunk c of sequence n.
  [[nodiscard]] Index tokens_of(Index n, Index c) const {
    const Index left = sequences[n].length - c * C;
    return left < C ? left : C;
  }

  struct Place {
    Index n, h, c;
  };
  /// The i-th chunk of all_chunks(); heads of one sequence stand together.
  [[nodiscard]] Place place(Index i) const;

  /// Rows of head h (of its group) from the first token of a chunk on: [B,T,G,D], and one element a row of [B,T,H].
  template <class U>
  [[nodiscard]] chunk::Rows<U> rows(const View<U, 4>& x, Index n, Index h, Index c) const {
    if (!x.present()) return {nullptr, 0};
    const Sequence& s = sequences[n];
    return {x.at(s.batch, s.first + c * C, group_of(h, H, x.shape[2])), x.stride[1]};
  }
  template <class U>
  [[nodiscard]] chunk::Rows<U> rows(const View<U, 3>& x, Index n, Index h, Index c) const {
    if (!x.present()) return {nullptr, 0};
    const Sequence& s = sequences[n];
    return {x.at(s.batch, s.first + c * C, h), x.stride[1]};
  }

  /// task(n, h, count, workspace) for heads h … h + count − 1 of sequence n, every head once. Rows of neighbouring heads lie side
  /// by side in [B,T,H,D]: walking them together, chunk by chunk, reads whole pages where one head would read a line of each.
  template <class F>
  void each_group(Context& context, F&& task) const {
    const Index width = group_width(context.threads()), groups = ceil_div(H, width);
    context.parallel(Index(sequences.size()) * groups, [&](Index i, Workspace& workspace) {
      const Workspace::Scope scope(workspace);
      const Index h = i % groups * width;
      task(i / groups, h, H - h < width ? H - h : width, workspace);
    });
  }
  /// task(n, h, count, columns, workspace): the same with all of V columns; or, where slices(threads, V) says so, one head and a
  /// slice of them. Whatever does not belong to a column is computed in each slice, and is to be written by the first one alone.
  template <class F>
  void each_slice(Context& context, Index V, F&& task) const {
    const Index width = round_up(ceil_div(V, slices(context.threads(), V)), kLine), each = ceil_div(V, width);
    if (each == 1)
      return each_group(context, [&](Index n, Index h, Index count, Workspace& workspace) {
        task(n, h, count, Columns{0, V}, workspace);
      });
    context.parallel(heads() * each, [&](Index i, Workspace& workspace) {
      const Workspace::Scope scope(workspace);
      const Index begin = i % each * width;
      task(i / each / H, i / each % H, 1, Columns{begin, V - begin < width ? V - begin : width}, workspace);
    });
  }
  /// task(n, h, workspace) for every head, for the step form. Each head moves `state` elements for each of its tokens.
  template <class F>
  void each_stepped(Context& context, Index state, F&& task) const {
    // 64 KiB of floats: a few microseconds, which only a thread that is awake can share.
    constexpr Index kTask = 16384;
    Index tokens = 0;
    for (const Sequence& s : sequences) tokens = s.length > tokens ? s.length : tokens;
    const Index moved = state * tokens > 0 ? state * tokens : 1, each = moved < kTask ? kTask / moved : 1;
    auto some = [&](Index i, Workspace& workspace) {
      for (Index j = i * each; j < (i + 1) * each && j < heads(); ++j) {
        const Workspace::Scope scope(workspace);
        task(j / H, j % H, workspace);
      }
    };
    const Index tasks = ceil_div(heads(), each);
    if (moved * heads() <= 8 * kTask) return context.parallel_briefly(tasks, some);
    context.parallel(tasks, some);
  }
  /// Heads of a group: kNeighbours, or fewer if threads would have nothing to do. What a head computes does not depend on it.
  [[nodiscard]] Index group_width(int threads) const;
  /// Into how many slices each head is cut: the fewest with which threads are done at the same time.
  [[nodiscard]] Index slices(int threads, Index V) const;
  /// The fewest columns of a slice: those of a cache line of floats, a vector of 512 bits.
  static constexpr Index kLine = 16;
};

/// Neighbours: their states and rows of a chunk fill a part of L2 (512 KiB), four rows of 64 floats a quarter of a page.
inline constexpr Index kNeighbours = 4;
/// With fewer heads than this chunks run side by side, where they do not walk through the state. With more, two threads have
/// enough to do, and the states of all chunks would be written and read for nothing.
inline constexpr Index kSplitHeads = 4;
/// With fewer chunks than this a head is not split at all: that would cost more than it gives.
inline constexpr Index kSplitChunks = 4;

/// A head's tokens, or rows of its outputs, with these columns of their values alone.
template <class Tokens>
[[nodiscard]] Tokens only(Columns columns, Tokens x) {
  x.V = columns.width;
  x.v.data += columns.begin;
  return x;
}
template <class T>
[[nodiscard]] chunk::Rows<T> only(Columns columns, chunk::Rows<T> x) {
  return {x.data ? x.data + columns.begin : nullptr, x.stride};
}
/// These columns of the state of a head into [K,width], zeros if there is none, and back.
template <class T>
void fetch_state(const View<const T, 4>& from, const HeadColumns& at, Index K, T* state) {
  const auto [begin, width] = at.columns;
  for (Index a = 0; a < K; ++a)
    for (Index c = 0; c < width; ++c) state[a * width + c] = from.present() ? from(at.n, at.h, a, begin + c) : T(0);
}
template <class T>
void store_state(const T* state, Index K, const View<T, 4>& to, const HeadColumns& at) {
  const auto [begin, width] = at.columns;
  for (Index a = 0; a < K && to.present(); ++a)
    for (Index c = 0; c < width; ++c) to(at.n, at.h, a, begin + c) = state[a * width + c];
}
/// `rows` dense rows of these columns into rows of all V.
template <class T>
void put_columns(const T* from, Columns columns, Index rows, T* to, Index V) {
  // All columns are one copy.
  const Index count = columns.width == V ? 1 : rows, size = columns.width * (rows / count);
  for (Index i = 0; i < count; ++i) std::memcpy(to + i * V + columns.begin, from + i * size, std::size_t(size) * sizeof(T));
}

/// Chunks of C tokens, or of the longest sequence if that is shorter or if `whole`.
[[nodiscard]] Chunks make_chunks(PoolVector<Sequence> sequences, Index H, Index C, bool whole = false);

}  // namespace isomer
