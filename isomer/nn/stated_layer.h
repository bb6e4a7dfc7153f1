#pragma once
// For tests of presets: compares a preset with a second statement of its layer.
//
//   Rows linear_elu(const Plain& p) {
//     const Heads in = projected(p);
//     return p.linear("o", divided(p, map(in.q, elu1), map(in.k, elu1), in.v, 1e-6));
//   }
//
//   expect_stated({"linear-elu", {{"bias", "false"}}, linear_elu});
#include <gtest/gtest.h>

#include "isomer/mixers/preset.h"
#include "isomer/nn/plain_layer.h"

namespace isomer::plain {

/// One preset with settings, and what it computes.
struct Stated {
  const char* preset;
  Settings settings;
  Rows (*layer)(const Plain& p);
  std::size_t K = 0, V = 0;  // of a head, if not the width over the heads
  Place place = {.width = 16};
};

inline void expect_stated(const Stated& what) {
  Settings settings = what.settings;
  settings.emplace("heads", "2");
  std::string label = what.preset;
  for (const auto& [name, value] : what.settings) label += " " + name + "=" + value;
  for (const char* without : {"lru", "s4d", "s5", "mamba", "qlstm", "qlstm-reversed"})
    if (label.substr(0, label.find(' ')) == without) settings.erase("heads");
  SmallLayer<double> layer(build_mixer(what.preset, what.place, settings));
  Context context(1);
  const std::vector<double> got = layer.forward(context);
  const std::size_t T = std::size_t(layer.tokens()), d = std::size_t(layer.width()), H = 2;
  const auto rows_of = [T](const std::vector<double>& all, std::size_t b, std::size_t n) {
    Rows rows(T);
    for (std::size_t t = 0; t < T; ++t)
      rows[t].assign(all.begin() + long((b * T + t) * n), all.begin() + long((b * T + t + 1) * n));
    return rows;
  };
  double worst = 0, largest = 0;
  for (std::size_t b = 0; b < SmallLayer<double>::kBatch; ++b) {
    Plain p{&layer, rows_of(layer.x(), b, d), {}, T, d, H, what.K > 0 ? what.K : d / H, what.V > 0 ? what.V : d / H};
    if (!layer.others().empty()) p.other = rows_of(layer.others()[0].numbers, b, H * p.V);
    const Rows want = what.layer(p), have = rows_of(got, b, d);
    for (std::size_t t = 0; t < T; ++t)
      for (std::size_t i = 0; i < d; ++i) {
        const double error = std::abs(want[t][i] - have[t][i]);
        worst = std::isnan(error) ? HUGE_VAL : std::max(worst, error);
        largest = std::max(largest, std::abs(want[t][i]));
      }
  }
  EXPECT_GT(largest, 1e-3) << label << ": something to compare";
  EXPECT_LE(worst, 1e-11 * largest) << label;
}

}  // namespace isomer::plain
