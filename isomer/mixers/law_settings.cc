#include "isomer/mixers/law_settings.h"

#include <array>
#include <charconv>
#include <limits>

namespace isomer {

namespace {

std::string text(double number) {
  std::array<char, 32> digits;
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr};
}

struct Writer {
  Settings out = {};

  void put(const char* name, const std::optional<double>& value) {
    if (value) out.emplace(name, text(*value));
  }
  void put_if(bool set, const char* name, const std::string& value) {
    if (set) out.emplace(name, value);
  }

  void operator()(const AttentionOptions& o) {
    constexpr std::array kNormalisers{"sum", "l2", "rms", "layer", "count", "gate", "none"};
    const bool taylor = o.kernel == AttentionOptions::Kernel::taylor;
    put("scale", o.scale);
    put_if(o.clamp < std::numeric_limits<double>::infinity(), "clamp", text(o.clamp));
    put_if(o.direction == AttentionOptions::Direction::bidirectional, "causal", "false");
    put_if(o.window != 0, "window", std::to_string(o.window));
    put_if(o.sinks != 0, "sinks", std::to_string(o.sinks));
    put_if(taylor, "kernel", "taylor");
    put_if(taylor, "order", std::to_string(o.order));
    put_if(o.normaliser != AttentionOptions::Normaliser::sum, "normaliser", kNormalisers[std::size_t(o.normaliser)]);
    put("eps", o.eps);
  }
  void operator()(const ScalarDecayOptions& o) {
    constexpr std::array kNormalisers{"none", "sum", "max", "subtract"};
    put("scale", o.scale);
    put_if(o.normaliser != ScalarDecayOptions::Normaliser::none, "normaliser", kNormalisers[std::size_t(o.normaliser)]);
    put_if(o.direction == ScalarDecayOptions::Direction::global, "causal", "false");
    put_if(o.eps != 0, "eps", text(o.eps));
  }
  void operator()(const ChannelDecayOptions& o) {
    put("scale", o.scale);
    put_if(o.read == ChannelDecayOptions::Read::before, "read", "before");
  }
  void operator()(const DeltaOptions& o) {
    put("scale", o.scale);
    put_if(o.l2norm, "l2norm", "true");
  }
  void operator()(const ScanOptions&) {}
  void operator()(const graph::ScanS6Options&) {}
};

}  // namespace

Settings settings_of(const graph::Law& law) {
  Writer writer;
  std::visit(writer, law.options);
  return std::move(writer.out);
}

}  // namespace isomer
