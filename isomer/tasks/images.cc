// Classification of pictures in IDX files, as patches, as a sequence of pixels, or as tokens.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "isomer/base/error.h"
#include "isomer/base/hash.h"
#include "isomer/io/files.h"
#include "isomer/io/idx.h"
#include "isomer/tasks/list.h"

namespace isomer {

namespace {
namespace fs = std::filesystem;
// Installed by `tools/setup images` from Debian's package dataset-fashion-mnist.
constexpr std::string_view kDefault = "/usr/share/datasets/fashion-mnist";

constexpr std::array<OptionSpec, 3> kOptions{{
    {"path", kDefault, "a folder with train-images-idx3-ubyte, train-labels-idx1-ubyte and the same of t10k, gzip or not"},
    {"as", "patches", "patches: a vector a square; pixels: a number a pixel; tokens: a token 0 … 255 a pixel"},
    {"patch", "4", "pixels a side of a patch"},
}};

enum class As { patches, pixels, tokens };

struct Pictures {
  Index count = 0, rows = 0, columns = 0;
  std::vector<unsigned char> pixels, labels;
};

IdxArray read_named(const fs::path& folder, const std::string& name) {
  const fs::path plain = folder / name;
  return read_idx(is_there(plain) ? plain : folder / (name + ".gz"));
}

Pictures read_pictures(const fs::path& folder, const std::string& prefix) {
  IdxArray images = read_named(folder, prefix + "-images-idx3-ubyte"), labels = read_named(folder, prefix + "-labels-idx1-ubyte");
  const std::vector<Index>& shape = images.shape;
  require(shape.size() == 3 && shape[0] > 0 && shape[1] > 0 && shape[2] > 0, "images", "expected ", prefix,
          " images with three axes, none empty, got ", shape.size(), " axes or an empty one");
  require(labels.shape.size() == 1 && labels.shape[0] == shape[0], "images", "expected ", shape[0], " ", prefix, " labels, got ",
          labels.data.size());
  return {shape[0], shape[1], shape[2], std::move(images.data), std::move(labels.data)};
}

class Images final : public Task {
 public:
  explicit Images(const TaskOptions& options)
      : Task(options), as_(As(options.choice("as", {"patches", "pixels", "tokens"}))), patch_(options.size("patch", 1, 1024)) {
    const std::string& path = options.text("path");
    if (path == kDefault && !is_there(path))
      throw Error("images: expected " + path +
                  " of Debian's package dataset-fashion-mnist (tools/setup images installs it), "
                  "got no such folder");
    for (Split split : {Split::train, Split::test}) {
      Pictures& pictures = pictures_[std::size_t(split)];
      pictures = read_pictures(path, split == Split::train ? "train" : "t10k");
      for (const std::vector<unsigned char>* read : {&pictures.pixels, &pictures.labels})
        data_hash_ = hash_of({reinterpret_cast<const char*>(read->data()), read->size()}, data_hash_ ^ kHashStart);
      std::uint64_t& size = sizes_[std::size_t(split)];
      size = size == 0 ? std::uint64_t(pictures.count) : std::min(size, std::uint64_t(pictures.count));
    }
    const auto& [train, test] = pictures_;
    require(train.rows == test.rows && train.columns == test.columns, "images", "expected test images of ", train.rows, " × ",
            train.columns, " pixels, got ", test.rows, " × ", test.columns);
    if (as_ != As::patches) patch_ = 1;
    require(train.rows % patch_ == 0 && train.columns % patch_ == 0, "images", "expected a patch that divides ", train.rows,
            " × ", train.columns, " pixels, got ", patch_);
    Index classes = 0;
    for (const Pictures& pictures : pictures_)
      for (unsigned char label : pictures.labels) classes = std::max(classes, Index(label) + 1);
    shape_ = {.kind = as_ == As::tokens ? TaskKind::tokens_class : TaskKind::vectors_class,
              .metric = Metric::example_accuracy,
              .length = train.rows * train.columns / (patch_ * patch_),
              .vocabulary = as_ == As::tokens ? 256 : 0,
              .classes = classes,
              .features = as_ == As::tokens ? 0 : patch_ * patch_,
              .row = as_ == As::tokens ? train.columns : 0};
    measure(train);
  }

 private:
  /// Mean and deviation of the training pixels, by their histogram.
  void measure(const Pictures& train) {
    std::array<double, 256> times{};
    for (unsigned char pixel : train.pixels) ++times[pixel];
    double sum = 0, squares = 0;
    for (std::size_t value = 0; value < times.size(); ++value) {
      sum += times[value] * double(value);
      squares += times[value] * double(value * value);
    }
    const double n = double(train.pixels.size());
    mean_ = sum / n;
    deviation_ = std::max(std::sqrt(squares / n - mean_ * mean_), 1e-3);
  }

  void draw(Example& e) const override {
    const Pictures& pictures = pictures_[std::size_t(e.split)];
    const Index columns = pictures.columns, across = columns / patch_;
    const unsigned char* pixels = pictures.pixels.data() + Index(e.index) * pictures.rows * columns;
    e.labels[0] = pictures.labels[e.index];
    for (Index t = 0; t < shape_.length; ++t)
      for (Index i = 0; i < patch_ * patch_; ++i) {
        const Index y = t / across * patch_ + i / patch_, x = t % across * patch_ + i % patch_;
        const unsigned char pixel = pixels[y * columns + x];
        if (as_ == As::tokens)
          e.tokens[std::size_t(t)] = pixel;
        else
          e.inputs[std::size_t(t * patch_ * patch_ + i)] = float((pixel - mean_) / deviation_);
      }
  }

  As as_;
  Index patch_;
  std::array<Pictures, 2> pictures_;  // of train, of test
  double mean_ = 0, deviation_ = 1;
};
}  // namespace

const TaskType task::images{
    .name = "images",
    .source = "Xiao et al. 2017 (Fashion-MNIST), or any set in the format of MNIST",
    .summary = "the class of a picture",
    .own_options = kOptions,
    .make = [](const TaskOptions& options) -> std::unique_ptr<Task> { return std::make_unique<Images>(options); },
};

}  // namespace isomer
