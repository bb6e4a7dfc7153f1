// Streams tokens through the state of the delta rule: a memory of four keys that is written and read one token at a time.
// A key that is written again gets its new value; a plain sum of outer products would return the sum of both.
#include <array>
#include <cstdio>

#include "isomer/laws/delta/delta.h"

namespace {
constexpr isomer::Index K = 4, V = 1;

/// One memory. The state is moved on in place, so that a token costs one pass over it and no allocation.
class Memory {
 public:
  /// Writes `value` under the key of this number, then reads the key `query`.
  float token(int key, float value, int query) {
    std::array<float, K> k{}, q{};
    k[std::size_t(key)] = q[std::size_t(query)] = 1;
    const float beta = 1;  // replace what is there; smaller: move towards the new value
    float o = 0;
    const auto one = [](auto* x, isomer::Index size) { return isomer::contiguous(x, {1, 1, 1, size}); };
    const auto state = isomer::contiguous(state_.data(), {1, 1, K, V});
    isomer::delta<float>({.q = one(q.data(), K),
                          .k = one(k.data(), K),
                          .v = one(&value, V),
                          .beta = isomer::contiguous(&beta, {1, 1, 1}),
                          .initial_state = state},
                         {.scale = 1.0}, isomer::Form::step, {.o = one(&o, V), .final_state = state}, context_);
    return o;
  }

 private:
  isomer::Context context_{1};
  std::array<float, K * V> state_{};
};
}  // namespace

int main() {
  Memory memory;
  struct Token {
    int key;
    float value;
    int query;
  };
  for (const Token& t : {Token{0, 5, 0}, {1, 7, 0}, {2, 9, 1}, {0, 6, 0}, {3, 1, 2}})
    std::printf("write %g under key %d, read key %d: %g\n", double(t.value), t.key, t.query,
                double(memory.token(t.key, t.value, t.query)));
}
