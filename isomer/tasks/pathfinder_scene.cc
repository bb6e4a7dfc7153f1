#include <algorithm>
#include <cmath>
#include <numbers>

#include "isomer/tasks/draw.h"
#include "isomer/tasks/pathfinder.h"

namespace isomer::pathfinder {

namespace {
constexpr double kTurn = 2 * std::numbers::pi;
// As in the source: a dash is tried again so often before a snake counts as stuck, and a short snake before it is left out.
constexpr int kDashTrials = 3, kSnakeTrials = 5;

Point moved(Point from, double angle, double distance) {
  return {from.x + distance * std::cos(angle), from.y + distance * std::sin(angle)};
}

double square_distance(Point p, const Dash& dash) {
  const double dx = dash.head.x - dash.tail.x, dy = dash.head.y - dash.tail.y;
  const double along = ((p.x - dash.tail.x) * dx + (p.y - dash.tail.y) * dy) / (dx * dx + dy * dy);
  const double t = std::clamp(along, 0.0, 1.0), x = dash.tail.x + t * dx - p.x, y = dash.tail.y + t * dy - p.y;
  return x * x + y * y;
}

/// Grows snakes on a grid of cells that are taken by a dash with its margin (its number, from 1) or by the border (−1).
class Grower {
 public:
  Grower(Rng& rng, const Style& style, Scene& scene, std::span<std::int64_t> taken)
      : rng_(rng), style_(style), scene_(scene), taken_(taken) {
    scene_.count = 0;
    const Index last = style_.size - 1;
    for (Index y = 0; y <= last; ++y)
      for (Index x = 0; x <= last; ++x) cell(x, y) = x == 0 || y == 0 || x == last || y == last ? -1 : 0;
  }

  /// False when a snake is stuck.
  [[nodiscard]] bool long_snakes() {
    forget(0);
    const Index border = Index(2 * style_.seed_distance);
    const Point first{0.5 + double(draw::between(rng_, border, style_.size - 1 - border)),
                      0.5 + double(draw::between(rng_, border, style_.size - 1 - border))};
    const Point second = moved(first, kTurn * rng_.uniform(), style_.seed_distance);
    std::array<Dash, 2> last{Dash{first, moved(first, kTurn * rng_.uniform(), style_.dash), 0},
                             Dash{second, moved(second, kTurn * rng_.uniform(), style_.dash), 1}};
    for (Dash& dash : last)
      if (!place(dash)) return false;
    // In turns, so that neither has the better places.
    for (Index i = 1; i < style_.contour; ++i)
      for (Dash& dash : last)
        if (!extend(dash)) return false;
    scene_.starts = {first, second};
    scene_.ends = {last[0].head, last[1].head};
    return true;
  }

  void short_snake(int snake) {
    const std::size_t before = scene_.count;
    for (int trial = 0; trial < kSnakeTrials; ++trial) {
      const Point tail{rng_.uniform() * double(style_.size), rng_.uniform() * double(style_.size)};
      Dash last{tail, moved(tail, kTurn * rng_.uniform(), style_.dash), snake};
      bool whole = place(last);
      for (Index i = 1; whole && i < std::max<Index>(style_.contour / 3, 1); ++i) whole = extend(last);
      if (whole) return;
      forget(before);
    }
  }

 private:
  std::int64_t& cell(Index x, Index y) { return taken_[std::size_t(y * style_.size + x)]; }
  [[nodiscard]] std::int64_t at(Index x, Index y) {
    return x < 0 || y < 0 || x >= style_.size || y >= style_.size ? -1 : cell(x, y);
  }

  /// Does visit(x, y) hold for every cell that the dash with its margin covers wholly?
  template <class Visit>
  bool each_cell(const Dash& dash, Visit visit) const {
    const double reach = style_.thickness / 2 + scene_.margin;
    const auto low = [&](double a, double b) { return Index(std::floor(std::min(a, b) - reach)); };
    const auto high = [&](double a, double b) { return Index(std::ceil(std::max(a, b) + reach)); };
    const Index x0 = low(dash.tail.x, dash.head.x), x1 = high(dash.tail.x, dash.head.x);
    const Index y0 = low(dash.tail.y, dash.head.y), y1 = high(dash.tail.y, dash.head.y);
    for (Index y = y0; y < y1; ++y)
      for (Index x = x0; x < x1; ++x) {
        bool whole = true;
        for (int i = 0; i < 4 && whole; ++i)
          whole = square_distance({double(x) + 0.25 + 0.5 * (i & 1), double(y) + 0.25 + 0.25 * (i & 2)}, dash) <= reach * reach;
        if (whole && !visit(x, y)) return false;
      }
    return true;
  }

  /// Takes the dashes from this number on away.
  void forget(std::size_t first) {
    const auto clear = [&](Index x, Index y) {
      cell(x, y) = 0;
      return true;
    };
    for (; scene_.count > first; --scene_.count) each_cell(scene_.dashes[scene_.count - 1], clear);
  }

  /// Puts the dash there unless its cells are taken; those of dash number `neighbour` do not count.
  [[nodiscard]] bool place(const Dash& dash, std::int64_t neighbour = 0) {
    const auto fits = [&](Index x, Index y) { return at(x, y) == 0 || at(x, y) == neighbour; };
    if (scene_.count == kMostDashes || !each_cell(dash, fits)) return false;
    scene_.dashes[scene_.count++] = dash;
    return each_cell(dash, [&](Index x, Index y) {
      cell(x, y) = std::int64_t(scene_.count);
      return true;
    });
  }

