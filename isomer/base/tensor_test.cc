#include "isomer/base/tensor.h"

#include <gtest/gtest.h>

#include "tests/error_of.h"

namespace isomer {
namespace {

TEST(Tensor, HasShapeTypeAndSize) {
  const Tensor t(Type::f64, {2, 3, 4});
  EXPECT_EQ(t.type(), Type::f64);
  EXPECT_EQ(t.size(), 24);
  EXPECT_EQ((Tensor(Type::i64, {3, 0}).size()), 0);
  EXPECT_EQ((Tensor(Type::f32, {}).size()), 1) << "a tensor without axes is one number";
}

TEST(Tensor, IsPresentEvenWhenEmpty) { EXPECT_TRUE((Tensor(Type::f32, {0, 5}).view<float, 2>().present())); }

TEST(Tensor, ViewSharesItsMemory) {
  const Tensor t(Type::f32, {2, 3});
  t.view<float, 2>()(1, 2) = 8;
  EXPECT_EQ(t.data<float>()[5], 8);
}

TEST(Tensor, CloneSharesNothing) {
  const Tensor t(Type::i64, {2});
  t.data<std::int64_t>()[1] = 4;
  const Tensor copy = t.clone();
  t.data<std::int64_t>()[1] = 5;
  EXPECT_EQ(copy.data<std::int64_t>()[1], 4);
  EXPECT_EQ(copy.shape(), t.shape());
}

TEST(Tensor, CastsBetweenFloatingTypes) {
  const Tensor t(Type::f64, {2});
  t.data<double>()[0] = 0.1;
  t.data<double>()[1] = -2;
  const Tensor narrow = t.cast(Type::f32);
  EXPECT_EQ(narrow.data<float>()[0], 0.1f);
  EXPECT_EQ(narrow.cast(Type::f64).data<double>()[1], -2.0);
  EXPECT_EQ(t.cast(Type::f64).data<double>()[0], 0.1);
}

TEST(Tensor, IsFoundByNameTypeAndShape) {
  Tensors all;
  all["a"] = Tensor(Type::f32, {2, 3});
  const auto error = [&](const char* name, Type type, const std::vector<Index>& shape) {
    return tests::error_of([&] { (void)expect_tensor(all, name, type, shape); });
  };
  EXPECT_EQ(error("a", Type::f32, {2, 3}), "no error");
  EXPECT_EQ(error("b", Type::f32, {2, 3}), "tensors: expected b [2, 3], found none");
  EXPECT_EQ(error("a", Type::f64, {2, 3}), "tensors: expected a as F64, got F32");
  EXPECT_EQ(error("a", Type::f32, {6}), "tensors: expected a [6], got [2, 3]");
}

TEST(Type, KnowsItsWidth) {
  EXPECT_EQ(bytes_of(Type::f32), 4);
  EXPECT_EQ(bytes_of(Type::f64), 8);
  EXPECT_EQ(bytes_of(Type::i64), 8);
  EXPECT_EQ(bytes_of(Type::bf16), 2);
  EXPECT_EQ(bytes_of(Type::f16), 2);
  EXPECT_TRUE(floating(Type::f64));
  EXPECT_TRUE(floating(Type::bf16));
  EXPECT_TRUE(computable(Type::f32));
  EXPECT_FALSE(computable(Type::f16));
  EXPECT_FALSE(computable(Type::i64));
  EXPECT_FALSE(floating(Type::i64));
  EXPECT_EQ(type_of<float>, Type::f32);
  EXPECT_EQ(type_of<double>, Type::f64);
  EXPECT_EQ(type_of<std::int64_t>, Type::i64);
  EXPECT_EQ(type_of<Bf16>, Type::bf16);
  EXPECT_EQ(type_of<F16>, Type::f16);
  EXPECT_STREQ(name_of(Type::bf16), "BF16");
  EXPECT_STREQ(name_of(Type::f16), "F16");
}

}  // namespace
}  // namespace isomer
