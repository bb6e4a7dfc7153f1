#include "isomer/base/tensor_view.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/error_of.h"

namespace isomer {
namespace {

Tensor counting(std::vector<Index> shape) {
  Tensor x(Type::f32, std::move(shape));
  std::iota(x.data<float>(), x.data<float>() + x.size(), 0.0f);
  return x;
}

TEST(TensorView, LooksAtATensor) {
  Tensor x = counting({2, 3, 4});
  const TensorView view = view_of(x);
  EXPECT_TRUE(view.present());
  EXPECT_FALSE(TensorView{}.present());
  EXPECT_EQ(view.size(), 24);
  EXPECT_EQ(view.dims(), x.shape());
  EXPECT_EQ((view.view<const float, 3>()(1, 2, 3)), 23.0f);
  mutable_view_of(x).view<float, 3>()(1, 2, 3) = 5;
  EXPECT_EQ((TensorView(mutable_view_of(x)).view<const float, 3>()(1, 2, 3)), 5.0f);
}

TEST(TensorView, HasALimitOfAxes) {
  EXPECT_EQ(tests::error_of([] {
              (void)view_of(Tensor(Type::f32, {1, 1, 1, 1, 1, 1, 1, 1, 2}));
            }),
            "tensors: expected at most 8 axes, got [1, 1, 1, 1, 1, 1, 1, 1, 2]");
}

TEST(TensorView, IsCopiedWithAnyStrides) {
  const Tensor x = counting({2, 3, 4});
  // The middle axis backwards, every other element of the last.
  TensorView from = view_of(x);
  from.data = reinterpret_cast<const std::byte*>(x.data<float>() + 8);
  from.shape = {2, 3, 2};
  from.stride = {12, -4, 2};
  Tensor y(Type::f64, {2, 3, 2});
  copy_numbers(from, mutable_view_of(y));
  for (Index i = 0; i < 2; ++i)
    for (Index j = 0; j < 3; ++j)
      for (Index k = 0; k < 2; ++k) EXPECT_EQ((y.view<double, 3>()(i, j, k)), double(12 * i + 4 * (2 - j) + 2 * k));
  // One number to all, into every other place.
  Tensor z(Type::bf16, {3, 2});
  std::fill_n(z.bytes(), 12, std::byte{0});
  MutableTensorView to = mutable_view_of(z);
  to.rank = 1;
  to.stride[0] = 2;
  const float one = 1;
  copy_numbers({.type = Type::f32, .data = reinterpret_cast<const std::byte*>(&one), .rank = 1, .shape = {3}, .stride = {0}}, to);
  for (Index i = 0; i < 6; ++i) EXPECT_EQ(to_float(z.data<Bf16>()[i]), i % 2 == 0 ? 1.0f : 0.0f);
}

TEST(TensorView, OfNoAxesIsOneNumber) {
  Tensor x(Type::i64, {}), y(Type::i64, {});
  x.data<std::int64_t>()[0] = 7;
  copy_numbers(view_of(x), mutable_view_of(y));
  EXPECT_EQ(y.data<std::int64_t>()[0], 7);
  const Tensor empty(Type::f16, {0, 3});
  EXPECT_EQ(empty.cast(Type::f32).size(), 0);
}

TEST(TensorView, AreNamedLikeTheirTensors) {
  Tensors all;
  all.emplace("a", counting({2}));
  const TensorViews views = views_of(all);
  ASSERT_EQ(views.size(), 1U);
  EXPECT_EQ(views.at("a").data, all.at("a").bytes());
}

}  // namespace
}  // namespace isomer
