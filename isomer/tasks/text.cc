// The bytes of a file or folder: what the next one is, or which file they are from.
#include <algorithm>
#include <filesystem>

#include "isomer/base/error.h"
#include "isomer/io/bytes.h"
#include "isomer/tasks/list.h"

namespace isomer {

namespace {
namespace fs = std::filesystem;
// Installed by `tools/setup text` from Debian's package jargon-text; public domain.
constexpr std::string_view kDefault = "/usr/share/doc/jargon-text/jargon.txt.gz";
constexpr std::size_t kMostBytes = std::size_t{1} << 30;

constexpr std::array<OptionSpec, 4> kOptions{{
    {"path", kDefault, "a file, or a folder whose files are read in the order of their names; gzip is unpacked"},
    {"length", "256", "bytes of an example"},
    {"test_share", "0.05", "share of the bytes that is kept for the test, at the end"},
    {"label", "next", "next: the byte that follows; file: which of a folder's files the bytes are from, without links"},
}};

/// The files of a folder and of those in it, without hidden ones, in the order of their paths.
std::vector<fs::path> files_of(const fs::path& path) {
  if (!fs::is_directory(path)) return {path};
  std::vector<fs::path> files;
  fs::recursive_directory_iterator entry(path, fs::directory_options::skip_permission_denied);
  for (; entry != fs::recursive_directory_iterator(); ++entry) {
    const bool hidden = entry->path().filename().string().starts_with('.');
    if (hidden && entry->is_directory()) entry.disable_recursion_pending();
    if (!hidden && entry->is_regular_file()) files.push_back(entry->path());
  }
  require(!files.empty(), "text", "expected files in ", path.string(), ", got none");
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<unsigned char> read_text(const std::string& path) {
  if (path == kDefault && !fs::exists(path))
    throw Error("text: expected " + path + " of Debian's package jargon-text (tools/setup text installs it), got no such file");
  std::vector<unsigned char> all;
  for (const fs::path& file : files_of(path)) {
    const std::vector<unsigned char> bytes = read_bytes(file, kMostBytes - all.size());
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  return all;
}

std::string spelled(std::int64_t token) {
  if (token == '\n') return "\\n";
  if (token >= ' ' && token <= '~') return std::string(1, char(token));
  constexpr std::string_view kDigits = "0123456789abcdef";
  return {'\\', 'x', kDigits[std::size_t(token) / 16], kDigits[std::size_t(token) % 16]};
}

class Text final : public Task {
 public:
  explicit Text(const TaskOptions& options)
      : Task(options), length_(std::size_t(options.size("length", 1, 1 << 24))), bytes_(read_text(options.text("path"))) {
    const double share = options.number("test_share", 0, 1);
    const auto kept = std::size_t(share * double(bytes_.size()));
    test_ = bytes_.size() - kept;
    // An example has one byte more than its inputs, the last label.
    require(test_ > length_, "text", "expected more than ", length_, " bytes to train on, got ", test_);
    require(kept > length_, "text", "expected more than ", length_, " bytes for the test, got ", kept);
    const std::uint64_t windows = (kept - 1) / length_;
    std::uint64_t& tests = sizes_[std::size_t(Split::test)];
    tests = tests == 0 ? windows : std::min(tests, windows);
    shape_ = {.metric = Metric::bits_per_token, .length = Index(length_), .vocabulary = 256, .classes = 256, .bytes = true};
  }

  [[nodiscard]] std::string spell(std::int64_t token) const override { return spelled(token); }

 private:
  /// Training windows begin anywhere; those of the test follow each other.
  void draw(Example& e) const override {
    const std::size_t begin =
        e.split == Split::test ? test_ + std::size_t(e.index) * length_ : std::size_t(e.rng.below(test_ - length_));
    for (std::size_t t = 0; t < length_; ++t) {
      e.tokens[t] = bytes_[begin + t];
      e.labels[t] = bytes_[begin + t + 1];
    }
  }

  std::size_t length_;
  std::vector<unsigned char> bytes_;
  std::size_t test_ = 0;  // where the bytes of the test begin
};

/// Which file a passage is from: its beginning is for training, its end for the test.
class Passages final : public Task {
 public:
  explicit Passages(const TaskOptions& options)
      : Task(options), length_(std::size_t(options.size("length", 1, 1 << 24))), share_(options.number("test_share", 0, 1)) {
    const std::string& path = options.text("path");
    require(fs::is_directory(path), "text", "expected a folder of files to tell apart for label=file, got ", path);
    for (const fs::path& file : files_of(path))
      if (!fs::is_symlink(file)) files_.push_back(read_bytes(file, kMostBytes));
    require(files_.size() > 1, "text", "expected at least two files to tell apart in ", path, ", got ", files_.size());
    for (const auto& file : files_)
      require(std::min(file.size() - test_of(file), test_of(file)) >= length_, "text", "expected files of which both parts have ",
              length_, " bytes, got ", file.size() - test_of(file), " to train on and ", test_of(file), " for the test");
    shape_ = {.kind = TaskKind::tokens_class,
              .metric = Metric::example_accuracy,
              .length = Index(length_),
              .vocabulary = 256,
              .classes = Index(files_.size()),
              .bytes = true};
  }

  [[nodiscard]] std::string spell(std::int64_t token) const override { return spelled(token); }

 private:
  [[nodiscard]] std::size_t test_of(const std::vector<unsigned char>& file) const {
    return std::size_t(share_ * double(file.size()));
  }
  /// All files alike.
  void draw(Example& e) const override {
    const std::size_t which = e.rng.below(files_.size());
    const auto& file = files_[which];
    const bool test = e.split == Split::test;
    const std::size_t size = test ? test_of(file) : file.size() - test_of(file);
    const std::size_t begin = (test ? file.size() - size : 0) + std::size_t(e.rng.below(size - length_ + 1));
    std::copy_n(file.begin() + std::ptrdiff_t(begin), length_, e.tokens.begin());
    e.labels[0] = std::int64_t(which);
  }

  std::size_t length_;
  double share_;
  std::vector<std::vector<unsigned char>> files_;
};

std::unique_ptr<Task> make_text(const TaskOptions& options) {
  if (options.choice("label", {"next", "file"}) == 1) return std::make_unique<Passages>(options);
  return std::make_unique<Text>(options);
}
}  // namespace

const TaskType task::text{
    .name = "text",
    .source = "any file or folder; without one, the Jargon File 4.4.7",
    .summary = "the next byte of a text, or the file that a passage is from",
    .own_options = kOptions,
    .make = make_text,
};

}  // namespace isomer
