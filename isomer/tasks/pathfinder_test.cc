#include "isomer/tasks/pathfinder.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "isomer/tasks/testing.h"

namespace isomer {
namespace {

using namespace pathfinder;

double distance(Point a, Point b) { return std::hypot(a.x - b.x, a.y - b.y); }
double angle(const Dash& dash) { return std::atan2(dash.head.y - dash.tail.y, dash.head.x - dash.tail.x); }
Point along(const Dash& dash, double t) {
  return {dash.tail.x + t * (dash.head.x - dash.tail.x), dash.tail.y + t * (dash.head.y - dash.tail.y)};
}

/// A long snake's dashes follow each other at the distance of two margins, without sharp bends.
void expect_snake(const Style& style, const Scene& scene, int snake) {
  const Dash* last = nullptr;
  Index dashes = 0;
  for (std::size_t i = 0; i < scene.count; ++i) {
    const Dash& dash = scene.dashes[i];
    if (dash.snake != snake) continue;
    ++dashes;
    EXPECT_NEAR(distance(dash.tail, dash.head), style.dash, 1e-9);
    if (last == nullptr) {
      EXPECT_EQ(distance(dash.tail, scene.starts[std::size_t(snake)]), 0);
    } else {
      const double bend = std::abs(std::remainder(angle(dash) - angle(*last), 2 * std::numbers::pi));
      EXPECT_LE(bend, std::numbers::pi / 2 / style.continuity + 1e-9);
      EXPECT_LE(distance(last->head, dash.tail), 2 * scene.margin + 1e-9);
    }
    last = &dash;
  }
  EXPECT_EQ(dashes, style.contour);
  EXPECT_EQ(distance(last->head, scene.ends[std::size_t(snake)]), 0);
}

TEST(Pathfinder, GrowsTwoSnakesFromNearbyStarts) {
  for (Index size : {32, 128}) {
    const Style style = style_of(size);
    std::vector<std::int64_t> taken(std::size_t(size * size));
    Rng rng(1);
    Scene scene;
    double short_dashes = 0;
    const int scenes = size == 32 ? 100 : 3;
    for (int trial = 0; trial < scenes; ++trial) {
      draw_scene(rng, style, scene, taken);
      for (int snake : {0, 1}) expect_snake(style, scene, snake);
      EXPECT_NEAR(distance(scene.starts[0], scene.starts[1]), style.seed_distance, 1e-9);
      EXPECT_TRUE(scene.margin >= style.margin_least && scene.margin <= style.margin_most);
      short_dashes += double(scene.count) - 2 * double(style.contour);
    }
    // Nearly always there is room for all short snakes, of four dashes each.
    EXPECT_GT(short_dashes / scenes, 0.5 * double(style.distractors) * 4);
  }
}

TEST(Pathfinder, KeepsSnakesApartAndInsideThePicture) {
  const Style style = style_of(32);
  std::vector<std::int64_t> taken(32 * 32);
  Rng rng(2);
  Scene scene;
  for (int trial = 0; trial < 50; ++trial) {
    draw_scene(rng, style, scene, taken);
    double nearest = 100, outermost = 100;
    for (std::size_t i = 0; i < scene.count; ++i)
      for (double t = 0; t <= 1; t += 0.125) {
        const Point p = along(scene.dashes[i], t);
        outermost = std::min({outermost, p.x, p.y, 32 - p.x, 32 - p.y});
        for (std::size_t j = 0; j < i; ++j)
          for (double s = 0; s <= 1; s += 0.125)
            if (scene.dashes[i].snake != scene.dashes[j].snake)
              nearest = std::min(nearest, distance(p, along(scene.dashes[j], s)));
      }
    // A margin at least is between dashes of different snakes, so that the eye can tell them apart.
    EXPECT_GE(nearest, style.thickness + 0.5);
    EXPECT_GE(outermost, 1);
  }
}

TEST(Pathfinder, MarksTheEndsOfOneSnakeOrOfTwo) {
  const Style style = style_of(32);
  std::vector<std::int64_t> taken(32 * 32), pixels(32 * 32);
  Rng rng(3);
  Scene scene;
  draw_scene(rng, style, scene, taken);
  double connected = 0;
  constexpr int kTrials = 4000;
  for (int trial = 0; trial < kTrials; ++trial) {
    const Discs discs = draw_discs(rng, scene);
    const std::size_t snake = distance(discs.start, scene.starts[0]) == 0 ? 0 : 1;
    EXPECT_EQ(distance(discs.start, scene.starts[snake]), 0);
    EXPECT_EQ(distance(discs.end, scene.ends[snake]) == 0, discs.connected);
    EXPECT_EQ(distance(discs.end, scene.ends[1 - snake]) == 0, !discs.connected);
    connected += discs.connected ? 1 : 0;
  }
  expect_share(connected, kTrials, 0.5);
  const Discs discs = draw_discs(rng, scene);
  paint(style, scene, discs, pixels);
  for (const Point& p : {discs.start, discs.end}) EXPECT_EQ(pixels[std::size_t(std::floor(p.y) * 32 + std::floor(p.x))], 255);
  // A disc of radius 1.5 and the dashes: thin lines on black.
  double sum = 0;
  for (std::int64_t pixel : pixels) sum += double(pixel) / 255;
  EXPECT_GT(sum, 2 * std::numbers::pi * 1.5 * 1.5);
  EXPECT_LT(sum, 0.2 * 32 * 32);
}

/// How often a guess from the distance of the discs is right, in whole pixels, learned from as many other scenes.
double right_by_distance(Index contour) {
  Style style = style_of(32);
  style.contour = contour;
  std::vector<std::int64_t> taken(32 * 32);
  std::vector<double> votes(64);
  Rng rng(4);
  Scene scene;
  constexpr int kScenes = 1000;
  double right = 0;
  for (int i = 0; i < 2 * kScenes; ++i) {
    draw_scene(rng, style, scene, taken);
    const Discs discs = draw_discs(rng, scene);
    double& vote = votes[std::size_t(distance(discs.start, discs.end))];
    const double sign = discs.connected ? 1 : -1;
    if (i < kScenes)
      vote += sign;
    else
      right += vote * sign > 0 ? 1 : 0;
  }
  return right / kScenes;
}

TEST(Pathfinder, TellsLittleByTheDistanceOfTheDiscsWhereSnakesAreLong) {
  // Short snakes end near their starts, which are a fixed distance apart.
  EXPECT_GT(right_by_distance(3), 0.85);
  EXPECT_LT(right_by_distance(7), 0.62);
  EXPECT_LT(right_by_distance(14), 0.58);
}

TEST(Pathfinder, CutsThePictureIntoPatches) {
  const auto pixels = make_task("pathfinder", {{"contour", "3"}}),
             patches = make_task("pathfinder", {{"contour", "3"}, {"as", "patches"}, {"patch", "8"}});
  EXPECT_EQ(patches->shape().length, 16);
  EXPECT_EQ(patches->shape().features, 64);
  Batch tokens, vectors;
  pixels->fill(Split::test, 5, 2, tokens);
  patches->fill(Split::test, 5, 2, vectors);
  EXPECT_EQ(tokens.labels, vectors.labels);
  const auto token = [&](Index y, Index x) { return float(tokens.tokens[std::size_t(1024 + y * 32 + x)]); };
  const float unit = *std::ranges::max_element(vectors.inputs) / 255;
  for (Index y = 0; y < 32; ++y)
    for (Index x = 0; x < 32; ++x) {
      const Index at = 1024 + (y / 8 * 4 + x / 8) * 64 + y % 8 * 8 + x % 8;
      EXPECT_NEAR(vectors.inputs[std::size_t(at)], unit * token(y, x), 1e-4) << y << " " << x;
    }
  EXPECT_EQ(error_of("pathfinder", {{"as", "patches"}, {"patch", "5"}}),
            "pathfinder: expected a patch that divides 32 pixels, got 5");
}

TEST(Pathfinder, TrainsOnShorterSnakesToo) {
  const auto mixed = make_task("pathfinder", {{"contour", "9"}, {"shortest", "1"}}),
             plain = make_task("pathfinder", {{"contour", "9"}});
  const auto brightness = [&](const Task& task, Split split) {
    double sum = 0;
    each_example(task, split, 50,
                 [&](const Batch& batch) { sum += double(std::ranges::count_if(batch.tokens, [](auto x) { return x > 0; })); });
    return sum;
  };
  EXPECT_EQ(brightness(*mixed, Split::test), brightness(*plain, Split::test));
  EXPECT_LT(brightness(*mixed, Split::train), 0.8 * brightness(*plain, Split::train));
  EXPECT_EQ(error_of("pathfinder", {{"contour", "3"}, {"shortest", "4"}}), "pathfinder: expected shortest from 0 to 3, got 4");
}

TEST(Pathfinder, SaysHowManyShortLinesThereAre) {
  const auto lit = [](const Settings& settings, Split split = Split::train) {
    double sum = 0;
    each_example(*make_task("pathfinder", settings), split, 50,
                 [&](const Batch& batch) { sum += double(std::ranges::count_if(batch.tokens, [](auto x) { return x > 0; })); });
    return sum;
  };
  const double usual = lit({{"contour", "6"}});
  EXPECT_EQ(lit({{"contour", "6"}, {"distractors", "5"}}), usual);
  EXPECT_LT(lit({{"contour", "6"}, {"distractors", "0"}}), 0.8 * usual);
  EXPECT_GT(lit({{"contour", "6"}, {"distractors", "20"}}), 1.2 * usual);
  // Of pictures with shorter long lines: none, all.
  const Settings none{{"contour", "9"}, {"shortest", "1"}, {"mix", "0"}}, all{{"contour", "9"}, {"shortest", "1"}, {"mix", "1"}};
  const double whole = lit({{"contour", "9"}});
  EXPECT_NEAR(lit(none), whole, 0.1 * whole);
  EXPECT_LT(lit(all), 0.75 * whole);
  EXPECT_EQ(lit(all, Split::test), lit({{"contour", "9"}}, Split::test));
  EXPECT_EQ(error_of("pathfinder", {{"mix", "0.5"}}), "pathfinder: expected shortest from 1 to 13 with mix, got 0");
  EXPECT_EQ(error_of("pathfinder", {{"distractors", "65"}}), "pathfinder: expected distractors from 0 to 64, got 65");
}

TEST(Pathfinder, HasBalancedLabels) {
  const auto task = make_task("pathfinder", {{"contour", "6"}});
  EXPECT_EQ(task->shape().length, 1024);
  double ones = 0;
  each_example(*task, Split::train, 400, [&](const Batch& batch) { ones += double(batch.labels[0]); });
  expect_share(ones, 400, 0.5);
  EXPECT_EQ(make_task("pathfinder", {{"size", "128"}})->shape().length, 16384);
  EXPECT_EQ(error_of("pathfinder", {{"size", "64"}}), "size: expected 32 or 128, got 64");
  EXPECT_EQ(error_of("pathfinder", {{"contour", "21"}}), "pathfinder: expected contour from 1 to 20, got 21");
}

}  // namespace
}  // namespace isomer
