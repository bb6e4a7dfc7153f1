#pragma once
// Which form Form::automatic takes, and how long its chunks are: a cost model of four numbers for each law.
//
// A token of one head costs, counted in flops of a large matrix product:
//   chunks of C   pair · C·(K + V)       matrix products between the tokens of a chunk, or what longer chunks lose in the caches
//               + state · KV             reading the state and writing to it, as matrix products
//               + edge · KV / C          what a chunk does with its state beside them: decays, copies, tiles that start and end
//   step          step · KV              a vector at a time: loads and stores of the state, not arithmetic
//   parallel      pair · T·(K + V)       one chunk of all tokens, where no state comes in or is wanted
// The least over C is at C² = edge/pair · KV/(K + V). A call of a few tokens is cheaper in steps, and one of some hundred that
// has nothing to do with a state is cheaper without one. The choice follows from shapes alone, never from the number of threads,
// because another chunk rounds differently: threads only decide how many neighbouring heads a task takes (Chunks::group_width),
// which no result shows. `isomer bench --explain` prints the choice beside what was measured for the others.
#include "isomer/laws/law.h"

namespace isomer {

/// In flops of a large matrix product, from timings (the law's README has the table).
struct ChunkCosts {
  double pair, state, edge, step;
};

/// The chunk of least cost: a multiple of 12 (two tiles of rows), from 24 to 96.
[[nodiscard]] Index best_chunk(const ChunkCosts& costs, Index K, Index V);

/// What a call has to do with states.
struct Carries {
  bool state = true;  // one comes in, or the last one is wanted
  bool tape = false;  // those at the edges of chunks are kept: no steps
};

/// The form of least cost; parallel only where no state is passed.
[[nodiscard]] Choice best_form(const ChunkCosts& costs, Index T, Index K, Index V, Carries carries);

}  // namespace isomer
