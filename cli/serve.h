#pragma once
// isomer bench --serve: one JSON request a line on standard input, one JSON answer a line on standard output, so that a driver
// can time Isomer and its peers in turns.
//   {"op": "time", "case": {"subject", "variant", "direction", "B", "T", "H", "K", "V", "S", "window", "chunk",
//                             "threads"}, "repeat": n}
//                                                                        -> {"seconds": […], "flops": x, "form": "chunk"}
//   {"op": "peak", "threads": n}                                         -> {"gflops": x}
//   {"op": "read", "threads": n, "bytes": n}                             -> {"gb_per_s": x}, of as many bytes again and again
//   {"op": "train" or "generate", …}                                     see serve_models.h
// What it cannot do is answered with {"skip": reason}.

namespace isomer::cli {

/// Until the input ends.
void serve();

}  // namespace isomer::cli
