// libFuzzer: whatever the bytes, the reader returns what a file says or throws Error; every value and tensor lies inside of the
// file, decodes, and dequantises into as many numbers as its shape says.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "isomer/base/error.h"
#include "isomer/io/gguf_header.h"

namespace {
using isomer::GgufBytes;

void expect_inside(GgufBytes part, GgufBytes file) {
  if (!part.empty() && (part.data() < file.data() || part.data() + part.size() > file.data() + file.size())) std::abort();
}

void decode(const isomer::GgufEntry& entry) {
  const auto call = [&](auto f) {
    try {
      if (f(entry, "key").size() != entry.count) std::abort();
    } catch (const isomer::Error&) {
    }
  };
  call(isomer::decode_texts);
  call(isomer::decode_flags);
  call(isomer::decode_integers);
  call(isomer::decode_numbers);
}

void dequantise(const isomer::GgufTensor& tensor) {
  if (!isomer::quantised(tensor.type)) return;
  const isomer::GgufBlock block = *isomer::block_of(tensor.type);
  const isomer::Index blocks = isomer::Index(tensor.bytes.size()) / block.bytes;
  isomer::Index numbers = 1;
  for (const isomer::Index size : tensor.shape) numbers *= size;
  if (blocks * block.numbers != numbers) std::abort();
  const auto count = std::size_t(numbers);
  std::vector<float> floats(count);
  std::vector<isomer::Bf16> halves(count);
  isomer::dequantise(tensor.type, tensor.bytes.data(), blocks, floats.data());
  isomer::dequantise(tensor.type, tensor.bytes.data(), blocks, halves.data());
}

void parse(GgufBytes file) {
  try {
    const isomer::GgufHeader header = isomer::parse_gguf(file);
    for (const auto& [key, entry] : header.metadata) {
      expect_inside(entry.bytes, file);
      decode(entry);
    }
    for (const auto& [name, tensor] : header.tensors) {
      expect_inside(tensor.bytes, file);
      dequantise(tensor);
    }
  } catch (const isomer::Error&) {
  }
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const GgufBytes bytes = std::as_bytes(std::span(data, size));
  parse(bytes);
  // The same bytes behind a magic number and version, so that the rest is reached sooner.
  std::vector<std::byte> file;
  for (const char c : {'G', 'G', 'U', 'F', '\3', '\0', '\0', '\0'}) file.push_back(std::byte(c));
  file.insert(file.end(), bytes.begin(), bytes.end());
  parse(file);
  return 0;
}
