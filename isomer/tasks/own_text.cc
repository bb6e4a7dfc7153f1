#include "isomer/tasks/own_text.h"

#include <algorithm>

#include "isomer/base/error.h"
#include "isomer/io/files.h"
#include "isomer/io/text.h"
#include "isomer/models/pretrained.h"
#include "isomer/tasks/draw.h"

namespace isomer::own_text {

namespace {
// More than any vocabulary; a model has as many as its tokenizer.
constexpr Index kMostTokens = Index(1) << 40;
// The order in which records are dealt has random numbers of its own.
constexpr std::uint64_t kDealKey = 0x6465616c;
}  // namespace

std::unique_ptr<Tokenizer> tokenizer_of(const TaskOptions& options) {
  const std::string& path = options.text("tokenizer");
  if (path.empty()) return byte_tokenizer();
  const bool of_model = is_folder(path) || path.ends_with(".gguf");
  const std::string json = of_model ? read_tokenizer(path) : read_text(path);
  require(!json.empty(), options.type().name.data(), "expected a model with a tokenizer.json, got ", path);
  std::unique_ptr<Tokenizer> tokenizer = tokenizer_from(json, path, kMostTokens);
  require(tokenizer->is_text(), options.type().name.data(), "expected the tokenizer of a text, got one of ", tokenizer->name());
  return tokenizer;
}

std::string spelled(const Tokenizer& tokenizer, std::int64_t token) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char c : tokenizer.decode({&token, 1})) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n')
      text += "\\n";
    else if (c >= ' ' && c <= '~')
      text += c;
    else
      text.append("\\x").append(1, kDigits[byte / 16]).append(1, kDigits[byte % 16]);
  }
  return text;
}

Shares::Shares(const TaskOptions& options)
    : test(options.number("test_share", 0, 1)), validation(options.number("validation_share", 0, 1)) {
  require(test + validation < 1, options.type().name.data(), "expected shares for test and validation below 1 together, got ",
          test + validation);
}

std::vector<Split> deal(std::size_t n, const Shares& shares, std::uint64_t seed) {
  const auto tests = std::size_t(shares.test * double(n)), validations = std::size_t(shares.validation * double(n));
  std::vector<Split> splits(n, Split::train);
  for (std::size_t i = 0; i < tests + validations; ++i)
    splits[draw::permuted(i, n, seed ^ kDealKey, 0)] = i < tests ? Split::test : Split::validation;
  return splits;
}

}  // namespace isomer::own_text
