#include "isomer/kernels/embedding/embedding.h"

#include "isomer/base/bf16.h"
#include "isomer/base/f16.h"
#include "isomer/kernels/testing.h"
#include "tests/error_of.h"

namespace isomer {
namespace {

using testing::Array;
using testing::Layout;

/// Ids with a frequent one, in a view with a gap.
struct Ids {
  std::vector<std::int64_t> storage;
  View<const std::int64_t, 2> view;

  Ids(Index B, Index T, Index V, Rng& rng) : storage(std::size_t(B * (T + 1)), -1) {
    for (Index n = 0; n < B * T; ++n) {
      const auto id = std::int64_t(rng.below(std::uint64_t(2 * V)));
      storage[std::size_t(n / T * (T + 1) + n % T)] = id < V ? id : V / 2;
    }
    view = {storage.data(), {B, T}, {T + 1, 1}};
  }
  [[nodiscard]] std::size_t of(Index token) const { return std::size_t(view(token / view.shape[1], token % view.shape[1])); }
};

template <class T>
class EmbeddingTest : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(EmbeddingTest, Types);

TYPED_TEST(EmbeddingTest, FollowsPlainLoops) {
  using T = TypeParam;
  Context context(2);
  struct Case {
    Index B, T, V, D;
  };
  for (const Case& c : {Case{1, 1, 1, 1}, Case{2, 90, 7, 5}, Case{1, 300, 150, 130}, Case{3, 0, 4, 3}})
    for (Layout layout : testing::kLayouts) {
      Rng rng(3);
      const Ids ids(c.B, c.T, c.V, rng);
      const Array<T, 2> table({c.V, c.D}, layout, rng), set({c.V, c.D}, layout), added({c.V, c.D}, layout, rng);
      const Array<T, 4> y({c.B, c.T, 1, c.D}, layout), dy({c.B, c.T, 1, c.D}, layout, rng);
      const auto rows = table.values(), up = dy.values(), before = added.values();
      std::vector<double> want, want_set(rows.size());
      const auto D = std::size_t(c.D);
      for (Index n = 0; n < c.B * c.T; ++n)
        for (std::size_t d = 0; d < D; ++d) {
          want.push_back(rows[ids.of(n) * D + d]);
          want_set[ids.of(n) * D + d] += up[std::size_t(n) * D + d];
        }
      auto want_added = want_set;
      for (std::size_t i = 0; i < before.size(); ++i) want_added[i] += before[i];
      embedding<T, T>(ids.view, table.view, y.view, context);
      embedding_vjp<T>(ids.view, dy.view, set.view, Accumulate::set, context);
      embedding_vjp<T>(ids.view, dy.view, added.view, Accumulate::add, context);
      EXPECT_EQ(y.values(), want);
      testing::expect_close<T>(set.values(), want_set, 8, "set");
      testing::expect_close<T>(added.values(), want_added, 8, "added");
      EXPECT_TRUE(y.intact() && set.intact() && added.intact());
    }
}

TYPED_TEST(EmbeddingTest, DoesNotDependOnTheNumberOfThreads) {
  using T = TypeParam;
  std::vector<double> first;
  for (int threads : {1, 2, 7}) {
    Context context(threads);
    Rng rng(4);
    const Ids ids(3, 500, 90, rng);
    const Array<T, 4> dy({3, 500, 1, 150}, Layout::gaps, rng);
    const Array<T, 2> dtable({90, 150});
    embedding_vjp<T>(ids.view, dy.view, dtable.view, Accumulate::set, context);
    if (first.empty()) first = dtable.values();
    EXPECT_EQ(dtable.values(), first) << threads << " threads";
  }
}

TEST(EmbeddingErrors, SayWhatWasExpected) {
  Context context(1);
  using tests::error_of;
  const std::int64_t numbers[] = {0, 5, -1};
  const View<const std::int64_t, 2> high{numbers, {1, 2}, {2, 1}}, low{numbers + 1, {2, 1}, {1, 1}},
      zero{numbers, {1, 1}, {1, 1}};
  const Array<float, 2> table({5, 3});
  const Array<float, 4> two({1, 2, 1, 3}), tall({2, 1, 1, 3});
  EXPECT_EQ(error_of([&] { embedding<float, float>(high, table.view, two.view, context); }),
            "embedding: expected ids from 0 to 4, got 5 at [0, 1]");
  EXPECT_EQ(error_of([&] { embedding<float, float>(zero, table.view, two.view, context); }),
            "embedding: expected y [1, 1, 1, 3], got [1, 2, 1, 3]");
  const Array<float, 2> six({6, 3});
  EXPECT_EQ(error_of([&] { embedding_vjp<float>(low, tall.view, six.view, Accumulate::set, context); }),
            "embedding_vjp: expected ids from 0 to 5, got -1 at [1, 0]");
  EXPECT_EQ(error_of([&] { embedding_vjp<float>(low, two.view, six.view, Accumulate::set, context); }),
            "embedding_vjp: expected dy [2, 1, 1, 3], got [1, 2, 1, 3]");
}

TEST(Embedding, WidensWhatIsStoredInFewerBits) {
  Context context(2);
  const std::vector<std::int64_t> ids{2, 0};
  const View<const std::int64_t, 2> view{ids.data(), {1, 2}, {2, 1}};
  std::vector<Bf16> rounded;
  std::vector<F16> halves;
  for (const float x : {1.0f, -2.5f, 0.1f, 3.0f, 1e-6f, 7.0f}) {
    rounded.push_back(to_bf16(x));
    halves.push_back(to_f16(x));
  }
  std::vector<float> y(4);
  const View<float, 4> out = contiguous(y.data(), {1, 2, 1, 2});
  embedding<float>(view, contiguous<const Bf16>(rounded.data(), {3, 2}), out, context);
  EXPECT_EQ(y, (std::vector<float>{to_float(to_bf16(1e-6f)), 7, 1, -2.5f}));
  embedding<float>(view, contiguous<const F16>(halves.data(), {3, 2}), out, context);
  EXPECT_EQ(y, (std::vector<float>{to_float(to_f16(1e-6f)), 7, 1, -2.5f}));
}

}  // namespace
}  // namespace isomer
