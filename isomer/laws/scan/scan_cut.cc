#include "isomer/laws/scan/scan_cut.h"

#include <algorithm>

namespace isomer::scan_detail {

namespace {

// Tasks there are at least, if there are blocks for them: enough for the threads of a small machine to share evenly.
constexpr Index kTasks = 8;
// Updates of a number of state that a task makes at least: for fewer, waking another thread costs more than it saves.
constexpr Index kUpdates = 32768;

}  // namespace

Cut make_cut(PoolVector<Sequence> sequences, Index channels, Index C, Index numbers, Index widest) {
  Cut cut;
  Index tokens = 0;
  for (const Sequence& s : sequences) tokens += s.length;
  const Index n = std::max<Index>(1, Index(sequences.size())), blocks = ceil_div(channels, kBlock);
  cut.channels = channels;
  cut.width = kBlock * std::clamp<Index>(n * blocks / kTasks, 1, widest / kBlock);
  cut.each = std::max<Index>(1, kUpdates / std::max<Index>(1, tokens / n * cut.width * numbers));
  cut.chunks = make_chunks(std::move(sequences), 1, C);
  return cut;
}

}  // namespace isomer::scan_detail
