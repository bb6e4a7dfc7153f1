// A token against a long cache.
#include <gtest/gtest.h>

#include <limits>

#include "isomer/laws/attention/attention.h"
#include "isomer/laws/attention/testing.h"
#include "tests/quick.h"

namespace isomer {
namespace {
using attention_testing::Data;
using attention_testing::distance;
using Options = AttentionOptions;

template <class T>
class AttentionStep : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(AttentionStep, Types);

/// Queries of one group are read together, keys are cut into stretches: of some of which everything may have been forgotten.
TYPED_TEST(AttentionStep, ReadsALongCacheForSeveralQueriesAtOnce) {
  using T = TypeParam;
  struct Heads {
    Index H, Gq, Gk, Gv;
  };
  const Index L = 1101;
  for (const Heads& n : {Heads{8, 8, 2, 2}, Heads{6, 6, 2, 1}, Heads{4, 1, 4, 2}, Heads{10, 10, 2, 1}, Heads{3, 3, 1, 1}})
    for (const auto& [K, V] : {std::pair<Index, Index>{64, 64}, {33, 5}, {8, 131}})
      for (const Options& options : {Options{}, Options{.kernel = Options::Kernel::taylor}}) {
        if (tests::quick() && K != 33) continue;
        Data<T> q(1, L, n.Gq, K, 1), k(1, L, n.Gk, K, 2), v(1, L, n.Gv, V, 3), f(1, L, n.H, 1, 4), o(1, 1, n.H, V, 5);
        for (T& x : f.values) x = -std::abs(x) / T(100);
        f.values[std::size_t(600 * n.H)] = -std::numeric_limits<T>::infinity();  // of head 0
        const View<const T, 3> forget{f.values.data(), {1, L, n.H}, {L * n.H, n.H, 1}};
        const auto last = [](auto view) { return slice(view, 1, L - 1, 1); };
        AttentionState<T> before({1, n.H, n.Gk, n.Gv, K, V}, options);
        for (Index t = 0; t + 1 < L; ++t) {
          const auto at = [&](auto view) { return slice(view, 1, t, 1); };
          before.append(at(k.view), at(v.view), at(forget));
        }
        Context one(1);
        const AttentionInputs<T> all{last(q.view), k.view, v.view, forget};
        attention<T>(all, options, Form::reference, {.o = o.view}, one);
        std::vector<T> first;
        for (const int threads : {1, 2, 7}) {
          Context context(threads);
          AttentionState<T> state = before;
          Data<T> s(1, 1, n.H, V, 6);
          attention_step<T>({last(q.view), last(k.view), last(v.view), last(forget)}, options, state, {.o = s.view}, context);
          EXPECT_LT((distance<T>(s.view, o.view)), 60 * double(std::numeric_limits<T>::epsilon())) << n.H << " heads of " << K;
          if (first.empty()) first = s.values;
          EXPECT_EQ(s.values, first) << threads << " threads";
        }
      }
}

}  // namespace
}  // namespace isomer
