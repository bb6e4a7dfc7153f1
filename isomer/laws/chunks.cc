#include "isomer/laws/chunks.h"

#include <algorithm>

namespace isomer {

Chunks::Place Chunks::place(Index i) const {
  const auto next = std::upper_bound(first_chunk.begin(), first_chunk.end(), i / H);
  const Index n = Index(next - first_chunk.begin()) - 1;
  const Index j = i - first_chunk[n] * H;
  return {n, j / chunks(n), j % chunks(n)};
}

Index Chunks::group_width(int threads) const { return std::clamp<Index>(heads() / threads, 1, kNeighbours); }

Index Chunks::slices(int threads, Index V) const {
  if (all_chunks() < kSplitChunks * heads()) return 1;
  Index longest = 1, all = 0;
  for (const Sequence& s : sequences) {
    longest = std::max(longest, s.length);
    all += s.length;
  }
  // Heads as long as the longest: a short one fills no thread.
  const Index even = std::max<Index>(1, H * all / longest), most = ceil_div(V, kLine);
  for (Index slices = 1; slices < most; ++slices)
    if (even * slices % threads == 0 || even * slices >= kNeighbours * threads) return slices;
  return most;
}

Chunks make_chunks(PoolVector<Sequence> sequences, Index H, Index C, bool whole) {
  Index longest = 1;
  for (const Sequence& s : sequences) longest = std::max(longest, s.length);
  Chunks cut{.H = H, .C = whole ? longest : std::min(C, longest), .sequences = std::move(sequences), .first_chunk = {0}};
  for (const Sequence& s : cut.sequences) cut.first_chunk.push_back(cut.first_chunk.back() + ceil_div(s.length, cut.C));
  cut.split = cut.heads() < kSplitHeads && cut.all_chunks() >= kSplitChunks * cut.heads();
  return cut;
}

}  // namespace isomer
