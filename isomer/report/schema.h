#pragma once
// What the program and the page agree on (web/src/data.ts).

namespace isomer {

/// Goes up when data of the page is renamed, goes away or changes its meaning.
inline constexpr int kPageSchema = 1;

}  // namespace isomer
