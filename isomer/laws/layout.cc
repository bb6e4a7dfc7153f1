#include "isomer/laws/layout.h"

#include <algorithm>

#include "isomer/base/error.h"

namespace isomer {

PoolVector<Sequence> sequences(const char* op, Index B, Index T, std::span<const std::int64_t> offsets) {
  PoolVector<Sequence> all;
  if (offsets.empty()) {
    for (Index b = 0; b < B; ++b) all.push_back({b, 0, T});
    return all;
  }
  require(B == 1, op, "expected B = 1 with offsets, got ", B);
  require(offsets.front() == 0 && offsets.back() == T, op, "expected offsets from 0 to T = ", T, ", got ", offsets.front(),
          " to ", offsets.back());
  for (std::size_t i = 1; i < offsets.size(); ++i) {
    require(offsets[i - 1] <= offsets[i], op, "expected offsets that never decrease, got ", offsets[i - 1], " before ",
            offsets[i]);
    all.push_back({0, Index(offsets[i - 1]), Index(offsets[i] - offsets[i - 1])});
  }
  return all;
}

Index common_heads(const char* op, Index Gq, Index Gk, Index Gv) {
  const Index H = std::max({Gq, Gk, Gv});
  for (Index G : {Gq, Gk, Gv}) require(G > 0 && H % G == 0, op, "expected heads that divide the largest count ", H, ", got ", G);
  return H;
}

template <class T>
void sum_groups(View<const T, 4> heads, View<T, 4> groups, Context& context) {
  const auto [B, T_, G, D] = groups.shape;
  const Index each = heads.shape[2] / G;
  context.parallel(B * T_, [&, G = G, D = D, T_ = T_](Index task, Workspace&) {
    const Index b = task / T_, t = task % T_;
    for (Index g = 0; g < G; ++g)
      for (Index d = 0; d < D; ++d) {
        T sum = 0;
        for (Index e = 0; e < each; ++e) sum += heads(b, t, g * each + e, d);
        groups(b, t, g, d) = sum;
      }
  });
}

template void sum_groups(View<const float, 4>, View<float, 4>, Context&);
template void sum_groups(View<const double, 4>, View<double, 4>, Context&);

}  // namespace isomer
