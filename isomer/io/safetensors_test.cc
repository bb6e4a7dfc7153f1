#include "isomer/io/safetensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "isomer/base/error.h"
#include "isomer/base/rng.h"
#include "tests/error_of.h"
#include "tests/temporary_folder.h"

namespace isomer {
namespace {

namespace fs = std::filesystem;

/// A file of this header and so many data bytes.
std::string file_of(const std::string& header, std::size_t data_bytes) {
  std::string file(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) file[i] = char(header.size() >> (8 * i));
  return file + header + std::string(data_bytes, '\1');
}

Tensors parse(const std::string& file) { return parse_safetensors(std::as_bytes(std::span(file))); }

std::string error(const std::string& file) {
  return tests::error_of([&] { (void)parse(file); });
}

std::string tensor(const std::string& name, const std::string& shape, const std::string& offsets,
                   const std::string& dtype = "F32") {
  return "\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

Tensors sample() {
  Tensors all;
  all["q"] = Tensor(Type::f32, {2, 3});
  all["offsets"] = Tensor(Type::i64, {3});
  all["empty"] = Tensor(Type::f32, {4, 0, 5});
  all["scalar"] = Tensor(Type::f64, {});
  all["rounded"] = Tensor(Type::bf16, {3});
  all["half"] = Tensor(Type::f16, {1, 5});
  std::uint8_t next = 1;
  for (auto& [name, x] : all) std::generate_n(x.bytes(), x.size() * bytes_of(x.type()), [&] { return std::byte(next++); });
  return all;
}

using Folder = tests::TemporaryFolder;

TEST(Safetensors, ComeBackAsTheyWere) {
  const Folder folder;
  const std::string path = folder.path / "a.safetensors";
  const Tensors written = sample();
  write_safetensors(path, written);
  const Tensors read = read_safetensors(path);
  ASSERT_EQ(read.size(), written.size());
  for (const auto& [name, x] : written) {
    EXPECT_EQ(read.at(name).type(), x.type());
    EXPECT_EQ(read.at(name).shape(), x.shape());
    EXPECT_EQ(std::memcmp(read.at(name).bytes(), x.bytes(), std::size_t(x.size() * bytes_of(x.type()))), 0) << name;
  }
  std::ifstream file(path, std::ios::binary);
  std::uint64_t length = 0;
  file.read(reinterpret_cast<char*>(&length), 8);
  EXPECT_EQ(length % 8, 0u);
}

TEST(Safetensors, AreConvertedByACast) {
  const Folder folder;
  const std::string path = folder.path / "a.safetensors";
  const Tensor x(Type::f32, {3});
  std::ranges::copy(std::vector{1.0f, -2.5f, 0.1f}, x.data<float>());
  Tensors written;
  written["bf16"] = x.cast(Type::bf16);
  written["f16"] = x.cast(Type::f16);
  write_safetensors(path, written);
  const Tensors read = read_safetensors(path);
  EXPECT_EQ(read.at("bf16").type(), Type::bf16);
  EXPECT_EQ(read.at("f16").cast(Type::f32).data<float>()[1], -2.5f);
  EXPECT_EQ(read.at("bf16").cast(Type::f64).data<double>()[2], 0.10009765625);
  EXPECT_EQ(read.at("f16").cast(Type::f64).data<double>()[2], 0.0999755859375);
}

TEST(Safetensors, KeepTheirMetadata) {
  const Folder folder;
  const std::string path = folder.path / "a.safetensors";
  const Metadata metadata{{"version", "1"}, {"who", "\"us\""}};
  write_safetensors(path, sample(), metadata);
  const SafetensorsFile file = read_safetensors_file(path);
  EXPECT_EQ(file.metadata, metadata);
  EXPECT_EQ(file.tensors.size(), sample().size());
}

TEST(Safetensors, MayBeEmptyOrHaveMetadata) {
  EXPECT_TRUE(parse(file_of("{}", 0)).empty());
  EXPECT_EQ(parse(file_of(R"({"__metadata__":{"format":"pt","dtype":"x"},)" + tensor("a", "[1]", "[0,4]") + "}   ", 4)).size(),
            1u);
}

TEST(Safetensors, TakeTheirBytesInAnyOrderOfNames) {
  const Tensors all = parse(file_of("{" + tensor("b", "[1]", "[8,12]") + "," + tensor("a", "[1]", "[0,8]", "I64") + "}", 12));
  EXPECT_EQ(all.at("a").data<std::int64_t>()[0], 0x0101010101010101);
}

TEST(Safetensors, OfHostileMakeAreRefused) {
  const std::string a = tensor("a", "[1]", "[0,4]");
  const struct {
    std::string file, text;
  } cases[] = {
      {"", "expected at least 8 bytes, got 0"},
      {"1234567", "expected at least 8 bytes, got 7"},
      {std::string(8, '\xff'), "expected a header of 18446744073709551615 bytes, got a file with 0 left"},
      {file_of("{}", 0).substr(0, 9), "expected a header of 2 bytes, got a file with 1 left"},
      {file_of("", 0), "the header is not JSON, from byte 1"},
      {file_of("{", 0), "the header is not JSON, from byte 2"},
      {file_of("{} x", 0), "the header is not JSON, from byte 4"},
      {file_of("{\"\xff\":1}", 0), "the header is not JSON, from byte 3"},
      {file_of(std::string(100000, '['), 0), "expected an object as header, got an array"},
      {file_of("3", 0), "expected an object as header, got a number"},
      {file_of(R"({"a":[]})", 0), "expected an object for a, got an array"},
      {file_of(R"({"a":null})", 0), "expected an object for a, got null"},
      {file_of(R"({"a":{"dtype":{}}})", 0), "expected no such thing as an object in dtype of a"},
      {file_of(R"({"a":{"shape":[[]]}})", 0), "expected no such thing as an array in shape of a"},
      {file_of(R"({"a":{"shape":[{}]}})", 0), "expected no such thing as an object in shape of a"},
      {file_of(R"({"a":{"shape":3}})", 0), "expected no such thing as a number in shape of a"},
      {file_of(R"({"a":{"shape":["3"]}})", 0), "expected no such thing as a text in shape of a"},
      {file_of(R"({"a":{"shape":[true]}})", 0), "expected no such thing as true or false in shape of a"},
      {file_of(R"({"a":{"dtype":[]}})", 0), "expected no such thing as an array in dtype of a"},
      {file_of(R"({"__metadata__":{"x":1}})", 0), "expected no such thing as a number in x of __metadata__"},
      {file_of(R"({"a":{}})", 0), "expected a dtype for tensor a, found none"},
      {file_of(R"({"a":{"dtype":"F32"}})", 0), "expected a shape for tensor a, found none"},
      {file_of(R"({"a":{"dtype":"F32","shape":[]}})", 0), "expected a data_offsets for tensor a, found none"},
      {file_of(R"({"a":{"type":"F32"}})", 0), "expected dtype, shape or data_offsets for tensor a, got type"},
      {file_of(R"({"a":{"dtype":"F32","dtype":"F32"}})", 0), "field dtype of a is there twice"},
      {file_of("{" + a + "," + a + "}", 4), "tensor a is there twice"},
      {file_of("{" + tensor("a", "[1]", "[0,4]", "F32X") + "}", 4),
       "expected dtype F32, F64, BF16, F16 or I64 for tensor a, got F32X"},
      {file_of("{" + tensor("a", "[1]", "[0,4]", "") + "}", 4), "expected dtype F32, F64, BF16, F16 or I64 for tensor a, got "},
      {file_of("{" + tensor("a", "[1]", "[0,4]", "I32") + "}", 4),
       "expected dtype F32, F64, BF16, F16 or I64 for tensor a, got I32"},
      {file_of("{" + tensor("a", "[1]", "[0,4]", "BF16") + "}", 4), "expected 2 bytes for tensor a, got 4"},
      {file_of("{" + tensor("a", "[1]", "[0,4]", "F16") + "}", 4), "expected 2 bytes for tensor a, got 4"},
      {file_of("{" + tensor("a", "[-1]", "[0,4]") + "}", 4), "expected no such thing as a negative number in shape of a"},
      {file_of("{" + tensor("a", "[1.0]", "[0,4]") + "}", 4),
       "expected no such thing as a number that is not whole in shape of a"},
      {file_of("{" + tensor("a", "[4294967296,4294967296]", "[0,4]") + "}", 4), "the shape of tensor a is too large"},
      {file_of("{" + tensor("a", "[18446744073709551615]", "[0,4]") + "}", 4), "the shape of tensor a is too large"},
      {file_of("{" + tensor("a", "[0,4611686018427387904,4]", "[0,0]") + "}", 0), "the shape of tensor a is too large"},
      {file_of("{" + tensor("a", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[0,4]") + "}", 4),
       "expected at most 32 numbers in shape of tensor a"},
      {file_of("{" + tensor("a", "[1]", "[4,0]") + "}", 4), "expected data_offsets in order for tensor a, got 4 and 0"},
      {file_of("{" + tensor("a", "[1]", "[0]") + "}", 4), "expected two data_offsets for tensor a, got 1"},
      {file_of("{" + tensor("a", "[2]", "[0,4]") + "}", 4), "expected 8 bytes for tensor a, got 4"},
      {file_of("{" + a + "}", 3), "tensor a ends at byte 4 of 3; is the file truncated?"},
      {file_of("{" + a + "}", 5), "there are 1 bytes behind the last tensor"},
      {file_of("{" + a + "," + tensor("b", "[1]", "[3,7]") + "}", 7), "tensor b overlaps another"},
      {file_of("{" + a + "," + tensor("b", "[1]", "[5,9]") + "}", 9), "there is a gap of 1 bytes before tensor b"},
      {file_of("{" + tensor(std::string(1025, 'x'), "[1]", "[0,4]") + "}", 4),
       "expected names of at most 1024 bytes, got one of 1025"},
  };
  for (const auto& c : cases) EXPECT_EQ(error(c.file), "safetensors: " + c.text);
}

TEST(Safetensors, WithAHugeHeaderAreRefusedBeforeItIsRead) {
  const Folder folder;
  const std::string path = folder.path / "huge";
  std::ofstream(path, std::ios::binary) << std::string("\x01\xe1\xf5\x05\0\0\0\0", 8);
  fs::resize_file(path, 200'000'000);  // sparse
  EXPECT_EQ(tests::error_of([&] { (void)read_safetensors(path); }),
            "cannot read " + path + ": safetensors: expected a header of at most 100000000 bytes, got 100000001");
}

TEST(Safetensors, ThatCannotBeReadSayWhy) {
  const auto reason = [](const std::string& path) { return tests::error_of([&] { (void)read_safetensors(path); }); };
  EXPECT_EQ(reason("/nowhere/x"), "cannot read /nowhere/x: No such file or directory");
  EXPECT_EQ(reason("/dev"), "cannot read /dev: expected a regular file");
  EXPECT_EQ(reason("/dev/zero"), "cannot read /dev/zero: expected a regular file");
}

TEST(Safetensors, RefuseNamesThatJsonCannotHold) {
  Tensors all;
  all["\xff"] = Tensor(Type::f32, {});
  EXPECT_THROW(write_safetensors("/dev/null", all), Error);
}

TEST(Safetensors, SurviveMutations) {
  const Folder folder;
  const std::string path = folder.path / "seed";
  write_safetensors(path, sample());
  std::ifstream in(path, std::ios::binary);
  const std::string seed{std::istreambuf_iterator<char>(in), {}};
  Rng rng(20240501);
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string file = seed;
    for (std::uint64_t edits = 1 + rng.below(4); edits > 0; --edits) {
      const std::size_t at = rng.below(file.size() + 1);
      switch (rng.below(5)) {
        case 0: file.resize(at); break;
        case 1: file.insert(at, 1, char(rng.bits())); break;
        case 2:  // digits keep the header JSON, so that the checks behind the parser are reached
          if (at < file.size() && std::isdigit(std::uint8_t(file[at])) != 0) file[at] = char('0' + rng.below(10));
          break;
        case 3:
          if (at < file.size()) file.erase(at, rng.below(9));
          break;
        default:
          if (at < file.size()) file[at] = char(file[at] ^ (1 << rng.below(8)));
      }
      if (file.empty()) break;
    }
    try {
      for (const auto& [name, x] : parse(file)) ASSERT_LE(std::size_t(x.size()), file.size()) << "round " << round;
      ++accepted;
    } catch (const Error&) {
    }
  }
  EXPECT_GT(accepted, 100) << "mutations of the numbers leave a valid file";
  EXPECT_LT(accepted, 19000);
}

}  // namespace
}  // namespace isomer
