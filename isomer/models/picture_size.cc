#include "isomer/models/picture_size.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "isomer/base/error.h"
#include "isomer/io/json.h"
#include "isomer/io/safetensors.h"
#include "isomer/io/text.h"

namespace isomer {

namespace {
/// [1, 1 + from², D] as [1, 1 + to², D]: centres of squares lie in the same places of the picture.
Tensor resampled(const Tensor& table, Index from, Index to) {
  const Index D = table.shape()[2];
  Tensor next(Type::f32, {1, 1 + to * to, D});
  const float* const old = table.data<float>();
  float* at = next.data<float>();
  std::copy_n(old, D, at);
  const auto place = [&](Index i) {
    return std::clamp((double(i) + 0.5) * double(from) / double(to) - 0.5, 0.0, double(from - 1));
  };
  for (Index y = 0; y < to; ++y)
    for (Index x = 0; x < to; ++x) {
      const double row = place(y), column = place(x);
      const Index y0 = Index(row), x0 = Index(column), y1 = std::min(y0 + 1, from - 1), x1 = std::min(x0 + 1, from - 1);
      const double v = row - double(y0), u = column - double(x0);
      at += D;
      for (Index d = 0; d < D; ++d) {
        const auto value = [&](Index i, Index j) { return double(old[(1 + i * from + j) * D + d]); };
        at[d] =
            float((1 - v) * ((1 - u) * value(y0, x0) + u * value(y0, x1)) + v * ((1 - u) * value(y1, x0) + u * value(y1, x1)));
      }
    }
  return next;
}
}  // namespace

void write_for_pictures(const std::string& folder, Index side, const std::string& to) {
  Json config = Json::parse(read_text(folder + "/config.json"), folder + "/config.json");
  const Index patch = config.at("patch_size").integer();
  require(patch > 0 && side > 0 && side % patch == 0, "pictures", "expected a side that squares of ", patch, " pixels fill, got ",
          side);
  Tensors weights = read_safetensors(folder + "/model.safetensors");
  const auto table =
      std::ranges::find_if(weights, [](const auto& named) { return named.first.ends_with("position_embeddings"); });
  require(table != weights.end(), "pictures", "expected position_embeddings in ", folder, ", got none");
  const std::vector<Index>& shape = table->second.shape();
  const Index from = shape.size() == 3 ? Index(std::llround(std::sqrt(double(shape[1] - 1)))) : 0;
  require(from > 0 && shape[0] == 1 && from * from + 1 == shape[1], "pictures",
          "expected a position for a class token and for each square of a square picture in ", folder);
  table->second = resampled(table->second.cast(Type::f32), from, side / patch);
  config.set("image_size", side);
  std::error_code problem;
  std::filesystem::create_directories(to, problem);
  write_safetensors(to + "/model.safetensors", weights);
  write_text(to + "/config.json", config.dump(2) + "\n");
}

}  // namespace isomer
