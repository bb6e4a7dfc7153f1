#pragma once
// For the property suite: one call of a law that can be drawn again, and the failures found with it.
#include <cstring>
#include <sstream>
#include <string>

#include "isomer/laws/check.h"
#include "isomer/laws/random.h"

namespace isomer::properties {

struct Trial {
  const Law& law;
  Case what;
  Form form;
  Type type;
  std::uint64_t seed;
  Context& context;

  [[nodiscard]] Tensors inputs() const { return random_inputs(law, what, type, seed); }
  [[nodiscard]] Tensors run(const Tensors& in) const { return apply(law, {in, what.settings, form, context}); }
  [[nodiscard]] bool is_causal() const { return read_bool(what.settings, "causal", true); }
  [[nodiscard]] double limit(std::string_view quantity) const { return law.tolerance(quantity) * epsilon_of(type); }
};

/// Collects failures of one property; each line says how to see it again.
class Report {
 public:
  Report(const Trial& trial, std::string property) : trial_(trial), property_(std::move(property)) {}

  template <class... Parts>
  void add(const std::string& quantity, const Parts&... parts) {
    text_ << trial_.law.name() << ", case " << trial_.what.label << ", " << name_of(trial_.form) << ", " << name_of(trial_.type)
          << ", seed " << trial_.seed;
    for (const auto& [letter, size] : trial_.what.sizes) text_ << ", " << letter << " " << size;
    text_ << ": " << property_ << ": " << quantity << " ";
    (text_ << ... << parts) << "\n";
  }
  /// Every tensor of `want` within `slack` times the law's tolerance, and no other tensor.
  void compare(const Tensors& got, const Tensors& want, double slack) {
    for (const auto& [name, x] : want) {
      const auto found = got.find(name);
      if (found == got.end()) {
        add(name, "is missing");
        continue;
      }
      const double error = relative_error(found->second, x, scale_of(name, want)), limit = slack * trial_.limit(name);
      if (!(error <= limit)) add(name, "has error ", error, ", at most ", limit);
    }
    for (const auto& [name, x] : got)
      if (!want.contains(name)) add(name, "is not expected");
  }
  void same_bits(const std::string& quantity, const Tensor& got, const Tensor& want, std::string_view where) {
    const bool same = got.shape() == want.shape() && got.type() == want.type() &&
                      std::memcmp(got.bytes(), want.bytes(), std::size_t(want.size() * bytes_of(want.type()))) == 0;
    if (!same) add(quantity, "is not bit-identical ", where);
  }
  [[nodiscard]] std::string text() const { return text_.str(); }

 private:
  const Trial& trial_;
  std::string property_;
  std::ostringstream text_;
};

}  // namespace isomer::properties
