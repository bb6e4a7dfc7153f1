#include "isomer/laws/planner.h"

#include <algorithm>
#include <cmath>

namespace isomer {

namespace {
constexpr Index kGrain = 12, kShortest = 24, kLongest = 96;
// Weights between all tokens of a longer call would leave L2.
constexpr Index kWhole = 192;
}  // namespace

Index best_chunk(const ChunkCosts& costs, Index K, Index V) {
  const double k = double(std::max<Index>(K, 1)), v = double(std::max<Index>(V, 1));
  const double best = std::sqrt(costs.edge / costs.pair * k * v / (k + v));
  return std::clamp(Index(std::lround(best / double(kGrain))) * kGrain, kShortest, kLongest);
}

Choice best_form(const ChunkCosts& costs, Index T, Index K, Index V, Carries carries) {
  const Index chunk = best_chunk(costs, K, V), C = std::clamp<Index>(T, 1, chunk);
  const double state = double(K * V);
  const double chunked = costs.pair * double(C * (K + V)) + costs.state * state + costs.edge * state / double(C);
  const bool stateless = !carries.state && !carries.tape;
  if (stateless && T <= kWhole && costs.pair * double(T * (K + V)) < chunked) return {Form::parallel, 0};
  if (!carries.tape && costs.step * state < chunked) return {Form::step, 0};
  return {Form::chunk, chunk};
}

}  // namespace isomer
