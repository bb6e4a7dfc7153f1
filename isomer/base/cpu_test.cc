#include "isomer/base/cpu.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "isomer/base/error.h"

namespace isomer {
namespace {

/// Sets ISOMER_ISA for a block and puts back what it was.
class ForcedIsa {
 public:
  explicit ForcedIsa(const char* value) {
    if (const char* old = std::getenv("ISOMER_ISA")) old_ = old;
    setenv("ISOMER_ISA", value, 1);
  }
  ~ForcedIsa() { old_ ? setenv("ISOMER_ISA", old_->c_str(), 1) : unsetenv("ISOMER_ISA"); }
  ForcedIsa(const ForcedIsa&) = delete;
  ForcedIsa& operator=(const ForcedIsa&) = delete;

 private:
  std::optional<std::string> old_;
};

std::string refusal() {
  try {
    return std::string(name_of(chosen_isa()));
  } catch (const Error& e) {
    return e.what();
  }
}

TEST(Cpu, ObeysTheForcedIsa) {
  const ForcedIsa forced("scalar");
  EXPECT_EQ(chosen_isa(), Isa::scalar);
}

TEST(Cpu, TakesTheBestWhenNothingIsForced) {
  const ForcedIsa forced("");
  const Isa best = supported(Isa::avx512) ? Isa::avx512 : supported(Isa::avx2) ? Isa::avx2 : Isa::scalar;
  EXPECT_EQ(chosen_isa(), best);
}

TEST(Cpu, RefusesAnUnknownName) {
  const ForcedIsa forced("neon");
  EXPECT_EQ(refusal(), "ISOMER_ISA: expected scalar, avx2 or avx512, got neon");
}

TEST(Cpu, RefusesWhatTheMachineCannotRun) {
  if (supported(Isa::avx512)) GTEST_SKIP() << "this machine runs everything";
  const ForcedIsa forced("avx512");
  EXPECT_EQ(refusal(), "ISOMER_ISA: expected an instruction set of this machine, got avx512");
}

TEST(Cpu, DispatchesToTheNamedIsa) {
  for (const Isa isa : kIsas) {
    if (supported(isa)) {
      EXPECT_EQ(with_isa(isa, []<Isa I>() { return I; }), isa);
    }
  }
  EXPECT_TRUE(supported(Isa::scalar));
}

}  // namespace
}  // namespace isomer
