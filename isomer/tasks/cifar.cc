// Classification of small colour pictures in the binary form of CIFAR-10, resampled to the size that a vision transformer reads.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "isomer/base/error.h"
#include "isomer/base/hash.h"
#include "isomer/io/bytes.h"
#include "isomer/io/files.h"
#include "isomer/tasks/list.h"

namespace isomer {

namespace {
namespace fs = std::filesystem;

constexpr std::array<OptionSpec, 3> kOptions{{
    {"path", "", "a folder with data_batch_1.bin … and test_batch.bin: a byte for the class, 1024 each of red, green and blue"},
    {"side", "32", "pixels a side that a picture is resampled to, bilinearly"},
    {"patch", "4", "pixels a side of a patch, which is a vector: all of red, then green and blue"},
}};

constexpr Index kSide = 32, kArea = kSide * kSide, kChannels = 3, kRecord = 1 + kChannels * kArea, kBatch = 10000, kClasses = 10;

class Cifar final : public Task {
 public:
  explicit Cifar(const TaskOptions& options)
      : Task(options), side_(options.size("side", 1, 4096)), patch_(options.size("patch", 1, 1024)) {
    const std::string& path = options.text("path");
    require(!path.empty(), "cifar", "expected path = a folder, got none: tools/models cifar-10 fetches one");
    require(side_ % patch_ == 0, "cifar", "expected a patch that divides ", side_, " pixels, got ", patch_);
    for (const Split split : {Split::train, Split::test}) read(path, split);
    shape_ = {.kind = TaskKind::vectors_class,
              .metric = Metric::example_accuracy,
              .length = (side_ / patch_) * (side_ / patch_),
              .classes = kClasses,
              .features = kChannels * patch_ * patch_};
    measure();
    for (Index x = 0; x < side_; ++x) {
      // Centres of pixels lie on centres.
      const double at = std::clamp((double(x) + 0.5) * double(kSide) / double(side_) - 0.5, 0.0, double(kSide - 1));
      const Index low = std::min(Index(at), kSide - 2);
      places_.push_back({low, at - double(low)});
    }
  }

 private:
  /// Between the pixels `low` and `low + 1`.
  struct Place {
    Index low;
    double share;
  };

  /// As many records as are asked for; all without a number.
  void read(const fs::path& folder, Split split) {
    std::vector<unsigned char>& all = records_[std::size_t(split)];
    std::uint64_t& size = sizes_[std::size_t(split)];
    for (int number = 1; size == 0 || all.size() < std::size_t(size) * kRecord; ++number) {
      const fs::path path = folder / (split == Split::train ? "data_batch_" + std::to_string(number) + ".bin" : "test_batch.bin");
      if (number > 1 && (split == Split::test || !is_there(path))) break;
      const std::vector<unsigned char> batch = read_bytes(path, std::size_t(kBatch * kRecord));
      require(!batch.empty() && batch.size() % kRecord == 0, "cifar", "expected records of ", kRecord, " bytes in ",
              path.string(), ", got ", batch.size(), " bytes");
      all.insert(all.end(), batch.begin(), batch.end());
    }
    const std::uint64_t count = all.size() / kRecord;
    size = size == 0 ? count : std::min(size, count);
    all.resize(std::size_t(size) * kRecord);
    for (std::size_t i = 0; i < all.size(); i += kRecord)
      require(all[i] < kClasses, "cifar", "expected classes below ", kClasses, ", got ", int(all[i]));
    data_hash_ = hash_of({reinterpret_cast<const char*>(all.data()), all.size()}, data_hash_ ^ kHashStart);
  }

  /// Mean and deviation of each colour over the training pictures.
  void measure() {
    const std::vector<unsigned char>& train = records_[std::size_t(Split::train)];
    const double n = double(sizes_[std::size_t(Split::train)]) * double(kArea);
    for (Index c = 0; c < kChannels; ++c) {
      double sum = 0, squares = 0;
      for (std::size_t first = 0; first < train.size(); first += kRecord)
        for (Index i = 0; i < kArea; ++i) {
          const double value = train[first + std::size_t(1 + c * kArea + i)];
          sum += value, squares += value * value;
        }
      mean_[std::size_t(c)] = sum / n;
      deviation_[std::size_t(c)] = std::max(std::sqrt(squares / n - sum / n * (sum / n)), 1e-3);
    }
  }

  void draw(Example& e) const override {
    const unsigned char* record = records_[std::size_t(e.split)].data() + Index(e.index) * kRecord;
    e.labels[0] = record[0];
    const Index across = side_ / patch_;
    float* to = e.inputs.data();
    for (Index t = 0; t < shape_.length; ++t)
      for (Index c = 0; c < kChannels; ++c)
        for (Index i = 0; i < patch_ * patch_; ++i) {
          const double value =
              sampled(record + 1 + c * kArea, t / across * patch_ + i / patch_, t % across * patch_ + i % patch_);
          *to++ = float((value - mean_[std::size_t(c)]) / deviation_[std::size_t(c)]);
        }
  }

  [[nodiscard]] double sampled(const unsigned char* pixels, Index y, Index x) const {
    const Place row = places_[std::size_t(y)], column = places_[std::size_t(x)];
    const unsigned char* at = pixels + row.low * kSide + column.low;
    const double upper = at[0] + column.share * (at[1] - at[0]), lower = at[kSide] + column.share * (at[kSide + 1] - at[kSide]);
    return upper + row.share * (lower - upper);
  }

  Index side_, patch_;
  std::array<std::vector<unsigned char>, 2> records_;  // of train, of test
  std::array<double, kChannels> mean_{}, deviation_{};
  std::vector<Place> places_;  // of each row or column
};
}  // namespace

const TaskType task::cifar{
    .name = "cifar",
    .source = "Krizhevsky 2009 (CIFAR-10)",
    .summary = "the class of a small colour picture",
    .own_options = kOptions,
    .make = [](const TaskOptions& options) -> std::unique_ptr<Task> { return std::make_unique<Cifar>(options); },
};

}  // namespace isomer
