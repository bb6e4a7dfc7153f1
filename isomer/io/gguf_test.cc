#include "isomer/io/gguf.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <thread>

#include "isomer/io/bytes.h"
#include "isomer/io/gguf_header.h"
#include "isomer/io/safetensors_map.h"
#include "isomer/io/text.h"
#include "tests/error_of.h"
#include "tests/temporary_folder.h"

namespace isomer {
namespace {

namespace fs = std::filesystem;
using tests::error_of;

const fs::path kGoldens = fs::path(ISOMER_SOURCE_DIR) / "tests" / "goldens" / "gguf";

/// The bytes of a file, piece by piece.
struct Bytes {
  std::string all;

  template <class T>
  Bytes& number(T value) {
    all.append(reinterpret_cast<const char*>(&value), sizeof(T));
    return *this;
  }
  Bytes& u32(std::uint32_t value) { return number(value); }
  Bytes& u64(std::uint64_t value) { return number(value); }
  Bytes& string(const std::string& text) {
    u64(text.size());
    all += text;
    return *this;
  }
  static Bytes header(std::uint64_t tensors, std::uint64_t keys, std::uint32_t version = 3) {
    Bytes bytes;
    bytes.all = "GGUF";
    return bytes.u32(version).u64(tensors).u64(keys);
  }
  Bytes& tensor(const std::string& name, const std::vector<std::uint64_t>& dims, std::uint32_t type, std::uint64_t offset) {
    string(name).u32(std::uint32_t(dims.size()));
    for (const std::uint64_t size : dims) u64(size);
    return u32(type).u64(offset);
  }
  /// Up to the place of the first tensor, and so many bytes behind it.
  Bytes& data(std::size_t count, std::size_t alignment = 32) {
    all.resize((all.size() + alignment - 1) / alignment * alignment);
    for (std::size_t i = 0; i < count; ++i) all += char(i);
    return *this;
  }
};

struct Folder : tests::TemporaryFolder {
  [[nodiscard]] std::string file() const { return path / "a.gguf"; }
  [[nodiscard]] Gguf open(const Bytes& bytes) const {
    write_text(file(), bytes.all);
    return Gguf(file());
  }
  /// What is wrong with the file, behind its path.
  [[nodiscard]] std::string problem(const Bytes& bytes) const {
    const std::string text = error_of([&] { (void)open(bytes); }), start = "cannot read " + file() + ": gguf: ";
    return text.starts_with(start) ? text.substr(start.size()) : "without a path: " + text;
  }
};

TEST(Gguf, NumbersAreThoseOfThePackageBitForBit) {
  const Gguf file(kGoldens / "types.gguf");
  const MappedSafetensors expected(kGoldens / "types.safetensors");
  int compared = 0;
  for (const std::string& name : expected.names()) {
    const Tensor want = expected.read(name), got = file.read(name, Type::f32);
    ASSERT_EQ(got.shape(), want.shape()) << name;
    EXPECT_EQ(std::memcmp(got.bytes(), want.bytes(), std::size_t(want.size()) * 4), 0) << name;
    for (const Type type : {Type::bf16, Type::f16, Type::f64}) {
      const Tensor other = file.read(name, type), rounded = want.cast(type);
      EXPECT_EQ(std::memcmp(other.bytes(), rounded.bytes(), std::size_t(want.size() * bytes_of(type))), 0)
          << name << " as " << name_of(type);
    }
    ++compared;
  }
  EXPECT_EQ(compared, 12);
  EXPECT_EQ(file.shape("plain.F32"), (std::vector<Index>{2, 3, 5}));
  EXPECT_EQ(name_of(file.type("bits.Q4_K")), "Q4_K");
  EXPECT_EQ(file.names().size(), 13U);
  EXPECT_TRUE(file.contains("other"));
  EXPECT_FALSE(file.contains("others"));
}

TEST(Gguf, MetadataOfEveryKind) {
  const Gguf file(kGoldens / "types.gguf");
  EXPECT_EQ(file.version(), 3U);
  EXPECT_EQ(file.text("general.architecture"), "golden");
  const std::vector<std::pair<std::string, std::vector<std::int64_t>>> whole = {
      {"u8", {0, 255}},
      {"i8", {-128, 127}},
      {"u16", {65535}},
      {"i16", {-32768, 1}},
      {"u32", {4294967295}},
      {"i32", {-2147483648, 3}},
      {"u64", {std::numeric_limits<std::int64_t>::max()}},
      {"i64", {std::numeric_limits<std::int64_t>::min()}},
      {"bool", {1, 0}}};
  for (const auto& [name, values] : whole) {
    EXPECT_EQ(file.integers("many." + name), values) << name;
    EXPECT_EQ(file.integer("one." + name), values.back()) << name;
    EXPECT_EQ(file.number("one." + name), double(values.back())) << name;
    EXPECT_EQ(file.kind("one." + name), name);
    EXPECT_EQ(file.kind("many." + name), "an array of " + name);
  }
  EXPECT_EQ(file.numbers("many.f32"), (std::vector<double>{0.5, -1.25}));
  EXPECT_EQ(file.number("one.f32"), -1.25);
  EXPECT_EQ(file.numbers("many.f64"), std::vector<double>{1e300});
  EXPECT_EQ(file.number("one.f64"), 1e300);
  EXPECT_FALSE(file.flag("one.bool"));
  EXPECT_EQ(file.texts("many.string"), (std::vector<std::string>{"a", "", "höß\n"}));
  EXPECT_EQ(file.text("one.string"), "höß\n");
  EXPECT_EQ(file.kind("nested"), "an array of array");
  EXPECT_TRUE(file.has("nested"));
  EXPECT_FALSE(file.has("nest"));
  EXPECT_EQ(file.keys().size(), 2U + 24 + 1);
}

TEST(Gguf, ValuesOfAnotherKindAreRefused) {
  const fs::path path = kGoldens / "types.gguf";
  const Gguf file(path);
  const std::string start = "cannot read " + path.string() + ": gguf: ";
  EXPECT_EQ(error_of([&] { (void)file.text("one.u8"); }), start + "expected one.u8 as string, got u8");
  EXPECT_EQ(error_of([&] { (void)file.integer("one.f32"); }), start + "expected one.f32 as whole numbers, got f32");
  EXPECT_EQ(error_of([&] { (void)file.integers("many.string"); }),
            start + "expected many.string as whole numbers, got an array of string");
  EXPECT_EQ(error_of([&] { (void)file.number("one.string"); }), start + "expected one.string as numbers, got string");
  EXPECT_EQ(error_of([&] { (void)file.flag("one.u8"); }), start + "expected one.u8 as bool, got u8");
  EXPECT_EQ(error_of([&] { (void)file.integer("many.u8"); }), start + "expected many.u8 as one value, got an array of u8");
  EXPECT_EQ(error_of([&] { (void)file.integers("one.u8"); }), start + "expected one.u8 as an array, got u8");
  EXPECT_EQ(error_of([&] { (void)file.numbers("nested"); }), start + "expected nested as numbers, got an array of array");
  EXPECT_EQ(error_of([&] { (void)file.text("one.strin"); }), start + "there is no key one.strin, did you mean one.string?");
  const Folder folder;
  const Gguf large = folder.open(Bytes::header(0, 1).string("k").u32(10).u64(std::uint64_t{1} << 63));
  EXPECT_EQ(error_of([&] { (void)large.integer("k"); }),
            "cannot read " + folder.file() + ": gguf: expected k as whole numbers below 2^63, got 9223372036854775808");
  EXPECT_EQ(large.number("k"), 0x1p63);
}

TEST(Gguf, TensorsOfAnotherTypeAreRefusedWhenAskedFor) {
  const fs::path path = kGoldens / "types.gguf";
  const Gguf file(path);
  const std::string start = "cannot read " + path.string() + ": gguf: ";
  EXPECT_EQ(error_of([&] { (void)file.read("other", Type::f32); }),
            start + "expected F32, F64, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K or Q6_K for tensor other, got Q2_K");
  EXPECT_EQ(error_of([&] { (void)file.view("bits.Q4_0"); }), start + "expected plain numbers for tensor bits.Q4_0, got Q4_0");
  EXPECT_EQ(error_of([&] { (void)file.read("bits.Q4_0", Type::i64); }), start + "expected I64 for tensor bits.Q4_0, got Q4_0");
  EXPECT_EQ(error_of([&] { (void)file.view("bits.Q4_9"); }), start + "there is no tensor bits.Q4_9, did you mean bits.Q4_0?");
  Tensor small(Type::f32, {2});
  EXPECT_EQ(error_of([&] { file.read("weights.Q8_0", mutable_view_of(small)); }),
            start + "expected a dense array of [2, 32] for tensor weights.Q8_0, got [2]");
  const Folder folder;
  const Gguf unknown = folder.open(Bytes::header(1, 0).tensor("x", {3}, 99, 0).data(0));
  EXPECT_EQ(unknown.names(), std::vector<std::string>{"x"});
  EXPECT_EQ(error_of([&] { (void)unknown.view("x"); }),
            "cannot read " + folder.file() + ": gguf: expected plain numbers for tensor x, got type 99");
  const Gguf whole = folder.open(Bytes::header(1, 0).tensor("n", {2}, 27, 0).data(16));
  EXPECT_EQ(whole.view("n").type, Type::i64);
  EXPECT_EQ(error_of([&] { (void)whole.read("n", Type::f32); }),
            "cannot read " + folder.file() + ": gguf: expected floating numbers for tensor n, got I64");
}

TEST(Gguf, PlainNumbersAreLookedAtInTheFile) {
  const Folder folder;
  Bytes bytes = Bytes::header(2, 0, 2).tensor("x", {3, 2}, 0, 0).tensor("h", {4}, 30, 32);
  auto first = std::make_unique<Gguf>(folder.open(bytes.data(40)));
  EXPECT_EQ(first->version(), 2U);
  EXPECT_EQ(first->shape("x"), (std::vector<Index>{2, 3}));
  EXPECT_EQ(first->bytes(), 24U + 8);
  const TensorView x = first->view("x");
  const Gguf copy = *first;
  first.reset();
  fs::remove(folder.file());
  EXPECT_EQ(std::memcmp(x.data, "\0\1\2\3\4\5\6\7", 8), 0) << "even when the file is gone from its folder";
  EXPECT_EQ((copy.view("h").view<const Bf16, 1>()(0).bits), 0x2120);
}

TEST(Gguf, WhatIsNotAlignedIsCopied) {
  const Folder folder;
  Bytes bytes = Bytes::header(2, 1).string("general.alignment").u32(4).u32(1);
  const Gguf file = folder.open(bytes.tensor("a", {1}, 30, 0).tensor("b", {2}, 0, 3).data(11, 1));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      const TensorView b = file.view("b");
      EXPECT_EQ(std::uintptr_t(b.data) % 4, 0U);
      EXPECT_EQ(std::memcmp(b.data, "\3\4\5\6\7\10\11\12", 8), 0);
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(Gguf, FilesWithoutTensorsOrNumbers) {
  const Folder folder;
  EXPECT_TRUE(folder.open(Bytes::header(0, 0)).names().empty());
  const Gguf empty = folder.open(Bytes::header(2, 0).tensor("none", {32, 0}, 2, 0).tensor("one", {}, 0, 0).data(4));
  EXPECT_EQ(empty.read("none", Type::f32).shape(), (std::vector<Index>{0, 32}));
  EXPECT_EQ(empty.read("one", Type::f32).size(), 1);
}

TEST(Gguf, HostileHeadersAreRefused) {
  const Folder folder;
  constexpr std::uint64_t kHuge = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(folder.problem({}), "expected 4 bytes for the magic number at byte 0, got 0; is the file truncated?");
  EXPECT_EQ(folder.problem({"GGML1234"}), "expected a file that begins with GGUF, got another");
  EXPECT_EQ(folder.problem(Bytes::header(0, 0, 1)), "expected version 2 or 3, got 1");
  EXPECT_EQ(folder.problem(Bytes::header(0, 0, 3U << 24)), "expected a little-endian file, got a big-endian one");
  EXPECT_EQ(folder.problem(Bytes::header(kHuge, 0)),
            "expected 8 bytes for the name of a tensor at byte 24, got 0; is the file truncated?");
  EXPECT_EQ(folder.problem(Bytes::header(0, kHuge)), "expected 8 bytes for a key at byte 24, got 0; is the file truncated?");
  EXPECT_EQ(folder.problem(Bytes::header(0, 1).u64(kHuge)),
            "expected 18446744073709551615 bytes for a key at byte 32, got 0; is the file truncated?");
  EXPECT_EQ(folder.problem(Bytes::header(0, 1).string("")), "expected a key of 1 to 1024 bytes, got one of 0");
  EXPECT_EQ(folder.problem(Bytes::header(0, 1).string(std::string(1025, 'x'))),
            "expected a key of 1 to 1024 bytes, got one of 1025");
  for (const char* name : {"a\nb", "\xff", "\x7f"})
    EXPECT_EQ(folder.problem(Bytes::header(0, 1).string(name)),
              "expected a key in UTF-8 without control characters, got another at byte 32");
  EXPECT_EQ(folder.problem(Bytes::header(0, 1).string("k").u32(13)), "expected a value of kind 0 to 12 for k, got 13");
  EXPECT_EQ(folder.problem(Bytes::header(0, 1).string("k").u32(7).number('\2')), "expected 0 or 1 for k, got another byte");
  EXPECT_EQ(folder.problem(Bytes::header(0, 1).string("k").u32(8).u64(9)),
            "expected 9 bytes for k at byte 45, got 0; is the file truncated?");
  for (const std::uint32_t kind : {0U, 8U, 9U, 12U})
    EXPECT_TRUE(folder.problem(Bytes::header(0, 1).string("k").u32(9).u32(kind).u64(kHuge))
                    .ends_with(" for k inside of the file; is it truncated?"));
  Bytes nested = Bytes::header(0, 1).string("k").u32(9);
  for (int i = 0; i < 100; ++i) nested.u32(9).u64(1);
  EXPECT_EQ(folder.problem(nested), "expected arrays at most 4 deep for k");
  EXPECT_EQ(folder.problem(Bytes::header(0, 2).string("k").u32(0).number('\0').string("k").u32(0).number('\0')),
            "expected different keys, got k twice");
  for (const std::uint32_t alignment : {0U, 3U, 1U << 21})
    EXPECT_EQ(folder.problem(Bytes::header(0, 1).string("general.alignment").u32(4).u32(alignment)),
              "expected a power of two up to 1048576 for general.alignment, got another");
  EXPECT_EQ(folder.problem(Bytes::header(0, 1).string("general.alignment").u32(9).u32(4).u64(0)),
            "expected a power of two up to 1048576 for general.alignment, got another");
}

TEST(Gguf, HostileTensorsAreRefused) {
  const Folder folder;
  constexpr std::uint64_t kHuge = std::numeric_limits<std::uint64_t>::max(), kLarge = std::uint64_t{1} << 62;
  const auto one = [&](const std::vector<std::uint64_t>& dims, std::uint32_t type, std::uint64_t offset, std::size_t bytes) {
    return folder.problem(Bytes::header(1, 0).tensor("x", dims, type, offset).data(bytes));
  };
  EXPECT_EQ(one({4}, 0, 0, 12), "tensor x has 16 bytes from byte 0 of 12; is the file truncated?");
  EXPECT_EQ(one({4}, 0, 32, 47), "tensor x has 16 bytes from byte 32 of 47; is the file truncated?");
  EXPECT_EQ(one({4}, 0, 64, 16), "tensor x has 16 bytes from byte 64 of 16; is the file truncated?");
  EXPECT_EQ(one({0}, 0, 64, 16), "tensor x has 0 bytes from byte 64 of 16; is the file truncated?");
  EXPECT_EQ(one({4}, 0, kHuge - 31, 16), "tensor x has 16 bytes from byte 18446744073709551584 of 16; is the file truncated?");
  EXPECT_EQ(one({4}, 0, 16, 64), "expected tensor x at a multiple of 32 bytes, got 16");
  EXPECT_EQ(one({kLarge}, 0, 0, 16), "the shape of tensor x is too large");
  EXPECT_EQ(one({kHuge}, 0, 0, 16), "the shape of tensor x is too large");
  EXPECT_EQ(one({kLarge, 4}, 24, 0, 16), "the shape of tensor x is too large");
  EXPECT_EQ(one({kLarge, 0, 4}, 24, 0, 16), "the shape of tensor x is too large");
  EXPECT_EQ(one({1, 1, 1, 1, 1, 1, 1, 1, 1}, 0, 0, 16), "expected tensor x with at most 8 axes, got 9");
  EXPECT_EQ(one({48}, 2, 0, 64), "expected rows of a multiple of 32 numbers for tensor x of Q4_0, got 48");
  EXPECT_EQ(one({64}, 12, 0, 64), "expected rows of a multiple of 256 numbers for tensor x of Q4_K, got 64");
  EXPECT_EQ(folder.problem(Bytes::header(2, 0).tensor("x", {1}, 0, 0).tensor("x", {1}, 0, 0).data(4)),
            "expected different tensors, got x twice");
}

TEST(Gguf, EveryShorterFileIsRefused) {
  const auto whole = read_bytes(kGoldens / "types.gguf", 1 << 20);
  // The last tensor is padded.
  for (std::size_t size = 0; size + 64 < whole.size(); ++size)
    EXPECT_NE(error_of([&] { (void)parse_gguf(std::as_bytes(std::span(whole.data(), size))); }).find("; is "), std::string::npos)
        << size;
}

TEST(Gguf, AFileThatIsCutShortIsNoticed) {
  const Folder folder;
  const Gguf file = folder.open(Bytes::header(1, 0).tensor("x", {4096}, 0, 0).data(16384));
  const auto size = fs::file_size(folder.file());
  fs::resize_file(folder.file(), 8192);
  EXPECT_EQ(error_of([&] { (void)file.view("x"); }),
            "cannot read " + folder.file() + ": the file became shorter: expected " + std::to_string(size) + " bytes, got 8192");
  EXPECT_EQ(error_of([&] { const Gguf none("/nowhere/x"); }), "cannot read /nowhere/x: No such file or directory");
  EXPECT_EQ(error_of([&] { const Gguf none("/dev/zero"); }), "cannot read /dev/zero: expected a regular file");
}

}  // namespace
}  // namespace isomer
