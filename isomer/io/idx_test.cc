#include "isomer/io/idx.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>

#include "isomer/base/error.h"
#include "isomer/io/bytes.h"
#include "tests/error_of.h"
#include "tests/temporary_folder.h"

namespace isomer {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<unsigned char>;

std::string error_of(const Bytes& bytes) {
  return tests::error_of([&] { (void)parse_idx(bytes); });
}

TEST(Idx, ReadsShapeAndNumbers) {
  const IdxArray array = parse_idx(Bytes{0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 255});
  EXPECT_EQ(array.shape, (std::vector<Index>{2, 3}));
  EXPECT_EQ(array.data, (Bytes{1, 2, 3, 4, 5, 255}));
  EXPECT_TRUE(parse_idx(Bytes{0, 0, 8, 1, 0, 0, 0, 0}).data.empty());
}

TEST(Idx, RefusesDamagedAndHostileFiles) {
  EXPECT_EQ(error_of({0, 0, 8}), "idx: expected a header of 4 bytes, got a file of 3");
  EXPECT_EQ(error_of({80, 75, 3, 4}), "idx: expected a file that starts with two zeros, got 80 and 75");
  EXPECT_EQ(error_of({0, 0, 13, 1, 0, 0, 0, 0}), "idx: expected unsigned bytes (type 8), got type 13");
  EXPECT_EQ(error_of({0, 0, 8, 0}), "idx: expected 1 to 4 axes, got 0");
  EXPECT_EQ(error_of({0, 0, 8, 200}), "idx: expected 1 to 4 axes, got 200");
  EXPECT_EQ(error_of({0, 0, 8, 2, 0, 0, 0, 2, 0, 0}), "idx: expected a header of 12 bytes, got a file of 10");
  EXPECT_EQ(error_of({0, 0, 8, 1, 0, 0, 0, 2, 1}), "idx: expected no more numbers than the 1 bytes behind the header");
  EXPECT_EQ(error_of({0, 0, 8, 1, 0, 0, 0, 2, 1, 2, 3}), "idx: expected 2 bytes behind the header, got 3");
  // Four axes whose product is 2^128, and one whose product is 0 in 64 bits.
  EXPECT_NE(error_of({0, 0, 8, 4, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 7}),
            "no error");
  EXPECT_NE(error_of({0, 0, 8, 4, 128, 0, 0, 0, 128, 0, 0, 0, 128, 0, 0, 0, 0, 0, 0, 0, 7}), "no error");
}

struct Files : testing::Test {
  tests::TemporaryFolder temporary;
  fs::path folder = temporary.path;

  [[nodiscard]] fs::path write(const char* name, const Bytes& bytes) const {
    std::ofstream(folder / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), std::streamsize(bytes.size()));
    return folder / name;
  }
  [[nodiscard]] fs::path pack(const char* name, const Bytes& bytes) const {
    gzFile file = ::gzopen((folder / name).c_str(), "wb");
    EXPECT_EQ(::gzwrite(file, bytes.data(), unsigned(bytes.size())), int(bytes.size()));
    ::gzclose(file);
    return folder / name;
  }
  [[nodiscard]] static std::string refusal(const fs::path& path, std::size_t most = 1000) {
    try {
      (void)read_bytes(path, most);
      return "no error";
    } catch (const Error& problem) {
      return std::string(problem.what()).substr(std::string("cannot read ").size() + path.string().size());
    }
  }
};

TEST_F(Files, AreReadPackedOrNot) {
  Bytes bytes(3'000'000);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i * i >> 3);
  EXPECT_EQ(read_bytes(write("plain", bytes), bytes.size()), bytes);
  EXPECT_EQ(read_bytes(pack("packed.gz", bytes), bytes.size()), bytes);
  EXPECT_TRUE(read_bytes(write("empty", {}), 0).empty());
  const IdxArray array = read_idx(pack("a-idx1", {0, 0, 8, 1, 0, 0, 0, 2, 7, 9}));
  EXPECT_EQ(array.data, (Bytes{7, 9}));
}

TEST_F(Files, AreRefusedInOneSentence) {
  EXPECT_EQ(refusal(folder / "nowhere"), ": No such file or directory");
  EXPECT_EQ(refusal(folder), ": not a regular file");
  EXPECT_EQ(refusal(write("long", Bytes(1001))), ": expected at most 1000 bytes, got more");
  // A megabyte of zeros in a kilobyte: it is not unpacked beyond what is allowed.
  EXPECT_EQ(refusal(pack("bomb", Bytes(1'000'000))), ": expected at most 1000 bytes, got more");
  const fs::path cut = pack("cut", Bytes(500, 3));
  fs::resize_file(cut, fs::file_size(cut) - 6);
  EXPECT_EQ(refusal(cut), ": unexpected end of file");
  EXPECT_EQ(refusal(write("damaged", {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xff, 0xff, 0xff, 0xff})), ": invalid block type");
}

}  // namespace
}  // namespace isomer
