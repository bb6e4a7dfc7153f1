// Parameters that are kept in fewer bits than they are computed in.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "isomer/autograd/linear.h"
#include "isomer/base/rng.h"
#include "isomer/nn/init.h"
#include "isomer/nn/parameters.h"
#include "tests/error_of.h"
#include "tests/temporary_folder.h"

namespace isomer {
namespace {
using tests::error_of;

/// Two matrices below each other with a gap between them, a matrix of heads, and a gain.
struct Stored {
  Parameters<float> store;
  Var<float> block, heads;

  explicit Stored(Type type) : store(type) {
    const auto matrix = [](const char* name, std::vector<Index> shape) {
      return ParameterSpec{.name = name, .shape = std::move(shape), .reader = Reader::products};
    };
    block = store.add_block({matrix("q", {3, 5}), matrix("", {2, 5}), matrix("k", {4, 5})});
    heads = store.add(matrix("h", {2, 3, 5})).var;
    store.add({.name = "gain", .shape = {5}});
    initialise(store, 4);
  }
};

TEST(StoredParameters, AreTheRoundedOnes) {
  const Stored plain(Type::f32);
  for (const Type type : {Type::bf16, Type::f16}) {
    Stored stored(type);
    EXPECT_EQ(stored.store.find("gain").storage(), Type::f32) << "others read it";
    for (const char* name : {"q", "k", "h"}) {
      const Parameter<float>& p = stored.store.find(name);
      EXPECT_EQ(p.storage(), type);
      EXPECT_EQ(p.bytes(), 2 * p.var.value.size());
      EXPECT_TRUE(p.var.present());
      EXPECT_FALSE(p.var.wanted()) << "no gradient arrives";
      EXPECT_TRUE(p.gradient().empty());
    }
    const Tensors got = stored.store.tensors(), want = plain.store.tensors();
    for (const auto& [name, x] : got) {
      ASSERT_EQ(x.type(), stored.store.find(name).storage());
      // Drawn in double: rounded once, not by way of float; so one unit of the last place may lie between.
      const Tensor again = want.at(name).cast(x.type()).cast(Type::f64), numbers = x.cast(Type::f64);
      for (Index i = 0; i < x.size(); ++i)
        EXPECT_NEAR(numbers.data<double>()[i], again.data<double>()[i], std::abs(numbers.data<double>()[i]) / 128) << name;
    }
    // From every floating type, and back.
    for (const Type from : {Type::f32, Type::f64, Type::bf16, Type::f16}) {
      Tensors numbers;
      for (const auto& [name, x] : want) numbers.emplace(name, x.cast(from));
      stored.store.assign(numbers);
      const Tensors held = stored.store.tensors();
      const Tensor &k = held.at("k"), rounded = numbers.at("k").cast(type);
      EXPECT_TRUE(std::equal(k.bytes(), k.bytes() + 40, rounded.bytes())) << name_of(from);
    }
    stored.store.freeze([](const std::string&) { return false; });
    EXPECT_FALSE(stored.block.wanted());
  }
}

TEST(StoredParameters, AreReadByProducts) {
  Context context(1);
  std::vector<float> numbers(2 * 7 * 2 * 5);
  Rng rng(8);
  for (float& x : numbers) x = float(rng.normal());
  for (const Type type : {Type::bf16, Type::f16}) {
    Stored stored(type), wide(Type::f32);
    wide.store.assign(stored.store.tensors());
    std::vector<std::vector<float>> seen;
    for (const Stored* weights : {&stored, &wide}) {
      Tape<float> tape(context);
      const Var<float> x = tape.input(contiguous(numbers.data(), {2, 7, 2, 5}), true);
      const Var<float> y = ops::head_linear(tape, x, weights->heads);
      const Var<float> first = Tape<float>::part(x, slice(x.value, 2, 0, 1)), z = ops::linear(tape, first, weights->block);
      auto& all = seen.emplace_back(y.value.data, y.value.data + y.value.size());
      all.insert(all.end(), z.value.data, z.value.data + z.value.size());
      EXPECT_EQ(z.value(1, 6, 0, 3), 0.0f) << "a part without a name is zero";
      tape.backward(y);
      const View<const float, 4> dx = tape.arrived(x);
      all.insert(all.end(), dx.data, dx.data + dx.size());
    }
    EXPECT_EQ(seen[0], seen[1]) << name_of(type);
  }
}

TEST(StoredParameters, MultiplyInBf16WhereAskedTo) {
  Context context(1);
  std::vector<float> numbers(3 * 5), near(numbers.size());
  Rng rng(8);
  for (float& x : numbers) x = float(rng.normal());
  std::ranges::transform(numbers, near.begin(), [](float x) { return to_float(to_bf16(x)); });
  Stored rounding(Type::bf16), plain(Type::bf16);
  rounding.store.multiply_in_bf16();
  const auto product = [&](const Stored& weights, std::vector<float>& rows) {
    Tape<float> tape(context, Record::no);
    const Var<float> y = ops::linear(tape, tape.input(contiguous(rows.data(), {1, 3, 1, 5})), weights.block);
    return std::vector<float>(y.value.data, y.value.data + y.value.size());
  };
  EXPECT_EQ(product(rounding, numbers), product(plain, near)) << "the product of what was rounded before";
  EXPECT_NE(product(rounding, numbers), product(plain, numbers));
  Stored wide(Type::f32), half(Type::f16);
  EXPECT_EQ(error_of([&] { wide.store.multiply_in_bf16(); }),
            "parameters: expected weights in BF16 to multiply in bf16, got F32");
  EXPECT_EQ(error_of([&] { half.store.multiply_in_bf16(); }),
            "parameters: expected weights in BF16 to multiply in bf16, got F16");
}

TEST(StoredParameters, AreOfTypesThatCanBeWidened) {
  EXPECT_EQ(error_of([] { const Parameters<float> store(Type::i64); }),
            "parameters: expected matrices stored as F32, BF16 or F16, got I64");
  EXPECT_EQ(error_of([] { const Parameters<float> store(Type::f64); }),
            "parameters: expected matrices stored as F32, BF16 or F16, got F64");
  EXPECT_EQ(error_of([] { const Parameters<double> store(Type::bf16); }),
            "parameters: expected matrices stored as F64, got BF16");
  Stored stored(Type::bf16);
  Tensors numbers = stored.store.tensors();
  numbers["q"] = Tensor(Type::i64, {3, 5});
  EXPECT_EQ(error_of([&] { stored.store.assign(numbers); }), "parameters: expected q as F32, F64, BF16 or F16, got I64");
}

TEST(StoredParameters, AreSavedAndLoadedAsTheyAre) {
  const tests::TemporaryFolder folder;
  const std::string path = folder.path / "parameters.safetensors";
  Stored stored(Type::bf16), again(Type::bf16);
  stored.store.save(path);
  initialise(again.store, 5);
  again.store.load(path);
  const Tensors want = stored.store.tensors(), got = again.store.tensors();
  for (const auto& [name, x] : want)
    EXPECT_TRUE(std::equal(x.bytes(), x.bytes() + x.size() * bytes_of(x.type()), got.at(name).bytes())) << name;
}

}  // namespace
}  // namespace isomer
