#pragma once
// How a call of scan is cut: sequences into chunks of tokens, channels into groups of whole blocks. Channels do not depend on
// each other, so a group of channels of a sequence is a task, and a long sequence needs no other one as long as it has two
// blocks.
#include "isomer/laws/chunks.h"
#include "isomer/laws/scan/scan_chunk.h"

namespace isomer::scan_detail {

struct Cut {
  Chunks chunks;  // of one head
  Index channels = 0;
  Index width = kBlock;  // channels of a group
  Index each = 1;        // groups of a task

  [[nodiscard]] Index sequences() const { return Index(chunks.sequences.size()); }
  [[nodiscard]] Index groups() const { return ceil_div(channels, width); }
  [[nodiscard]] Index edges() const { return chunks.all_edges(); }

  /// task(n, first channel, channels, workspace) for every group of every sequence.
  template <class F>
  void each_group(Context& context, F&& task) const {
    const Index all = sequences() * groups();
    context.parallel(ceil_div(all, each), [&](Index i, Workspace& workspace) {
      for (Index j = i * each; j < all && j < (i + 1) * each; ++j) {
        const Workspace::Scope scope(workspace);
        const Index first = j % groups() * width;
        task(j / groups(), first, channels - first < width ? channels - first : width, workspace);
      }
    });
  }
};

/// C: tokens of a chunk. `numbers`: of state a channel; `widest`: channels of a group at most.
[[nodiscard]] Cut make_cut(PoolVector<Sequence> sequences, Index channels, Index C, Index numbers, Index widest);

}  // namespace isomer::scan_detail
