#include "isomer/models/picture_size.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "isomer/io/safetensors.h"
#include "isomer/models/model_folder.h"
#include "tests/error_of.h"
#include "tests/temporary_folder.h"

namespace isomer {
namespace {
namespace fs = std::filesystem;
constexpr const char* kTable = "embeddings.position_embeddings";

std::string golden(const std::string& name) { return (fs::path(ISOMER_SOURCE_DIR) / "tests/goldens/foreign" / name).string(); }

TEST(PictureSize, ChangesNothingButPositions) {
  const tests::TemporaryFolder folder;
  const std::string same = folder.path / "same", wide = folder.path / "wide";
  write_for_pictures(golden("dinov2"), 8, same);
  EXPECT_EQ(load_model(same)->parameters.fingerprint(), load_model(golden("dinov2"))->parameters.fingerprint());
  write_for_pictures(golden("dinov2"), 16, wide);
  const auto loaded = load_model(wide), old = load_model(golden("dinov2"));
  EXPECT_EQ(loaded->model.config().length, 17);
  for (const Parameter<float>& p : old->parameters.all()) {
    const bool same_numbers = std::ranges::equal(p.values(), loaded->parameters.find(p.name()).values());
    EXPECT_EQ(same_numbers, p.name() != "positions.weight") << p.name();
  }
}

TEST(PictureSize, LiesBetweenPositions) {
  const tests::TemporaryFolder folder;
  const std::string wide = folder.path / "wide";
  write_for_pictures(golden("dinov2"), 16, wide);
  const Tensors before = read_safetensors(golden("dinov2") + "/model.safetensors"),
                after = read_safetensors(wide + "/model.safetensors");
  const auto old = before.at(kTable).view<const float, 3>(), now = after.at(kTable).view<const float, 3>();
  ASSERT_EQ(old.shape[1], 5);
  ASSERT_EQ(now.shape[1], 17);
  for (Index d = 0; d < old.shape[2]; ++d) {
    EXPECT_EQ(now(0, 0, d), old(0, 0, d)) << "the class token's";
    EXPECT_EQ(now(0, 1, d), old(0, 1, d)) << "corners stay";
    EXPECT_EQ(now(0, 16, d), old(0, 4, d));
    // A quarter of the way from the first to the second, and the same downwards.
    EXPECT_NEAR(now(0, 2, d), 0.75 * double(old(0, 1, d)) + 0.25 * double(old(0, 2, d)), 1e-6);
    EXPECT_NEAR(now(0, 5, d), 0.75 * double(old(0, 1, d)) + 0.25 * double(old(0, 3, d)), 1e-6);
  }
}

TEST(PictureSize, RefusesWhatItCannotDo) {
  const tests::TemporaryFolder folder;
  EXPECT_EQ(tests::error_of([&] { write_for_pictures(golden("dinov2"), 10, folder.path / "x"); }),
            "pictures: expected a side that squares of 4 pixels fill, got 10");
  EXPECT_NE(tests::error_of([&] { write_for_pictures(golden("bert"), 8, folder.path / "x"); }), "no error");
}

}  // namespace
}  // namespace isomer
