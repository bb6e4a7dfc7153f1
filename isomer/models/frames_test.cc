// Models of frames of sound: convolutions in front, positions that are sines.
#include <gtest/gtest.h>

#include <cmath>

#include "isomer/models/testing.h"
#include "tests/error_of.h"

namespace isomer {
namespace {
using testing::Data;
using testing::SmallModel;
using tests::error_of;

TEST(Model, ReadsFramesThroughConvolutions) {
  ModelConfig config = testing::frames_config();
  config.length = 4;
  const SmallModel<float> small(config);
  Context context(1);
  Tape<float> tape(context, Record::no);
  const auto hidden = [&](Index frames) {
    const Data data(config, 2, frames);
    return small.model.logits(tape, data.input()).hidden.shape();
  };
  EXPECT_EQ(hidden(8), (Shape4{2, 4, 1, 8}));
  EXPECT_EQ(hidden(7), (Shape4{2, 4, 1, 8}));
  EXPECT_EQ(error_of([&] { (void)hidden(9); }), "model: expected at most 4 tokens, got 5");
  Data padded(config, 2, 8);
  padded.lengths = {8, 3};
  EXPECT_EQ(error_of([&] { (void)small.model.logits(tape, padded.input()); }),
            "model: expected whole sequences for convolutions, got lengths");
  // Sines of the fastest frequency, and cosines behind them.
  Parameters<float> fresh;
  const Model<float> model(config, fresh);
  initialise(fresh, 1);
  const Parameter<float>& places = fresh.find("positions.weight");
  EXPECT_FALSE(places.trained());
  EXPECT_EQ(std::vector<float>(places.values().begin(), places.values().begin() + 8),
            (std::vector<float>{0, 0, 0, 0, 1, 1, 1, 1}));
  EXPECT_FLOAT_EQ(places.values()[8], std::sin(1.0F));
  EXPECT_FLOAT_EQ(places.values()[8 + 7], std::cos(1e-4F));
}

}  // namespace
}  // namespace isomer
