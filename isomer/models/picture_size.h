#pragma once
// A vision transformer for pictures of another size than those it learned from: what changes is its table of positions, one for
// each square, which is resampled bilinearly (Touvron et al. 2021, DeiT, bicubically; Oquab et al. 2023, DINOv2).
//
//   write_for_pictures(folder, 16, "wide");  // pictures of 16 × 16 pixels
#include <string>

#include "isomer/base/index.h"

namespace isomer {

/// From a folder of Hugging Face (ViT, DINOv2) to a new one. Throws Error for a side that squares do not fill, and for a folder
/// whose positions are not those of a square of squares behind a class token.
void write_for_pictures(const std::string& folder, Index side, const std::string& to);

}  // namespace isomer