  /// No cell within the margin is taken by another dash.
  [[nodiscard]] bool is_free(Point p, std::int64_t neighbour) {
    const Index reach = Index(scene_.margin), cx = Index(std::floor(p.x)), cy = Index(std::floor(p.y));
    for (Index y = -reach; y <= reach; ++y)
      for (Index x = -reach; x <= reach; ++x) {
        if (x * x + y * y > reach * reach) continue;
        const std::int64_t id = at(cx + x, cy + y);
        if (id != 0 && id != neighbour) return false;
      }
    return true;
  }

  /// Adds a dash behind the snake's last one, which becomes it. The angle to the last dash is drawn with probability ∝ cos².
  [[nodiscard]] bool extend(Dash& last) {
    std::int64_t neighbour = 0;
    for (std::size_t i = scene_.count; i > 0 && neighbour == 0; --i)
      if (scene_.dashes[i - 1].snake == last.snake) neighbour = std::int64_t(i);
    const double angle = std::atan2(last.head.y - last.tail.y, last.head.x - last.tail.x);
    const Point pivot = moved(last.head, angle, scene_.margin);
    const double radius = style_.dash + scene_.margin;
    // One candidate a pixel of the circle; half of it at most is ahead.
    constexpr int kMostCandidates = 64;
    const int half = std::min(int(radius * kTurn / 4), kMostCandidates / 2 - 1);
    std::array<double, kMostCandidates> sums{};
    double sum = 0;
    const auto turn = [&](int i) { return double(i - half) / radius; };
    for (int i = 0; i <= 2 * half; ++i) {
      const double bend = std::min(style_.continuity * std::abs(turn(i)), kTurn / 4), weight = std::cos(bend) * std::cos(bend);
      sum += is_free(moved(pivot, angle + turn(i), radius), neighbour) ? weight : 0;
      sums[std::size_t(i)] = sum;
    }
    if (sum < 1e-4) return false;
    for (int trial = 0; trial < kDashTrials; ++trial) {
      const double pick = rng_.uniform() * sum;
      const int i = int(std::upper_bound(sums.begin(), sums.begin() + 2 * half, pick) - sums.begin());
      const Dash dash{moved(pivot, angle + turn(i), scene_.margin), moved(pivot, angle + turn(i), radius), last.snake};
      if (!place(dash, neighbour)) continue;
      last = dash;
      return true;
    }
    return false;
  }

  Rng& rng_;
  const Style& style_;
  Scene& scene_;
  std::span<std::int64_t> taken_;
};
}  // namespace

Style style_of(Index size) {
  if (size == 32) return {};
  return {.size = 128,
          .contour = 14,
          .distractors = 8,
          .dash = 5,
          .thickness = 1.5,
          .margin_least = 2,
          .margin_most = 3,
          .radius = 3,
          .seed_distance = 20,
          .continuity = 1.8,
          .contrast = 0.9};
}

void draw_scene(Rng& rng, const Style& style, Scene& scene, std::span<std::int64_t> taken) {
  scene.margin = double(draw::between(rng, style.margin_least, style.margin_most));
  Grower grower(rng, style, scene, taken);
  while (!grower.long_snakes()) {
  }
  for (Index i = 0; i < style.distractors; ++i) grower.short_snake(int(2 + i));
}

Discs draw_discs(Rng& rng, const Scene& scene) {
  const std::size_t snake = rng.bits() & 1;
  const bool connected = (rng.bits() & 1) == 1;
  return {scene.starts[snake], scene.ends[connected ? snake : 1 - snake], connected};
}

void paint(const Style& style, const Scene& scene, const Discs& discs, std::span<std::int64_t> pixels) {
  constexpr int kSamples = 4;  // a side, for edges without steps
  std::fill(pixels.begin(), pixels.end(), 0);
  // The share of a pixel within `reach` of the dash; a dash without length is a disc.
  const auto add = [&](const Dash& dash, double reach, double contrast) {
    const auto from = [&](double a, double b) { return std::max<Index>(Index(std::floor(std::min(a, b) - reach)), 0); };
    const auto to = [&](double a, double b) { return std::min<Index>(Index(std::ceil(std::max(a, b) + reach)), style.size); };
    for (Index y = from(dash.tail.y, dash.head.y); y < to(dash.tail.y, dash.head.y); ++y)
      for (Index x = from(dash.tail.x, dash.head.x); x < to(dash.tail.x, dash.head.x); ++x) {
        int inside = 0;
        for (int i = 0; i < kSamples; ++i)
          for (int j = 0; j < kSamples; ++j) {
            const Point p{double(x) + (i + 0.5) / kSamples, double(y) + (j + 0.5) / kSamples};
            inside += square_distance(p, dash) <= reach * reach ? 1 : 0;
          }
        const double value = std::min(1.0, contrast * inside / (kSamples * kSamples));
        std::int64_t& pixel = pixels[std::size_t(y * style.size + x)];
        pixel = std::max<std::int64_t>(pixel, std::llround(255 * value));
      }
  };
  for (std::size_t i = 0; i < scene.count; ++i) add(scene.dashes[i], style.thickness / 2, style.contrast);
  for (const Point& disc : {discs.start, discs.end}) add({disc, {disc.x + 1e-9, disc.y}, 0}, style.radius, 1);
}

}  // namespace isomer::pathfinder
