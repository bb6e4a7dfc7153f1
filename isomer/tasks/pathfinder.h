#pragma once
// Scenes of the Pathfinder task: two long snakes of dashes that start near each other, among short ones. In pixels, x to the
// right and y down; a pixel (x, y) covers [x, x + 1) × [y, y + 1).
#include <array>
#include <cstdint>
#include <span>

#include "isomer/base/index.h"
#include "isomer/base/rng.h"

namespace isomer::pathfinder {

struct Style {
  Index size = 32;           // of the picture
  Index contour = 14;        // dashes of a long snake
  Index distractors = 5;     // short snakes, of a third of the dashes
  double dash = 2;           // length
  double thickness = 0.5;    // of a dash
  int margin_least = 1;      // around a dash, drawn once a picture
  int margin_most = 1;       // the largest that is drawn
  double radius = 1.5;       // of the discs
  double seed_distance = 7;  // between the starts of the long snakes
  double continuity = 1;     // how straight a snake goes
  double contrast = 1.5;     // of dashes; discs have 1, and so have dashes at most
};
[[nodiscard]] Style style_of(Index size);

struct Point {
  double x = 0, y = 0;
};

struct Dash {
  Point tail, head;
  int snake = 0;  // 0 and 1 are the long ones
};

inline constexpr std::size_t kMostDashes = 512;

struct Scene {
  std::array<Dash, kMostDashes> dashes{};
  std::size_t count = 0;
  double margin = 0;
  /// The free end of a long snake's first dash, and of its last.
  std::array<Point, 2> starts{}, ends{};
};

/// `taken` has size × size cells and is working memory.
void draw_scene(Rng& rng, const Style& style, Scene& scene, std::span<std::int64_t> taken);

/// Discs on the start of one long snake and the end of the same, or of the other.
struct Discs {
  Point start, end;
  bool connected = false;
};
[[nodiscard]] Discs draw_discs(Rng& rng, const Scene& scene);

/// Dashes and discs as numbers from 0 to 255.
void paint(const Style& style, const Scene& scene, const Discs& discs, std::span<std::int64_t> pixels);

}  // namespace isomer::pathfinder
