#include "isomer/io/safetensors_map.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <numeric>
#include <thread>

#include "isomer/io/text.h"
#include "tests/error_of.h"
#include "tests/temporary_folder.h"

namespace isomer {
namespace {

namespace fs = std::filesystem;
using tests::error_of;

Tensor counting(Type type, std::vector<Index> shape, float from = 0) {
  const Tensor x(Type::f32, std::move(shape));
  std::iota(x.data<float>(), x.data<float>() + x.size(), from);
  return x.cast(type);
}

void write_file(const fs::path& path, const std::string& header, std::size_t data_bytes) {
  std::string file(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) file[i] = char(header.size() >> (8 * i));
  file += header;
  for (std::size_t i = 0; i < data_bytes; ++i) file += char(i);
  write_text(path, file);
}

std::string error_of_open(const fs::path& path) {
  return error_of([&] { const MappedSafetensors opened(path); });
}

struct Folder : tests::TemporaryFolder {
  [[nodiscard]] std::string file(const std::string& name) const { return path / name; }
  void index(const std::string& weight_map) const {
    write_text(file("model.safetensors.index.json"), R"({"metadata":{"total_size":1},"weight_map":)" + weight_map + "}");
  }
  /// a and b in the first file, c in the second.
  void shards() const {
    Tensors first, second;
    first["a"] = counting(Type::f32, {2, 2});
    first["b"] = counting(Type::bf16, {3}, 5);
    second["c"] = counting(Type::f16, {2}, 7);
    write_safetensors(file("m-1.safetensors"), first, {{"format", "pt"}});
    write_safetensors(file("m-2.safetensors"), second, {{"format", "pt"}});
    index(R"({"a":"m-1.safetensors","b":"m-1.safetensors","c":"m-2.safetensors"})");
  }
};

TEST(MappedSafetensors, LookIntoTheFile) {
  const Folder folder;
  Tensors written;
  written["x"] = counting(Type::f32, {2, 3});
  written["h"] = counting(Type::bf16, {4}, 1);
  written["n"] = Tensor(Type::i64, {1});
  written.at("n").data<std::int64_t>()[0] = -3;
  written["empty"] = Tensor(Type::f32, {0, 2});
  write_safetensors(folder.file("a.safetensors"), written, {{"who", "us"}});
  const MappedSafetensors mapped(folder.path / "a.safetensors");
  EXPECT_EQ(mapped.names(), (std::vector<std::string>{"empty", "h", "n", "x"}));
  EXPECT_TRUE(mapped.contains("x"));
  EXPECT_FALSE(mapped.contains("y"));
  EXPECT_EQ(mapped.metadata(), (Metadata{{"who", "us"}}));
  EXPECT_EQ(mapped.bytes(), 6U * 4 + 4 * 2 + 8);
  EXPECT_EQ((mapped.view("x").view<const float, 2>()(1, 2)), 5.0f);
  EXPECT_EQ(mapped.read("h").type(), Type::bf16);
  EXPECT_EQ(mapped.read("h", Type::f64).data<double>()[3], 4.0);
  EXPECT_EQ(mapped.read("n").data<std::int64_t>()[0], -3);
  EXPECT_EQ(mapped.view("empty").size(), 0);
  EXPECT_EQ(mapped.views().size(), 4U);
  EXPECT_EQ(error_of([&] { (void)mapped.view("y"); }), "safetensors: there is no tensor y");
  EXPECT_EQ(error_of([&] { (void)mapped.read("n", Type::f32); }), "safetensors: expected tensor n as F32, got I64");
}

TEST(MappedSafetensors, LiveAsLongAsACopy) {
  const Folder folder;
  write_safetensors(folder.file("a"), {});
  auto first = std::make_unique<MappedSafetensors>([&] {
    Tensors one;
    one.emplace("x", counting(Type::f32, {3}));
    write_safetensors(folder.file("a"), one);
    return fs::path(folder.file("a"));
  }());
  const TensorView x = first->view("x");
  const MappedSafetensors copy = *first;
  first.reset();
  fs::remove(folder.file("a"));
  EXPECT_EQ((x.view<const float, 1>()(2)), 2.0f) << "even when the file is gone from its folder";
}

TEST(MappedSafetensors, CopyWhatIsNotAligned) {
  const Folder folder;
  // A header of odd length, and numbers after an odd number of halves.
  const std::string header = R"({"a":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]},)"
                             R"("b":{"dtype":"F32","shape":[2],"data_offsets":[2,10]}})";
  write_file(folder.path / "a.safetensors", header.size() % 2 == 0 ? header + " " : header, 10);
  const MappedSafetensors mapped(folder.path / "a.safetensors");
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      const TensorView b = mapped.view("b");
      EXPECT_EQ(std::uintptr_t(b.data) % 4, 0U);
      EXPECT_EQ(std::memcmp(b.data, "\2\3\4\5\6\7\10\11", 8), 0);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ((mapped.view("a").view<const Bf16, 1>()(0).bits), 0x0100);
}

TEST(MappedSafetensors, RefuseOtherTypesOnlyWhenAskedFor) {
  const Folder folder;
  write_file(folder.path / "a",
             R"({"mask":{"dtype":"BOOL","shape":[3],"data_offsets":[4,7]},)"
             R"("x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
             7);
  const MappedSafetensors mapped(folder.path / "a");
  EXPECT_EQ(mapped.names().size(), 2U);
  EXPECT_EQ(mapped.views().size(), 1U);
  EXPECT_EQ(
      error_of([&] { (void)mapped.view("mask"); }),
      "cannot read " + folder.file("a") + ": safetensors: expected dtype F32, F64, BF16, F16 or I64 for tensor mask, got BOOL");
  write_file(folder.path / "a", R"({"mask":{"dtype":"BOOL","shape":[3],"data_offsets":[0,4]}})", 4);
  EXPECT_EQ(error_of_open(folder.path / "a"),
            "cannot read " + folder.file("a") + ": safetensors: expected 3 bytes for tensor mask, got 4");
  write_file(folder.path / "a", R"({"x":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]}})", 4);
  EXPECT_EQ(error_of([&] { (void)MappedSafetensors(folder.path / "a").view("x"); }),
            "cannot read " + folder.file("a") + ": tensors: expected at most 8 axes, got [1, 1, 1, 1, 1, 1, 1, 1, 1]");
}

TEST(MappedSafetensors, NoticeAFileThatIsCutShort) {
  const Folder folder;
  Tensors one;
  one.emplace("x", counting(Type::f32, {5000}));
  const std::string path = folder.file("a.safetensors"), start = "cannot read " + path + ": ";
  write_safetensors(path, one);
  const auto size = fs::file_size(path);
  const MappedSafetensors mapped(path);
  fs::resize_file(path, size - 8192);
  EXPECT_EQ(error_of([&] { (void)mapped.view("x"); }),
            start + "the file became shorter: expected " + std::to_string(size) + " bytes, got " + std::to_string(size - 8192));
  EXPECT_EQ(error_of_open(path), start + "safetensors: tensor x ends at byte 20000 of 11808; is the file truncated?");
  fs::resize_file(path, 5);
  EXPECT_EQ(error_of_open(path), start + "safetensors: expected at least 8 bytes, got 5");
  fs::resize_file(path, 0);
  EXPECT_EQ(error_of_open(path), start + "safetensors: expected at least 8 bytes, got 0");
}

TEST(MappedSafetensors, ThatCannotBeReadSayWhy) {
  EXPECT_EQ(error_of_open("/nowhere/x"), "cannot read /nowhere/x: No such file or directory");
  EXPECT_EQ(error_of_open("/dev/zero"), "cannot read /dev/zero: expected a regular file");
  const Folder folder;
  EXPECT_EQ(error_of_open(folder.path), "cannot read " + folder.path.string() +
                                            ": expected model.safetensors or model.safetensors.index.json in it, found neither");
}

TEST(ShardedSafetensors, AreOneSet) {
  const Folder folder;
  folder.shards();
  for (const fs::path& path : {folder.path, folder.path / "model.safetensors.index.json"}) {
    const MappedSafetensors set(path);
    EXPECT_EQ(set.names(), (std::vector<std::string>{"a", "b", "c"}));
    EXPECT_EQ((set.view("a").view<const float, 2>()(1, 1)), 3.0f);
    EXPECT_EQ(set.read("b", Type::f32).data<float>()[0], 5.0f);
    EXPECT_EQ(set.read("c", Type::f32).data<float>()[1], 8.0f);
    EXPECT_EQ(set.metadata(), (Metadata{{"format", "pt"}}));
  }
  folder.index(R"({"a":"m-1.safetensors"})");
  EXPECT_EQ(MappedSafetensors(folder.path).names(), std::vector<std::string>{"a"}) << "the index counts";
  fs::remove(folder.file("model.safetensors.index.json"));
  fs::rename(folder.file("m-2.safetensors"), folder.file("model.safetensors"));
  EXPECT_EQ(MappedSafetensors(folder.path).names(), std::vector<std::string>{"c"});
}

TEST(ShardedSafetensors, ThatDoNotFitTheirIndexAreRefused) {
  const Folder folder;
  folder.shards();
  const std::string index = folder.file("model.safetensors.index.json"), start = "cannot read " + index + ": ";
  folder.index(R"({"a":"m-2.safetensors","b":"m-1.safetensors"})");
  EXPECT_EQ(error_of_open(folder.path), start + "expected tensor a in m-2.safetensors, found it in m-1.safetensors");
  folder.index(R"({"d":"m-1.safetensors"})");
  EXPECT_EQ(error_of_open(folder.path), start + "expected tensor d in m-1.safetensors, found none");
  folder.index(R"({"a":"m-3.safetensors"})");
  EXPECT_EQ(error_of_open(folder.path), "cannot read " + folder.file("m-3.safetensors") + ": No such file or directory");
  fs::resize_file(folder.file("m-2.safetensors"), 20);
  folder.index(R"({"c":"m-2.safetensors"})");
  EXPECT_TRUE(error_of_open(folder.path).starts_with("cannot read " + folder.file("m-2.safetensors") + ": safetensors: "));
}

TEST(ShardedSafetensors, NameFilesBesideTheIndexOnly) {
  const Folder folder;
  const std::string index = folder.file("model.safetensors.index.json"), start = "cannot read " + index + ": safetensors: ";
  for (const char* name : {"../m.safetensors", "/etc/m.safetensors", "sub/m.safetensors", "..", "", ".safetensors", "m.bin",
                           "model.safetensors.index.json", "sub\\\\m.safetensors", "m\\u0000.safetensors"}) {
    folder.index(R"({"a":")" + std::string(name) + R"("})");
    EXPECT_TRUE(
        error_of_open(folder.path).starts_with(start + "expected a file NAME.safetensors beside the index for tensor a, got "))
        << name << ": " << error_of_open(folder.path);
  }
  folder.index(R"({"a":3})");
  EXPECT_EQ(error_of_open(folder.path), start + "expected the name of a file for tensor a, got number");
  folder.index(R"({")" + std::string(1025, 'x') + R"(":"m.safetensors"})");
  EXPECT_EQ(error_of_open(folder.path), start + "expected names of at most 1024 bytes, got one of 1025");
  for (const char* text : {"", "{", "[]", "{}", R"({"weight_map":[]})", "\xff"}) {
    write_text(index, text);
    EXPECT_EQ(error_of_open(folder.path), start + "expected an index in JSON with an object weight_map, found none") << text;
  }
}

}  // namespace
}  // namespace isomer
